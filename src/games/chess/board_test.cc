#include "games/chess/board.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "games/chess/perft.h"

namespace kibitz::chess {
namespace {

Board At(const char* fen) {
  auto board = ParseFen(fen);
  EXPECT_TRUE(board) << fen << ": " << board.reason();
  return board ? *board : Board();
}

struct Count {
  const char* fen;
  std::vector<uint64_t> nodes;  // By depth from 1.
};

// Counts every chess programmer knows.
TEST(BoardTest, PerftOfWellKnownPositions) {
  const std::vector<Count> counts = {
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
       {20, 400, 8902, 197281, 4865609}},
      {"r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
       {48, 2039, 97862, 4085603}},
      {"8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", {14, 191, 2812, 43238, 674624}},
      {"r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", {6, 264, 9467, 422333}},
      {"rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", {44, 1486, 62379, 2103487}},
      {"r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
       {46, 2079, 89890, 3894594}},
  };
  for (const Count& count : counts) {
    for (size_t depth = 1; depth <= count.nodes.size(); ++depth) {
      EXPECT_EQ(Perft(At(count.fen), static_cast<int>(depth)), count.nodes[depth - 1])
          << count.fen << " depth " << depth;
    }
    EXPECT_EQ(Perft(At(count.fen), 3, PerftLeaf::kList), count.nodes[2]);
  }
  EXPECT_EQ(Perft(Board(), 0), 1U);
}

TEST(BoardTest, DivideAddsUpForAnyThreads) {
  for (int threads : {1, 3}) {
    uint64_t nodes = 0;
    size_t calls = 0;
    const auto moves = PerftDivide(Board(), 4, {.threads = threads, .on_part = {}});
    for (const PerftMove& move : moves) nodes += move.nodes;
    EXPECT_EQ(nodes, 197281U);
    EXPECT_EQ(moves.size(), 20U);
    PerftDivide(Board(), 1, {.threads = 1, .on_part = [&](size_t, size_t all) {
                               ++calls;
                               EXPECT_EQ(all, 20U);
                             }});
    EXPECT_EQ(calls, 20U);
  }
}

// Bit planes, key and counters stay consistent, the parent is never touched, and FEN brings back
// the very same board, over a million random plies.
TEST(BoardTest, RandomPlayInvariants) {
  Rng rng({.seed = 20});
  Board board;
  for (int ply = 0; ply < 1000000; ++ply) {
    const MoveList moves = LegalMoves(board);
    if (moves.empty() || board.halfmove_clock() >= 100) {
      board = Board();
      continue;
    }
    const Move move = moves[rng.Below(moves.size())];
    const Board before = board;
    const Board next = board.After(move);
    ASSERT_EQ(board, before);
    ASSERT_EQ(next.key(), next.ComputeKey()) << ToFen(before);
    ASSERT_EQ(next.side_to_move(), ~before.side_to_move());
    ASSERT_EQ(PopCount(next.kings()), 2);
    ASSERT_EQ(next.pieces(Color::kWhite) & next.pieces(Color::kBlack), 0U);
    ASSERT_EQ(next.pieces(Color::kWhite) | next.pieces(Color::kBlack), next.occupied());
    const auto read = ParseFen(ToFen(next, {.every_passed_square = true}));
    ASSERT_TRUE(read) << ToFen(next) << ": " << read.reason();
    ASSERT_EQ(*read, next) << ToFen(next);
    // The other dialect loses only a passed square that nobody can use.
    const auto lean = ParseFen(ToFen(next));
    ASSERT_TRUE(lean);
    ASSERT_EQ(lean->key(), next.key());
    ASSERT_EQ(lean->en_passant(), next.en_passant());
    board = next;
  }
}

TEST(BoardTest, KeyCountsEnPassantOnlyWhenACaptureIsLegal) {
  // Nobody near; a neighbour; a neighbour whose capture would expose the king.
  EXPECT_EQ(At("4k3/8/8/8/4P3/8/8/4K3 b - e3 0 1").key(),
            At("4k3/8/8/8/4P3/8/8/4K3 b - - 0 1").key());
  EXPECT_NE(At("4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1").key(),
            At("4k3/8/8/8/3pP3/8/8/4K3 b - - 0 1").key());
  const Board pinned = At("8/8/8/8/k2pP2Q/8/8/3K4 b - e3 0 1");
  EXPECT_EQ(pinned.key(), At("8/8/8/8/k2pP2Q/8/8/3K4 b - - 0 1").key());
  EXPECT_FALSE(pinned.en_passant());
  EXPECT_EQ(pinned.passed_square(), Square::FromName("e3"));
}

TEST(BoardTest, PlacesOfPieces) {
  const Board board;
  EXPECT_EQ(board.PieceAt(Square::At(3, 0)), Piece(Color::kWhite, PieceType::kQueen));
  EXPECT_EQ(board.PieceAt(Square::At(3, 3)), Piece());
  EXPECT_EQ(PopCount(board.pieces(PieceType::kPawn)), 16);
  EXPECT_EQ(board.pieces(Color::kBlack, PieceType::kKing), Square::At(4, 7).bit());
  int total = 0;
  for (PieceType type : kPieceTypes) total += PopCount(board.pieces(type));
  EXPECT_EQ(total, 32);
  EXPECT_EQ(board.CastlingRook(Color::kBlack, CastlingSide::kQueen), Square::FromName("a8"));
}

TEST(BoardTest, NullMoveOnlyChangesTheSide) {
  const Board board = At("4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 7");
  const Board next = board.AfterNull();
  EXPECT_EQ(next.side_to_move(), Color::kWhite);
  EXPECT_EQ(next.occupied(), board.occupied());
  EXPECT_EQ(next.key(), next.ComputeKey());
  EXPECT_FALSE(next.passed_square());
  EXPECT_EQ(next.fullmove_number(), 8);
}

TEST(BoardTest, CountersStayAtTheirHighest) {
  Board board = At("4k3/8/8/8/8/8/8/4K3 b - - 65535 65535");
  board = board.After(LegalMoves(board)[0]);
  EXPECT_EQ(board.halfmove_clock(), 65535);
  EXPECT_EQ(board.fullmove_number(), 65535);
}

}  // namespace
}  // namespace kibitz::chess
