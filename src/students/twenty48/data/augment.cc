#include "students/twenty48/data/augment.h"

#include "base/check.h"

namespace kibitz::twenty48 {
namespace {

// Where the cell in `row` and `column` of the result comes from.
int SourceCell(const View& view, int row, int column) {
  if (view.flip == 1) column = 3 - column;
  if (view.flip == 2) row = 3 - row;
  for (int turn = 0; turn < view.turns; ++turn) {
    const int before = row;  // Clockwise: the left column becomes the top row, from its foot.
    row = 3 - column;
    column = before;
  }
  return 4 * row + column;
}

}  // namespace

std::array<uint8_t, kCells> CellMap(const View& view) {
  CHECK(view.turns >= 0 && view.turns < 4 && view.flip >= 0 && view.flip < 3);
  std::array<uint8_t, kCells> map{};
  for (int cell = 0; cell < kCells; ++cell) {
    map[static_cast<size_t>(cell)] = static_cast<uint8_t>(SourceCell(view, cell / 4, cell % 4));
  }
  return map;
}

std::array<uint8_t, 4> MoveMap(const View& view) {
  constexpr std::array<uint8_t, 4> kClockwise = {3, 2, 0, 1};  // Up becomes right, ...
  std::array<uint8_t, 4> map = {0, 1, 2, 3};
  for (uint8_t& move : map) {
    for (int turn = 0; turn < view.turns; ++turn) move = kClockwise[move];
    if (view.flip == 1 && move >= 2) move = static_cast<uint8_t>(5 - move);
    if (view.flip == 2 && move < 2) move = static_cast<uint8_t>(1 - move);
  }
  return map;
}

Board Seen(const Board& board, const View& view) {
  const std::array<uint8_t, kCells> cells = CellMap(view);
  uint64_t packed = 0;
  uint32_t extra = 0;
  for (int cell = 0; cell < kCells; ++cell) {
    const int from = cells[static_cast<size_t>(cell)];
    packed |= (board.packed() >> Board::Shift(from) & 15) << Board::Shift(cell);
    extra |= (board.extra() >> (2 * from) & 3) << (2 * cell);
  }
  return Board::FromBits(packed, extra);
}

View CanonicalView(const Board& board) {
  View best;
  uint64_t max = 0;
  for (int flip : {0, 1}) {
    for (int turns = 0; turns < 4; ++turns) {
      const uint64_t packed = Seen(board, {turns, flip}).packed();
      if (packed > max) {
        max = packed;
        best = {turns, flip};
      }
    }
  }
  return best;
}

StepRow Augmented(const StepRow& row, const View& view) {
  const std::array<uint8_t, kCells> cells = CellMap(view);
  const std::array<uint8_t, 4> moves = MoveMap(view);
  StepRow out = row;
  out.board = 0;
  out.tile_65536_mask = 0;
  for (int cell = 0; cell < kCells; ++cell) {
    const int from = cells[static_cast<size_t>(cell)];
    out.board |= (row.board >> Board::Shift(from) & 15) << Board::Shift(cell);
    const unsigned large = row.tile_65536_mask >> from & 1U;
    out.tile_65536_mask = static_cast<uint16_t>(out.tile_65536_mask | large << cell);
  }
  out.move_dir = moves[row.move_dir];
  out.ev_legal = 0;
  for (size_t move = 0; move < 4; ++move) {
    const unsigned legal = row.ev_legal >> move & 1U;
    out.ev_legal = static_cast<uint8_t>(out.ev_legal | legal << moves[move]);
    out.branch_evs[moves[move]] = row.branch_evs[move];
  }
  return out;
}

}  // namespace kibitz::twenty48
