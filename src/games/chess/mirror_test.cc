#include "games/chess/mirror.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"

namespace kibitz::chess {
namespace {

std::set<uint16_t> MovesOf(const Board& board) {
  std::set<uint16_t> moves;
  for (const Move move : LegalMoves(board)) moves.insert(move.bits());
  return moves;
}

// Every position of random games: the mirrored moves are the moves of the mirrored board.
TEST(MirrorTest, TheSameChess) {
  Rng rng({.seed = 1});
  int mirrored_files = 0;
  for (int game = 0; game < 40; ++game) {
    Board board = *ParseFen(kStartFen);
    for (int ply = 0; ply < 120; ++ply) {
      const MoveList moves = LegalMoves(board);
      if (moves.empty()) break;
      std::set<uint16_t> swapped;
      for (const Move move : moves) swapped.insert(SwapColours(move).bits());
      const Board other = SwapColours(board);
      EXPECT_EQ(MovesOf(other), swapped) << ToFen(board);
      EXPECT_EQ(ToFen(SwapColours(other)), ToFen(board));
      if (CanMirrorFiles(board)) {
        ++mirrored_files;
        std::set<uint16_t> files;
        for (const Move move : moves) files.insert(MirrorFiles(move).bits());
        EXPECT_EQ(MovesOf(MirrorFiles(board)), files) << ToFen(board);
        EXPECT_EQ(ToFen(MirrorFiles(MirrorFiles(board))), ToFen(board));
      }
      board = board.After(moves[rng.Below(moves.size())]);
    }
  }
  EXPECT_GT(mirrored_files, 1000);
}

TEST(MirrorTest, CastlingTellsLeftFromRight) { EXPECT_FALSE(CanMirrorFiles(*ParseFen(kStartFen))); }

}  // namespace
}  // namespace kibitz::chess
