#include "oracles/records/source_games.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/rules.h"
#include "io/bytes/byte_source.h"
#include "io/tables/parquet.h"

namespace kibitz::oracles {
namespace {

namespace fs = std::filesystem;
using chess::Board;
using io::ColumnType;
using UseGame = std::function<bool(const SourceGame&)>;

// Castling rights of Chess960: king off the e-file, or rooks not in the corners.
bool CastlesOddly(const Board& board) {
  const bool usual = chess::ParseFen(ToFen(board)).operator bool();
  return !usual;
}

// A position of standard chess; nothing, and counted, for others.
std::optional<Board> ReadFen(const std::string& fen, const std::string& place, SkipCounter& skipped,
                             const chess::FenReading& reading = {}) {
  const Result<Board> board = chess::ParseFen(fen, reading);
  if (board) return *board;
  chess::FenReading as_chess960 = reading;
  as_chess960.chess960 = true;
  const bool chess960 = chess::ParseFen(fen, as_chess960).operator bool();
  skipped.AddAndWarn(chess960 ? kChess960Reason : "bad FEN",
                     {.file = place, .detail = board.reason()});
  return std::nullopt;
}

std::string ReadAll(const std::string& path) {
  const auto source = io::OpenBytes(path);
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (const size_t count = source->Read(buffer.data(), buffer.size())) {
    text.append(buffer.data(), count);
  }
  return text;
}

bool ForEachLine(const std::string& path, SkipCounter& skipped, const UseGame& use) {
  const std::string text = ReadAll(path);
  int64_t number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ThrowIfInterrupted();
    ++number;
    line = Trim(line);
    if (line.empty() || line.starts_with('#')) continue;
    SourceGame game{.place = fmt::format("{}:{}", path, number), .game = {}};
    const auto board = ReadFen(std::string(line), game.place, skipped, {.epd_operations = true});
    if (!board) continue;
    game.game.start = *board;
    if (!use(game)) return false;
  }
  return true;
}

// Joins rows of a Parquet file into games.
class RowGames {
 public:
  RowGames(std::string file, SkipCounter& skipped, const UseGame& use)
      : file_(std::move(file)), skipped_(skipped), use_(use) {}

  // False to stop.
  bool Add(std::string_view id, std::string_view fen, std::string_view played) {
    const std::string place = fmt::format("{}, row {}", file_, row_++);
    // As the decoder reads them.
    const auto board = ReadFen(std::string(fen), place, skipped_, {.drop_wrong_castling = true});
    const bool follows = board && current_ && id == id_ && SamePosition(*board, *current_);
    if (!follows && !Flush()) return false;
    if (!board) return true;
    if (!follows) {
      game_ = {.place = place, .game = {.start = *board, .moves = {}}};
      id_ = id;
    }
    const auto move = chess::ParseMove(*board, played, chess::MoveStyle::kModel);
    current_ = *board;
    if (!move) {
      skipped_.AddAndWarn("illegal move", {.file = place, .detail = move.reason()});
      return Flush();
    }
    game_->game.moves.push_back(*move);
    current_ = current_->After(*move);
    return true;
  }

  bool Flush() {
    current_.reset();
    if (!game_) return true;
    const SourceGame game = std::move(*game_);
    game_.reset();
    return use_(game);
  }

 private:
  // Files may lack the counters, or have an en passant square without a capture.
  static bool SamePosition(const Board& a, const Board& b) { return a.key() == b.key(); }

  std::string file_;
  SkipCounter& skipped_;
  const UseGame& use_;
  int64_t row_ = 0;
  std::string id_;
  std::optional<SourceGame> game_;
  std::optional<Board> current_;  // After the last move of `game_`.
};

bool ForEachRowGame(const std::string& path, SkipCounter& skipped, const UseGame& use) {
  const io::ParquetReader reader({path});
  for (const std::string& file : reader.files()) {
    const io::ParquetReader one({file});
    io::ParquetScan scan = one.Scan({{"game_id", ColumnType::kText},
                                     {"fen", ColumnType::kText},
                                     {"played_move", ColumnType::kText}});
    RowGames games(file, skipped, use);
    while (const io::Chunk* chunk = scan.Next()) {
      ThrowIfInterrupted();
      const auto& columns = chunk->columns;
      for (size_t i = 0; i < chunk->rows; ++i) {
        if (!games.Add(columns[0].texts[i], columns[1].texts[i], columns[2].texts[i])) return false;
      }
    }
    if (!games.Flush()) return false;
  }
  return true;
}

bool IsParquet(const std::string& path) {
  return fs::is_directory(path) || path.ends_with(".parquet");
}

bool ForEachPgnPosition(const std::string& path, SkipCounter& skipped, const UseGame& use) {
  bool more = true;
  const auto take = [&](const chess::PgnGame& game, const std::string& place) {
    more = use({.place = place, .game = {.start = game.start, .moves = game.moves}});
    return more;
  };
  ForEachPgnGame(path, {.comments = false}, skipped, take);
  return more;
}

// Samples positions of games.
class Sampler {
 public:
  Sampler(const Sampling& sampling, SkipCounter& skipped)
      : sampling_(sampling), skipped_(skipped) {}

