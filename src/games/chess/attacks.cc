#include "games/chess/attacks.h"

#include "games/chess/magics.h"

namespace kibitz::chess {
namespace {

struct Step {
  int file;
  int rank;
};
constexpr std::array<Step, 4> kRookSteps = {{{1, 0}, {-1, 0}, {0, 1}, {0, -1}}};
constexpr std::array<Step, 4> kBishopSteps = {{{1, 1}, {-1, 1}, {1, -1}, {-1, -1}}};

Bitboard Walk(Square from, Bitboard occupied, const std::array<Step, 4>& steps) {
  Bitboard attacks = 0;
  for (const Step step : steps) {
    int file = from.file() + step.file;
    int rank = from.rank() + step.rank;
    for (; file >= 0 && file < 8 && rank >= 0 && rank < 8; file += step.file, rank += step.rank) {
      const Bitboard bit = Square::At(file, rank).bit();
      attacks |= bit;
      if ((occupied & bit) != 0) break;
    }
  }
  return attacks;
}

std::array<std::array<Bitboard, 64>, 64> MakeBetween() {
  std::array<std::array<Bitboard, 64>, 64> table{};
  for (int a = 0; a < 64; ++a) {
    for (int b = 0; b < 64; ++b) {
      const Square from(a);
      const Square to(b);
      Bitboard& between = table[static_cast<size_t>(a)][static_cast<size_t>(b)];
      between = to.bit();
      if (a == b) continue;
      for (auto* steps : {&kRookSteps, &kBishopSteps}) {
        if ((Walk(from, 0, *steps) & to.bit()) == 0) continue;
        between |= Walk(from, to.bit(), *steps) & Walk(to, from.bit(), *steps);
      }
    }
  }
  return table;
}

}  // namespace

Bitboard WalkRookAttacks(Square from, Bitboard occupied) {
  return Walk(from, occupied, kRookSteps);
}
Bitboard WalkBishopAttacks(Square from, Bitboard occupied) {
  return Walk(from, occupied, kBishopSteps);
}

const char* SliderIndexName() { return KIBITZ_FAST_PEXT ? "pext" : "magic"; }

namespace internal {

template <typename Index, size_t kEntries>
SliderTable<Index, kEntries>::SliderTable(Lines lines) {
  const bool rook = lines == Lines::kRook;
  const auto& steps = rook ? kRookSteps : kBishopSteps;
  uint32_t offset = 0;
  for (int i = 0; i < 64; ++i) {
    const Square from(i);
    // A piece on the last square of a line changes nothing: that square is attacked anyway.
    const Bitboard edges = ((RankOf(0) | RankOf(7)) & ~RankOf(from.rank())) |
                           ((FileOf(0) | FileOf(7)) & ~FileOf(from.file()));
    SliderSquare& square = squares_[static_cast<size_t>(i)];
    square.mask = Walk(from, 0, steps) & ~edges;
    square.magic = (rook ? kRookMagics : kBishopMagics)[static_cast<size_t>(i)];
    square.offset = offset;
    square.shift = 64 - static_cast<uint32_t>(PopCount(square.mask));
    Bitboard occupied = 0;
    do {  // Every subset of the mask.
      attacks_[Index::Of(square, occupied)] = Walk(from, occupied, steps);
      occupied = (occupied - square.mask) & square.mask;
    } while (occupied != 0);
    offset += uint32_t{1} << PopCount(square.mask);
  }
}

template class SliderTable<MagicIndex, 102400>;
template class SliderTable<MagicIndex, 5248>;
#if KIBITZ_FAST_PEXT
template class SliderTable<PextIndex, 102400>;
template class SliderTable<PextIndex, 5248>;
#endif

const RookTable<FastIndex> kRooks(RookTable<FastIndex>::Lines::kRook);
const BishopTable<FastIndex> kBishops(BishopTable<FastIndex>::Lines::kBishop);
const std::array<std::array<Bitboard, 64>, 64> kBetween = MakeBetween();

}  // namespace internal
}  // namespace kibitz::chess
