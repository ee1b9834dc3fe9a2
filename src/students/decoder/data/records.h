// Rows of Parquet files to checked positions and moves: what a teacher wrote, ready to be made into
// sequences. A row that is wrong is refused with its reason; nothing wrong gets through.
//
//   SearchReader reader(path);
//   std::optional<SearchRow> row = reader.Read(cells, row_number, skipped);
//
// Moves of searches are standard UCI, moves of games may be in the network's own notation too; both
// are read with the position. Castling rights that the pieces do not support are dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/skip_counter.h"
#include "io/tables/jsonl.h"
#include "students/decoder/data/game_sequence.h"
#include "students/decoder/data/thinking_sequence.h"

namespace kibitz::decoder {

// Win, draw and loss for the side to move; nothing where the file has none.
struct WdlCells {
  std::optional<double> win;
  std::optional<double> draw;
  std::optional<double> loss;
};

struct SearchCells {
  std::string_view fen;
  std::string_view variations;  // JSON.
  std::string_view mcts_action;
  WdlCells wdl;
};

struct PlyCells {
  std::string_view fen;
  std::string_view played_move;
  std::string_view best_move;
  WdlCells wdl;
  // The value of the move played, for the side that plays it; used instead of wdl where known.
  std::optional<double> played_q;
  std::optional<double> played_d;
};

class SearchReader {
 public:
  explicit SearchReader(std::string file) : file_(file), json_(std::move(file)) {}

  // Nothing when the row cannot be used; `skipped` says why. A missing or impossible wdl
  // only loses the value.
  std::optional<SearchRow> Read(const SearchCells& cells, int64_t row, SkipCounter& skipped);

 private:
  std::string file_;
  io::JsonCell json_;
};

class PlyReader {
 public:
  explicit PlyReader(std::string file) : file_(std::move(file)) {}

  // Nothing when the row cannot be used. Its `starts_run` is left to who knows the ply before.
  std::optional<Ply> Read(const PlyCells& cells, int64_t row, SkipCounter& skipped);

 private:
  std::string file_;
};

// Whether both boards are the same to the network.
bool SameTokens(const chess::Board& a, const chess::Board& b);

}  // namespace kibitz::decoder