  bool Take(const SourceGame& source) {
    const std::vector<size_t> order = OrderFor(source.game.moves.size());
    std::vector<Board> boards = {source.game.start};
    for (chess::Move move : source.game.moves) boards.push_back(boards.back().After(move));
    std::vector<size_t> chosen;
    for (size_t ply : order) {
      if (sampling_.per_game > 0 && static_cast<int>(chosen.size()) == sampling_.per_game) break;
      if (Wanted(std::span(boards).first(ply + 1), source.place)) chosen.push_back(ply);
    }
    std::sort(chosen.begin(), chosen.end());
    for (size_t ply : chosen) {
      if (Full()) return false;
      const auto end = source.game.moves.begin() + static_cast<std::ptrdiff_t>(ply);
      positions_.push_back({source.game.start, {source.game.moves.begin(), end}});
    }
    return !Full();
  }
  std::vector<GameSoFar> Finish() { return std::move(positions_); }

 private:
  bool Full() const {
    return sampling_.limit > 0 && static_cast<int64_t>(positions_.size()) >= sampling_.limit;
  }
  // Plies of the next game in the order they are tried.
  std::vector<size_t> OrderFor(size_t moves) {
    const auto first = moves == 0 ? 0 : static_cast<size_t>(sampling_.from_ply);
    std::vector<size_t> order(moves + 1 > first ? moves + 1 - first : 0);
    std::iota(order.begin(), order.end(), first);
    if (sampling_.per_game > 0) {
      Rng rng({.seed = sampling_.seed, .sample = games_, .purpose = Purpose("positions")});
      rng.Shuffle(order);
    }
    ++games_;
    return order;
  }
  bool Wanted(std::span<const Board> game, const std::string& place) {
    if (chess::EndingOf(game) != chess::Ending::kNone) {
      skipped_.Add("the game is over", {.file = place});
      return false;
    }
    if (!seen_.insert(game.back().key()).second) {
      skipped_.Add(kDuplicateReason, {.file = place});
      return false;
    }
    return true;
  }

  Sampling sampling_;
  SkipCounter& skipped_;
  uint64_t games_ = 0;
  std::unordered_set<uint64_t> seen_;  // Keys of positions.
  std::vector<GameSoFar> positions_;
};

}  // namespace

Fields FieldsOf(Sampling& sampling) {
  Fields fields;
  fields.Add("per_game", sampling.per_game, "positions drawn from each game; 0: all", {.min = 0});
  fields.Add("from_ply", sampling.from_ply, "skip this many positions at a game's start",
             {.min = 0});
  fields.Add("limit", sampling.limit, "max positions; 0: all", {.min = 0});
  fields.Add("seed", sampling.seed, "random seed");
  return fields;
}

bool IsPgn(const std::string& path) {
  const std::string name = LowerCase(fs::path(path).filename().string());
  return name.ends_with(".pgn") || name.ends_with(".pgn.gz") || name.ends_with(".pgn.zst");
}

void ForEachPgnGame(const std::string& path, const chess::PgnReading& reading, SkipCounter& skipped,
                    const std::function<bool(const chess::PgnGame&, const std::string&)>& use) {
  chess::PgnReader reader(io::ReadFunction(io::OpenBytes(path)), reading);
  chess::PgnGame game;
  for (auto read = reader.Next(game); read != chess::PgnRead::kEnd; read = reader.Next(game)) {
    ThrowIfInterrupted();
    if (read == chess::PgnRead::kBroken) {
      const auto& problem = reader.problem();
      skipped.AddAndWarn("broken game", {.file = fmt::format("{}:{}", path, problem.line),
                                         .detail = problem.reason});
      continue;
    }
    const std::string place = fmt::format("{}:{}", path, game.line);
    const std::string variant = LowerCase(game.Tag("Variant"));
    if (variant.find("960") != std::string::npos || variant.starts_with("fische") ||
        CastlesOddly(game.start)) {
      skipped.AddAndWarn(kChess960Reason, {.file = place});
      continue;
    }
    if (!use(game, place)) return;
  }
}

void ForEachGame(const std::vector<std::string>& paths, SkipCounter& skipped, const UseGame& use) {
  for (const std::string& path : paths) {
    if (!fs::exists(path)) throw Error("{}: no such file or folder", path);
    const bool more = IsParquet(path) ? ForEachRowGame(path, skipped, use)
                      : IsPgn(path)   ? ForEachPgnPosition(path, skipped, use)
                                      : ForEachLine(path, skipped, use);
    if (!more) return;
  }
}

std::vector<GameSoFar> SamplePositions(const std::vector<std::string>& paths,
                                       const Sampling& sampling, SkipCounter& skipped) {
  Sampler sampler(sampling, skipped);
  ForEachGame(paths, skipped, [&](const SourceGame& game) { return sampler.Take(game); });
  std::vector<GameSoFar> positions = sampler.Finish();
  if (positions.empty()) {
    throw Error("{}: no usable position: {}", fmt::join(paths, ", "), skipped.Text());
  }
  return positions;
}

}  // namespace kibitz::oracles
