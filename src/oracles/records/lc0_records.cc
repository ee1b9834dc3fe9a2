#include "oracles/records/lc0_records.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/pgn_writer.h"
#include "io/bytes/byte_sink.h"
#include "io/bytes/byte_source.h"
#include "io/bytes/tar_reader.h"
#include "io/tables/parquet.h"

namespace kibitz::oracles {
namespace {

namespace fs = std::filesystem;
using chess::MoveStyle;
using io::ColumnType;

constexpr uint64_t kMaxPackedBytes = kMaxLc0GameBytes;

struct GameRow {
  std::string game_id;
  int64_t ply = 0;
  std::string fen;
  std::string played;
  std::string best;
  Wdl wdl;
  Wdl played_wdl;
};

struct VisitRow {
  std::string fen;
  std::string move;
  int64_t visits = 0;  // Of the whole search.
  int64_t score = 0;   // For White.
};

// What one file makes.
struct Block {
  std::vector<GameRow> rows;
  std::vector<VisitRow> visits;
  std::string pgn;
  std::vector<std::string> results;  // Of its games.
  SkipCounter skipped;
  int64_t read = 0;
};

const Wdl& ValueOf(const Lc0Ply& ply, Lc0Value value) {
  if (value == Lc0Value::kRoot) return ply.root_wdl;
  return value == Lc0Value::kResult ? ply.result : ply.best_wdl;
}

chess::GameResult ResultOf(const Lc0Ply& ply) {
  if (ply.result.draw >= std::max(ply.result.win, ply.result.loss)) return chess::GameResult::kDraw;
  const bool white = ply.board.side_to_move() == chess::Color::kWhite;
  return (ply.result.win > ply.result.loss) == white ? chess::GameResult::kWhiteWins
                                                     : chess::GameResult::kBlackWins;
}

void AddVisits(const Lc0Ply& ply, Block& block) {
  float most = 0;
  for (const Lc0Visit& visit : ply.visited) most = std::max(most, visit.share);
  const std::string fen = ToFen(ply.board, {.counters = false});
  const bool white = ply.board.side_to_move() == chess::Color::kWhite;
  for (const Lc0Visit& visit : ply.visited) {
    const double log = std::log(static_cast<double>(visit.share) / static_cast<double>(most));
    const int64_t score = std::llround(kVisitTemperature * log);
    block.visits.push_back({.fen = fen,
                            .move = ToText(ply.board, visit.move, MoveStyle::kUciRook),
                            .visits = ply.visits,
                            .score = white ? score : -score});
  }
}

void AddPgn(const std::string& id, std::span<const Lc0Ply> plies, Block& block) {
  chess::PgnGame game;
  game.tags = {{"Event", "lc0 training data"}, {"Site", id}, {"White", "lc0"}, {"Black", "lc0"}};
  game.start = plies.front().board;
  game.result = ResultOf(plies.back());
  for (const Lc0Ply& ply : plies) game.moves.push_back(ply.played);
  block.pgn += chess::ToPgn(game) + "\n";
}

// The plies that follow from each other.
void AddGame(const std::string& id, std::span<const Lc0Ply> plies, const Lc0RecordOptions& options,
             Block& block) {
  for (const Lc0Ply& ply : plies) {
    block.rows.push_back({.game_id = id,
                          .ply = ply.ply,
                          .fen = ToFen(ply.board),
                          .played = ToText(ply.board, ply.played, MoveStyle::kModel),
                          .best = ToText(ply.board, ply.best, MoveStyle::kModel),
                          .wdl = ValueOf(ply, options.value),
                          .played_wdl = ply.played_wdl});
    if (!options.policy.empty()) AddVisits(ply, block);
  }
  if (!options.pgn.empty()) AddPgn(id, plies, block);
  block.results.emplace_back(NameOf(ResultOf(plies.back())));
}

Block MakeBlock(const std::string& bytes, const std::string& name,
                const Lc0RecordOptions& options) {
  Block block;
  const Lc0Game game = ReadLc0Game(bytes, name, {.visits = !options.policy.empty()}, block.skipped);
  block.read = static_cast<int64_t>(game.rows);
  const std::span<const Lc0Ply> plies = game.plies;
  for (size_t begin = 0; begin < plies.size();) {
    size_t end = begin + 1;
    while (end < plies.size() && plies[end].follows) ++end;
    const std::string id = begin == 0 ? game.id : fmt::format("{}#{}", game.id, plies[begin].ply);
    AddGame(id, plies.subspan(begin, end - begin), options, block);
    begin = end;
  }
  return block;
}

// Where the rows go.
class Outputs {
 public:
  explicit Outputs(const Lc0RecordOptions& options)
      : games_(options.games,
               {{"game_id", ColumnType::kText},
                {"ply", ColumnType::kInt64},
                {"fen", ColumnType::kText},
                {"played_move", ColumnType::kText},
                {"best_move", ColumnType::kText},
                {"win", ColumnType::kDouble},
                {"draw", ColumnType::kDouble},
                {"loss", ColumnType::kDouble},
                {"played_q", ColumnType::kDouble},
                {"played_d", ColumnType::kDouble}},
               {.metadata = {{"kibitz", options.note.dump()}}}) {
    if (!options.policy.empty()) {
      policy_.emplace(options.policy,
                      std::vector<io::ColumnSpec>{{"fen", ColumnType::kText},
                                                  {"line", ColumnType::kText},
                                                  {"depth", ColumnType::kInt64},
                                                  {"knodes", ColumnType::kInt64},
                                                  {"cp", ColumnType::kInt64},
                                                  {"mate", ColumnType::kInt64}},
                      io::ParquetWriterOptions{.metadata = {{"kibitz", options.note.dump()}}});
    }
    if (!options.pgn.empty()) pgn_.emplace(options.pgn);
  }

