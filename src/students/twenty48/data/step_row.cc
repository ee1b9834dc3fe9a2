#include "students/twenty48/data/step_row.h"

#include <cstring>
#include <vector>

#include "base/check.h"
#include "games/twenty48/slide.h"

namespace kibitz::twenty48 {
namespace {

using io::DType;

std::vector<io::NpyField> RowFields() {
  return {{.name = "run_id", .type = DType::kU32},
          {.name = "step_index", .type = DType::kU32},
          {.name = "board", .type = DType::kU64},
          {.name = "board_eval", .type = DType::kI32},
          {.name = "tile_65536_mask", .type = DType::kU16},
          {.name = "move_dir", .type = DType::kU8},
          {.name = "valuation_type", .type = DType::kU8},
          {.name = "ev_legal", .type = DType::kU8},
          {.name = "max_rank", .type = DType::kU8},
          {.name = "seed", .type = DType::kU32},
          {.name = "branch_evs", .type = DType::kF32, .shape = {4}}};
}

}  // namespace

const io::NpyLayout& AlignedLayout() {
  static const io::NpyLayout layout = io::NpyLayout::Aligned(RowFields());
  return layout;
}

const io::NpyLayout& PackedLayout() {
  static const io::NpyLayout layout = io::NpyLayout::Packed(RowFields());
  return layout;
}

StepRow FromPackedBytes(std::span<const std::byte> bytes) {
  constexpr size_t kBeforeGap = offsetof(StepRow, padding);
  CHECK(bytes.size() == 46);
  StepRow row;
  auto* out = reinterpret_cast<std::byte*>(&row);
  std::memcpy(out, bytes.data(), kBeforeGap);
  std::memcpy(out + offsetof(StepRow, seed), bytes.data() + kBeforeGap, 46 - kBeforeGap);
  return row;
}

Board BoardOf(const StepRow& row) {
  uint32_t extra = 0;
  for (int cell = 0; cell < kCells; ++cell) {
    const uint64_t nibble = row.board >> Board::Shift(cell) & 15;
    if (nibble == 15 && (row.tile_65536_mask >> cell & 1) != 0) extra |= 1U << (2 * cell);
  }
  return Board::FromBits(row.board, extra);
}

Result<StepRow> RowOf(const Board& board) {
  if (board.MaxRank() > 16) return Bad("the board has a 131072, which a row cannot hold");
  StepRow row;
  row.board = board.packed();
  row.tile_65536_mask = board.Over32768();
  row.max_rank = static_cast<uint8_t>(board.MaxRank());
  return row;
}

Judged JudgedOf(const StepRow& row) {
  return {.values = row.branch_evs, .legal = LegalMoves(BoardOf(row)), .move = row.move_dir};
}

}  // namespace kibitz::twenty48
