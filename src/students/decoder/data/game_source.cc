// Games: the rows of a game are one candidate. A unit is the games that begin in a row group; where
// a file's games do not lie together, the unit is the file.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "games/chess/fen.h"
#include "io/tables/parquet.h"
#include "students/decoder/data/records.h"
#include "students/decoder/data/source.h"
#include "students/decoder/data/table.h"
#include "students/decoder/data/tokens.h"

namespace kibitz::decoder {
namespace {

using io::ColumnType;

enum Columns : size_t { kGame, kPly, kFen, kPlayed, kBest, kWin, kDraw, kLoss, kPlayedQ, kPlayedD };

const std::vector<TableColumn>& GameColumns() {
  static const std::vector<TableColumn> columns = {{{"game_id", ColumnType::kText}},
                                                   {{"ply", ColumnType::kInt64}},
                                                   {{"fen", ColumnType::kText}},
                                                   {{"played_move", ColumnType::kText}},
                                                   {{"best_move", ColumnType::kText}},
                                                   {{"win", ColumnType::kDouble}, false},
                                                   {{"draw", ColumnType::kDouble}, false},
                                                   {{"loss", ColumnType::kDouble}, false},
                                                   {{"played_q", ColumnType::kDouble}, false},
                                                   {{"played_d", ColumnType::kDouble}, false}};
  return columns;
}

PlyCells PlyCellsAt(const Table& table, const io::Chunk& chunk, size_t row) {
  return {.fen = table.Text(chunk, kFen, row).value_or(""),
          .played_move = table.Text(chunk, kPlayed, row).value_or(""),
          .best_move = table.Text(chunk, kBest, row).value_or(""),
          .wdl = WdlAt(table, chunk, kWin, row),
          .played_q = table.Double(chunk, kPlayedQ, row),
          .played_d = table.Double(chunk, kPlayedD, row)};
}

// A row of a game as it was read.
struct GameRow {
  int64_t ply = 0;
  int64_t row = 0;
  std::optional<Ply> read;
};

class GameUnit : public Unit {
 public:
  explicit GameUnit(const GameOptions& options) : options_(options) {}

  // Sorts the rows by ply and marks where one does not follow from the one before.
  void Add(std::vector<GameRow>& rows, const std::string& file, SkipCounter& skipped) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const GameRow& a, const GameRow& b) { return a.ply < b.ply; });
    const size_t first = plies_.size();
    bool broken = false;  // A row between this one and the last good one was refused.
    for (GameRow& row : rows) {
      if (!row.read) {
        broken = true;
        continue;
      }
      Ply ply = *row.read;
      ply.starts_run = plies_.size() == first || broken || !Follows(plies_.back(), ply);
      if (ply.starts_run && plies_.size() > first && !broken) {
        skipped.Add("position does not follow from the move before it, sequence ends there",
                    {.file = file, .row = row.row, .detail = chess::ToFen(ply.board)});
      }
      plies_.push_back(ply);
      broken = false;
    }
    games_.push_back({first, plies_.size() - first});
  }
  void ShrinkToFit() { plies_.shrink_to_fit(); }

  bool Usable(size_t candidate) const override { return games_[candidate].count > 0; }
  Sequence Make(size_t candidate, Rng& rng) const override {
    const auto [first, count] = games_[candidate];
    return GameSequence(std::span(plies_).subspan(first, count), options_, rng);
  }
  size_t Bytes() const override {
    return plies_.capacity() * sizeof(Ply) + games_.capacity() * sizeof(Game);
  }
  size_t games() const { return games_.size(); }

 private:
  struct Game {
    size_t first;
    size_t count;
  };

  static bool Follows(const Ply& before, const Ply& ply) {
    const Result<chess::Move> move = MoveOf(before.board, before.played);
    return move && SameTokens(before.board.After(*move), ply.board);
  }

  GameOptions options_;
  std::vector<Ply> plies_;
  std::vector<Game> games_;
};

// The games that begin in some rows of a file.
struct Piece {
  size_t file = 0;
  size_t first_group = 0;
  uint64_t skip_rows = 0;  // Of the first group: the end of a game that began before.
  uint64_t games = 0;
  bool scattered = false;  // The whole file, its rows in any order.
};

class GameSource : public Source {
 public:
  GameSource(const std::vector<std::string>& paths, const GameOptions& options)
      : Source("games"), reader_(paths), options_(options) {
    for (size_t file = 0; file < reader_.files().size(); ++file) {
      tables_.emplace_back(reader_, file, GameColumns(), skipped_at_open());
      if (reader_.Info(file).rows == 0) {
        skipped_at_open().Add("empty file", {.file = reader_.Info(file).path});
        continue;
      }
      CheckUsable(file);
      IndexFile(file);
    }
    CheckNotEmpty();
  }

 private:
  // Calls use(number in file, cells at chunk and row) from a row group on, until it returns false.
  template <typename Use>
  void ForEachRow(size_t file, size_t first_group, Use use) const {
    const io::ParquetInfo& info = reader_.Info(file);
    for (size_t group = first_group; group < info.row_groups.size(); ++group) {
      auto row = static_cast<int64_t>(info.row_groups[group].first_row);
      io::ParquetScan scan = tables_[file].Scan(reader_, {{file, group}});
      while (const io::Chunk* chunk = scan.Next()) {
        for (size_t i = 0; i < chunk->rows; ++i, ++row) {
          if (!use(row, *chunk, i)) return;
        }
      }
    }
  }