  void Write(const Block& block, Lc0Records& made) {
    for (const GameRow& row : block.rows) Write(row);
    if (policy_) {
      for (const VisitRow& row : block.visits) Write(row);
    }
    if (pgn_) pgn_->Write(block.pgn);
    made.rows += block.read;
    made.positions += static_cast<int64_t>(block.rows.size());
    made.policy_rows += static_cast<int64_t>(block.visits.size());
    made.games += static_cast<int64_t>(block.results.size());
    for (const std::string& result : block.results) ++made.results[result];
  }

  void Finish() {
    if (pgn_) pgn_->Commit();
    if (policy_) policy_->Finish();
    games_.Finish();
  }

 private:
  void Write(const GameRow& row) {
    games_.SetText(0, row.game_id);
    games_.SetInt(1, row.ply);
    games_.SetText(2, row.fen);
    games_.SetText(3, row.played);
    games_.SetText(4, row.best);
    games_.SetDouble(5, row.wdl.win);
    games_.SetDouble(6, row.wdl.draw);
    games_.SetDouble(7, row.wdl.loss);
    games_.SetDouble(8, row.played_wdl.win - row.played_wdl.loss);
    games_.SetDouble(9, row.played_wdl.draw);
    games_.EndRow();
  }

  // The visits of the search stand for its depth, so that of two searches of a position the larger
  // makes the label.
  void Write(const VisitRow& row) {
    constexpr int64_t kMaxDepth = 32767;
    policy_->SetText(0, row.fen);
    policy_->SetText(1, row.move);
    policy_->SetInt(2, std::clamp<int64_t>(row.visits, 1, kMaxDepth));
    policy_->SetInt(3, (row.visits + 999) / 1000);
    policy_->SetInt(4, row.score);
    policy_->EndRow();
  }

  io::ParquetWriter games_;
  std::optional<io::ParquetWriter> policy_;
  std::optional<io::ByteSink> pgn_;
};

// Files go to the threads, and blocks to the outputs in the order of the files.
class Line {
 public:
  Line(const Lc0RecordOptions& options, SkipCounter& skipped, Progress& progress)
      : options_(options),
        skipped_(skipped),
        progress_(progress),
        outputs_(options),
        pool_(options.threads > 0 ? options.threads : HardwareThreads()) {}

  bool full() const {
    return options_.limit > 0 && static_cast<int64_t>(names_.size()) >= options_.limit;
  }

