#include "games/twenty48/board.h"

#include <algorithm>

#include "base/text.h"

namespace kibitz::twenty48 {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"up", "down", "left", "right"};

}  // namespace

std::string_view NameOf(Move move) { return kNames[static_cast<size_t>(move)]; }

Result<Move> ParseMove(std::string_view name) {
  for (Move move : kMoves) {
    if (name == NameOf(move)) return move;
  }
  return Bad("{} is no move; a move is up, down, left or right", Quoted(name));
}

Result<Board> Board::FromRanks(std::span<const int> ranks) {
  if (ranks.size() != kCells) return Bad("{} cells, a board has {}", ranks.size(), kCells);
  Board board;
  for (int cell = 0; cell < kCells; ++cell) {
    const int rank = ranks[static_cast<size_t>(cell)];
    if (rank < 0 || rank > kMaxRank) {
      return Bad("rank {} in cell {}; ranks are 0 to {}", rank, cell, kMaxRank);
    }
    board = board.With(cell, rank);
  }
  return board;
}

std::array<int, kCells> Board::Ranks() const {
  std::array<int, kCells> ranks{};
  for (int cell = 0; cell < kCells; ++cell) ranks[static_cast<size_t>(cell)] = Rank(cell);
  return ranks;
}

Board Board::With(int cell, int rank) const {
  CHECK(rank >= 0 && rank <= kMaxRank);
  const auto nibble = static_cast<uint64_t>(std::min(rank, 15));
  const auto excess = static_cast<uint32_t>(std::max(rank - 15, 0));
  return FromBits((packed_ & ~(uint64_t{15} << Shift(cell))) | nibble << Shift(cell),
                  (extra_ & ~(3U << (2 * cell))) | excess << (2 * cell));
}

int Board::MaxRank() const {
  int max = 0;
  for (int cell = 0; cell < kCells; ++cell) max = std::max(max, Rank(cell));
  return max;
}

int64_t Board::TileSum() const {
  int64_t sum = 0;
  for (int cell = 0; cell < kCells; ++cell) sum += TileOf(Rank(cell));
  return sum;
}

uint16_t Board::Over32768() const {
  uint32_t cells = 0;
  for (int cell = 0; cell < kCells; ++cell) {
    if (Rank(cell) > 15) cells |= 1U << cell;
  }
  return static_cast<uint16_t>(cells);
}

}  // namespace kibitz::twenty48
