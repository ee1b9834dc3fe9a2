// A row of a pack: a position of a game, the move made, and the oracle's values of all four.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "games/twenty48/board.h"
#include "io/tables/npy.h"
#include "students/twenty48/data/targets.h"

namespace kibitz::twenty48 {

struct StepRow {
  uint32_t run_id = 0;  // The game, as in metadata.db.
  uint32_t step_index = 0;
  uint64_t board = 0;            // Board::packed(): nibbles, 15 for 32768 and 65536.
  int32_t board_eval = 0;        // Another program's heuristic; we write 0 and never read it.
  uint16_t tile_65536_mask = 0;  // Bit i: cell i holds 65536.
  uint8_t move_dir = 0;          // IndexOf(move).
  uint8_t valuation_type = 0;    // By valuation_types.json.
  uint8_t ev_legal = 0;          // Bit IndexOf(move) for each move with a value: see JudgedOf.
  uint8_t max_rank = 0;
  uint16_t padding = 0;
  uint32_t seed = 0;
  std::array<float, 4> branch_evs{};  // By IndexOf(move); 0 where none.
};
static_assert(sizeof(StepRow) == 48);

// The struct as in memory, 48 bytes, and the same fields without padding, 46 bytes.
const io::NpyLayout& AlignedLayout();
const io::NpyLayout& PackedLayout();
// One row of 46 bytes.
StepRow FromPackedBytes(std::span<const std::byte> bytes);

Board BoardOf(const StepRow& row);
// Sets board, tile_65536_mask and max_rank. Bad for a board with a 131072, which rows
// cannot hold.
Result<StepRow> RowOf(const Board& board);

// The row's values and move. Legality comes from the board: rows of tuple lookups have a
// value, 0.0, and a bit in ev_legal for illegal moves too.
Judged JudgedOf(const StepRow& row);

}  // namespace kibitz::twenty48