  void Take(std::string bytes, const std::string& file) {
    ThrowIfInterrupted();
    // Two games of one name would become one for who reads the records.
    const int earlier = names_[std::hash<std::string>{}(file)]++;
    std::string name = earlier == 0 ? file : fmt::format("{}~{}", file, earlier + 1);
    blocks_.push_back(pool_.Submit([this, bytes = std::move(bytes), name = std::move(name)] {
      return MakeBlock(bytes, name, options_);
    }));
    while (blocks_.size() >= static_cast<size_t>(4 * pool_.size())) WriteFirst();
  }

  Lc0Records Finish() {
    while (!blocks_.empty()) WriteFirst();
    outputs_.Finish();
    return std::move(made_);
  }

 private:
  void WriteFirst() {
    const Block block = blocks_.front().get();
    blocks_.pop_front();
    ++made_.files;
    outputs_.Write(block, made_);
    skipped_.MergeAndWarn(block.skipped);
    progress_.Add(static_cast<uint64_t>(block.read));
  }

  const Lc0RecordOptions& options_;
  SkipCounter& skipped_;
  Progress& progress_;
  Outputs outputs_;
  Lc0Records made_;
  std::unordered_map<uint64_t, int> names_;  // By hash: how often each came.
  ThreadPool pool_;
  std::deque<std::future<Block>> blocks_;
};

bool IsTarName(std::string_view name) {
  for (const std::string_view ending : {".tar", ".tar.gz", ".tgz", ".tar.zst"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

void ReadTar(const std::string& path, SkipCounter& skipped, Line& line) {
  try {
    io::TarReader tar(io::OpenBytes(path));
    while (const auto entry = line.full() ? std::nullopt : tar.Next()) {
      if (entry->size > kMaxPackedBytes) {
        skipped.AddAndWarn("files that unpack to over 64 MB", {.file = path + "/" + entry->name});
        continue;
      }
      line.Take(tar.ReadAll(), path + "/" + entry->name);
    }
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::kInterrupted) throw;
    skipped.AddAndWarn("damaged archives", {.file = error.message()});
  }
}

void ReadFile(const std::string& path, SkipCounter& skipped, Line& line) {
  if (IsTarName(path)) return ReadTar(path, skipped, line);
  if (fs::file_size(path) > kMaxPackedBytes) {
    skipped.AddAndWarn("files that unpack to over 64 MB", {.file = path});
    return;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error::System("cannot read " + path);
  std::string bytes(fs::file_size(path), '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(in.gcount()));
  line.Take(std::move(bytes), path);
}

}  // namespace

Fields FieldsOf(Lc0RecordOptions& options) {
  Fields fields;
  fields.AddChoice(
      "value", options.value,
      "win, draw and loss of a position: best (of the best move), root (mean of the "
      "search), result (of the game)",
      {{"best", Lc0Value::kBest}, {"root", Lc0Value::kRoot}, {"result", Lc0Value::kResult}});
  fields.Add("limit", options.limit, "max games; 0: all", {.min = 0});
  return fields;
}

nlohmann::ordered_json Lc0Records::ToJson() const {
  return {{"files", files},
          {"rows", rows},
          {"positions", positions},
          {"games", games},
          {"policy_rows", policy_rows},
          {"results", results}};
}

std::vector<std::string> FindLc0Files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      if (!fs::exists(path)) throw Error("{}: no such file or folder", path);
      files.push_back(path);
      continue;
    }
    const size_t begin = files.size();
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      const std::string name = entry.path().string();
      if (entry.is_regular_file() && (name.ends_with(".gz") || IsTarName(name))) {
        files.push_back(name);
      }
    }
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(begin), files.end());
    if (files.size() == begin) {
      throw Error("{}: no .gz or .tar file in this folder; expected lc0's training data", path);
    }
  }
  return files;
}

Lc0Records MakeLc0Records(const std::vector<std::string>& paths, const Lc0RecordOptions& options,
                          SkipCounter& skipped, Progress& progress) {
  Line line(options, skipped, progress);
  for (const std::string& path : FindLc0Files(paths)) {
    if (line.full()) break;
    ReadFile(path, skipped, line);
  }
  return line.Finish();
}

}  // namespace kibitz::oracles