  void CheckUsable(size_t file) const {
    SkipCounter skipped;
    const io::ParquetInfo& info = reader_.Info(file);
    PlyReader plies(info.path);
    bool usable = false;
    ForEachRow(file, 0, [&](int64_t row, const io::Chunk& chunk, size_t i) {
      usable = plies.Read(PlyCellsAt(tables_[file], chunk, i), row, skipped).has_value();
      return !usable;
    });
    if (!usable) {
      throw Error("{}: none of its {} rows can be used: {}", info.path, info.rows, skipped.Text());
    }
  }

  // Reads the game ids alone, to know where games begin.
  void IndexFile(size_t file) {
    const io::ParquetInfo& info = reader_.Info(file);
    std::vector<Piece> pieces;
    std::unordered_set<size_t> seen;  // Hashes of the ids.
    std::string current;
    bool scattered = false;
    for (size_t group = 0; group < info.row_groups.size(); ++group) {
      Piece piece{.file = file, .first_group = group};
      io::ParquetScan scan =
          reader_.ScanRowGroups({{"game_id", ColumnType::kText}}, {{file, group}});
      bool first_row = group == 0;
      while (const io::Chunk* chunk = scan.Next()) {
        for (const std::string_view id : chunk->columns[0].texts) {
          if (!first_row && id == current) {
            if (piece.games == 0) ++piece.skip_rows;
            continue;
          }
          first_row = false;
          current = id;
          ++piece.games;
          if (!seen.insert(std::hash<std::string_view>{}(id)).second) scattered = true;
        }
      }
      if (piece.games > 0) pieces.push_back(piece);
    }
    if (scattered) {
      LogInfo("{}: the rows of a game do not lie together; the file is read whole", info.path);
      pieces = {{.file = file, .games = seen.size(), .scattered = true}};
    }
    for (const Piece& piece : pieces) {
      pieces_.push_back(piece);
      AddUnit(piece.games);
    }
  }

  std::shared_ptr<const Unit> Decode(size_t unit, SkipCounter& skipped) const override {
    const Piece& piece = pieces_[unit];
    auto result = std::make_shared<GameUnit>(options_);
    if (piece.scattered) {
      DecodeScattered(piece, *result, skipped);
    } else {
      DecodeInOrder(piece, *result, skipped);
    }
    CHECK(result->games() == piece.games);
    result->ShrinkToFit();
    return result;
  }

  void DecodeInOrder(const Piece& piece, GameUnit& unit, SkipCounter& skipped) const {
    const std::string& path = reader_.Info(piece.file).path;
    const Table& table = tables_[piece.file];
    PlyReader plies(path);
    std::vector<GameRow> game;
    std::string current;
    uint64_t begun = 0;
    uint64_t skip = piece.skip_rows;
    ForEachRow(piece.file, piece.first_group, [&](int64_t row, const io::Chunk& chunk, size_t i) {
      if (skip > 0) {
        --skip;
        return true;
      }
      const std::string_view id = table.Text(chunk, kGame, i).value_or("");
      if (begun == 0 || id != current) {
        if (begun > 0) unit.Add(game, path, skipped);
        game.clear();
        if (begun == piece.games) return false;
        ++begun;
        current = id;
      }
      game.push_back({table.Int(chunk, kPly, i).value_or(row), row,
                      plies.Read(PlyCellsAt(table, chunk, i), row, skipped)});
      return true;
    });
    if (!game.empty()) unit.Add(game, path, skipped);
  }

  void DecodeScattered(const Piece& piece, GameUnit& unit, SkipCounter& skipped) const {
    const std::string& path = reader_.Info(piece.file).path;
    const Table& table = tables_[piece.file];
    PlyReader plies(path);
    std::unordered_map<size_t, size_t> numbers;  // By hash of the id.
    std::vector<std::vector<GameRow>> games;
    ForEachRow(piece.file, 0, [&](int64_t row, const io::Chunk& chunk, size_t i) {
      const size_t id = std::hash<std::string_view>{}(table.Text(chunk, kGame, i).value_or(""));
      const size_t number = numbers.emplace(id, games.size()).first->second;
      if (number == games.size()) games.emplace_back();
      games[number].push_back({table.Int(chunk, kPly, i).value_or(row), row,
                               plies.Read(PlyCellsAt(table, chunk, i), row, skipped)});
      return true;
    });
    for (std::vector<GameRow>& game : games) unit.Add(game, path, skipped);
  }

  io::ParquetReader reader_;
  GameOptions options_;
  std::vector<Table> tables_;  // By file.
  std::vector<Piece> pieces_;  // By unit.
};

}  // namespace

std::unique_ptr<Source> OpenGames(const std::vector<std::string>& paths,
                                  const GameOptions& options) {
  return std::make_unique<GameSource>(paths, options);
}

}  // namespace kibitz::decoder
