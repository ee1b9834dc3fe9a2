#include "games/twenty48/slide.h"

#include <memory>

#include "games/twenty48/symmetry.h"

namespace kibitz::twenty48 {
namespace {

using Line = std::array<int, 4>;  // Ranks, the first one at the wall.

struct SlidLine {
  Line line{};
  int32_t points = 0;
};

SlidLine SlideLine(const Line& line) {
  SlidLine slid;
  size_t filled = 0;
  bool may_merge = false;  // The last tile laid down was not made in this move.
  for (int rank : line) {
    if (rank == 0) continue;
    if (may_merge && slid.line[filled - 1] == rank && rank < kMaxRank) {
      slid.points += static_cast<int32_t>(TileOf(++slid.line[filled - 1]));
      may_merge = false;
    } else {
      slid.line[filled++] = rank;
      may_merge = true;
    }
  }
  return slid;
}

// Rows of four nibbles, the left one on top. Rows with two tiles of nibble 15 are not used.
struct RowTables {
  std::array<uint16_t, 65536> left;
  std::array<uint16_t, 65536> right;
  std::array<int32_t, 65536> points;  // The same to either side.
};

std::unique_ptr<const RowTables> MakeRowTables() {
  auto tables = std::make_unique<RowTables>();
  for (unsigned row = 0; row < 65536; ++row) {
    const Line line = {static_cast<int>(row >> 12), static_cast<int>(row >> 8 & 15),
                       static_cast<int>(row >> 4 & 15), static_cast<int>(row & 15)};
    const SlidLine left = SlideLine(line);
    const SlidLine right = SlideLine({line[3], line[2], line[1], line[0]});
    const auto pack = [](int a, int b, int c, int d) {
      return static_cast<uint16_t>((a & 15) << 12 | (b & 15) << 8 | (c & 15) << 4 | (d & 15));
    };
    tables->left[row] = pack(left.line[0], left.line[1], left.line[2], left.line[3]);
    tables->right[row] = pack(right.line[3], right.line[2], right.line[1], right.line[0]);
    tables->points[row] = left.points;
  }
  return tables;
}

const RowTables& Tables() {
  static const std::unique_ptr<const RowTables> tables = MakeRowTables();
  return *tables;
}

uint64_t MapRows(uint64_t packed, const std::array<uint16_t, 65536>& rows) {
  return uint64_t{rows[packed >> 48]} << 48 | uint64_t{rows[packed >> 32 & 0xFFFF]} << 32 |
         uint64_t{rows[packed >> 16 & 0xFFFF]} << 16 | uint64_t{rows[packed & 0xFFFF]};
}

int32_t PointsOf(uint64_t packed, const std::array<int32_t, 65536>& points) {
  return points[packed >> 48] + points[packed >> 32 & 0xFFFF] + points[packed >> 16 & 0xFFFF] +
         points[packed & 0xFFFF];
}

// The lowest bit of each nibble that is 15.
uint64_t FullNibbles(uint64_t packed) {
  const uint64_t both = packed & packed >> 2;
  return both & both >> 1 & 0x1111111111111111;
}

// Two tiles of 32768 and more may merge, or differ although their nibbles are equal.
bool FitsTables(uint64_t packed) {
  const uint64_t full = FullNibbles(packed);
  return (full & (full - 1)) == 0;
}

// The one tile beyond 32768, if there is one, has moved: its excess goes with it. If the move made
// a 32768 beside it, their nibbles do not tell which is which.
Slid Finished(uint64_t moved, int32_t points, const Board& before, Move move) {
  if (before.extra() == 0) return {Board::FromBits(moved), points};
  if (!FitsTables(moved)) return SlidePlain(before, move);
  const int excess = (before.extra() & 0x55555555) != 0 ? 1 : 2;
  const int cell = 15 - std::countr_zero(FullNibbles(moved)) / 4;
  return {Board::FromBits(moved, static_cast<uint32_t>(excess) << (2 * cell)), points};
}

int CellOf(Move move, int line, int place) {
  switch (move) {
    case Move::kUp:
      return 4 * place + line;
    case Move::kDown:
      return 4 * (3 - place) + line;
    case Move::kLeft:
      return 4 * line + place;
    case Move::kRight:
      return 4 * line + 3 - place;
  }
  return 0;
}

}  // namespace

Slid SlidePlain(const Board& board, Move move) {
  Slid slid;
  for (int line = 0; line < 4; ++line) {
    Line ranks{};
    for (int place = 0; place < 4; ++place) {
      ranks[static_cast<size_t>(place)] = board.Rank(CellOf(move, line, place));
    }
    const SlidLine moved = SlideLine(ranks);
    for (int place = 0; place < 4; ++place) {
      slid.board =
          slid.board.With(CellOf(move, line, place), moved.line[static_cast<size_t>(place)]);
    }
    slid.points += moved.points;
  }
  return slid;
}

Slid Slide(const Board& board, Move move) {
  const uint64_t packed = board.packed();
  if (!FitsTables(packed)) return SlidePlain(board, move);
  const RowTables& tables = Tables();
  const bool upright = move == Move::kUp || move == Move::kDown;
  const bool to_left = move == Move::kUp || move == Move::kLeft;
  const uint64_t rows = upright ? Transpose(packed) : packed;
  const uint64_t moved = MapRows(rows, to_left ? tables.left : tables.right);
  return Finished(upright ? Transpose(moved) : moved, PointsOf(rows, tables.points), board, move);
}

std::array<Slid, 4> SlideAll(const Board& board) {
  const uint64_t packed = board.packed();
  if (!FitsTables(packed)) {
    return {SlidePlain(board, Move::kUp), SlidePlain(board, Move::kDown),
            SlidePlain(board, Move::kLeft), SlidePlain(board, Move::kRight)};
  }
  const RowTables& tables = Tables();
  const uint64_t columns = Transpose(packed);
  const int32_t upright = PointsOf(columns, tables.points);
  const int32_t level = PointsOf(packed, tables.points);
  return {Finished(Transpose(MapRows(columns, tables.left)), upright, board, Move::kUp),
          Finished(Transpose(MapRows(columns, tables.right)), upright, board, Move::kDown),
          Finished(MapRows(packed, tables.left), level, board, Move::kLeft),
          Finished(MapRows(packed, tables.right), level, board, Move::kRight)};
}

unsigned LegalMoves(const Board& board) {
  const std::array<Slid, 4> slid = SlideAll(board);
  unsigned legal = 0;
  for (size_t i = 0; i < slid.size(); ++i) legal |= (slid[i].legal(board) ? 1U : 0U) << i;
  return legal;
}

}  // namespace kibitz::twenty48
