#include "oracles/lc0/planes.h"

#include <bit>
#include <optional>

namespace kibitz::oracles {
namespace {

using chess::Bitboard;
using chess::Board;
using chess::CastlingSide;
using chess::Color;

constexpr size_t kBoardPlanes = 13;
constexpr size_t kFirstRight = 104;
constexpr size_t kBlackToMove = 108;
constexpr size_t kClock = 109;
constexpr size_t kOnes = 111;

// As this side sees it: for Black the ranks are mirrored.
Bitboard SeenBy(Color color, Bitboard set) {
  return color == Color::kWhite ? set : __builtin_bswap64(set);
}

void Fill(Lc0Planes& planes, size_t plane, Bitboard squares, float value = 1) {
  if (squares == 0 || value == 0) return;
  planes.squares[plane] = squares;
  planes.values[plane] = value;
}

void FillBoard(Lc0Planes& planes, size_t first, const Board& board, Color mover) {
  for (Color color : {mover, ~mover}) {
    for (chess::PieceType type : chess::kPieceTypes) {
      Fill(planes, first++, SeenBy(mover, board.pieces(color, type)));
    }
  }
}

// The pawn of the double step that the board tells of stands on its first square again.
void UndoDoubleStep(Lc0Planes& planes, size_t first, const Board& board, Color mover) {
  const std::optional<chess::Square> passed = board.passed_square();
  if (!passed) return;
  const Color pusher = ~board.side_to_move();
  const Bitboard north = passed->bit() << 8;
  const Bitboard south = passed->bit() >> 8;
  const Bitboard from = SeenBy(mover, pusher == Color::kWhite ? south : north);
  const Bitboard to = SeenBy(mover, pusher == Color::kWhite ? north : south);
  const size_t plane = first + (pusher == mover ? 0 : 6);
  planes.squares[plane] = (planes.squares[plane] & ~to) | from;
}

void FillHistory(Lc0Planes& planes, const Question& question, Color mover) {
  const std::span<const Board> boards = question.boards();
  const bool fill = boards.size() < Question::kBoards && boards.front() != Board();
  for (size_t i = 0; i < Question::kBoards; ++i) {
    const bool known = i < boards.size();
    if (!known && !fill) return;
    const size_t index = known ? boards.size() - 1 - i : 0;
    const size_t first = i * kBoardPlanes;
    FillBoard(planes, first, boards[index], mover);
    if (!known) UndoDoubleStep(planes, first, boards[index], mover);
    if (question.repetitions()[index] > 0) Fill(planes, first + 12, ~Bitboard{0});
  }
}

}  // namespace

Lc0Planes MakeLc0Planes(const Question& question) {
  Lc0Planes planes;
  const Board& board = question.board();
  const Color mover = board.side_to_move();
  FillHistory(planes, question, mover);
  size_t right = kFirstRight;
  for (Color color : {mover, ~mover}) {
    for (CastlingSide side : {CastlingSide::kQueen, CastlingSide::kKing}) {
      if (board.CastlingRook(color, side)) Fill(planes, right, ~Bitboard{0});
      ++right;
    }
  }
  if (mover == Color::kBlack) Fill(planes, kBlackToMove, ~Bitboard{0});
  Fill(planes, kClock, ~Bitboard{0}, static_cast<float>(board.halfmove_clock()));
  Fill(planes, kOnes, ~Bitboard{0});
  return planes;
}

}  // namespace kibitz::oracles
