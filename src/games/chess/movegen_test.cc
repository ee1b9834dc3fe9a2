#include "games/chess/movegen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"

namespace kibitz::chess {
namespace {

// The rules once more, the plain way: pieces in an array, moves tried, king looked at. Slow, and
// nothing in common with the generator but the text of its moves.
class PlainRules {
 public:
  explicit PlainRules(const Board& board)
      : us_(board.side_to_move()),
        passed_(board.passed_square()),
        castling_rooks_(board.castling_rooks()) {
    for (int i = 0; i < 64; ++i) squares_[static_cast<size_t>(i)] = board.PieceAt(Square(i));
  }

  std::set<std::string> LegalMoves() {
    for (int file = 0; file < 8; ++file) {
      for (int rank = 0; rank < 8; ++rank) {
        const Piece piece = At(file, rank);
        if (!piece.empty() && piece.color() == us_) PieceMoves(piece.type(), file, rank);
      }
    }
    Castling();
    return moves_;
  }

 private:
  using Squares = std::array<Piece, 64>;
  struct Step {
    int file;
    int rank;
  };

  static bool Inside(int file, int rank) { return file >= 0 && file < 8 && rank >= 0 && rank < 8; }
  Piece& At(int file, int rank) { return squares_[static_cast<size_t>(rank * 8 + file)]; }

  static std::vector<Step> StepsOf(PieceType type) {
    switch (type) {
      case PieceType::kKnight:
        return {{1, 2}, {2, 1}, {2, -1}, {1, -2}, {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2}};
      case PieceType::kBishop:
        return {{1, 1}, {1, -1}, {-1, 1}, {-1, -1}};
      case PieceType::kRook:
        return {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
      default:
        return {{1, 1}, {1, -1}, {-1, 1}, {-1, -1}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}};
    }
  }

  bool Attacked(int file, int rank, Color by) {
    const int back = by == Color::kWhite ? -1 : 1;
    for (int side : {-1, 1}) {
      if (Inside(file + side, rank + back) &&
          At(file + side, rank + back) == Piece(by, PieceType::kPawn)) {
        return true;
      }
    }
    for (PieceType type : {PieceType::kKnight, PieceType::kBishop, PieceType::kRook,
                           PieceType::kQueen, PieceType::kKing}) {
      const bool slides = type != PieceType::kKnight && type != PieceType::kKing;
      for (const Step step : StepsOf(type)) {
        int f = file + step.file;
        int r = rank + step.rank;
        while (slides && Inside(f, r) && At(f, r).empty()) {
          f += step.file;
          r += step.rank;
        }
        if (Inside(f, r) && At(f, r) == Piece(by, type)) return true;
      }
    }
    return false;
  }

  bool KingAttacked() {
    for (int i = 0; i < 64; ++i) {
      if (squares_[static_cast<size_t>(i)] == Piece(us_, PieceType::kKing)) {
        return Attacked(i % 8, i / 8, ~us_);
      }
    }
    return true;
  }

  void Try(Square from, Square to, bool en_passant = false) {
    const Squares before = squares_;
    const Piece piece = At(from.file(), from.rank());
    At(to.file(), to.rank()) = piece;
    At(from.file(), from.rank()) = Piece();
    if (en_passant) At(to.file(), from.rank()) = Piece();
    if (!KingAttacked()) {
      const std::string text = from.Name() + to.Name();
      if (piece.type() == PieceType::kPawn && (to.rank() == 0 || to.rank() == 7)) {
        for (char letter : {'n', 'b', 'r', 'q'}) moves_.insert(text + letter);
      } else {
        moves_.insert(text);
      }
    }
    squares_ = before;
  }

  void PieceMoves(PieceType type, int file, int rank) {
    const Square from = Square::At(file, rank);
    if (type == PieceType::kPawn) return PawnMoves(from);
    const bool slides = type != PieceType::kKnight && type != PieceType::kKing;
    for (const Step step : StepsOf(type)) {
      for (int f = file + step.file, r = rank + step.rank; Inside(f, r);
           f += step.file, r += step.rank) {
        const Piece there = At(f, r);
        if (there.empty() || there.color() != us_) Try(from, Square::At(f, r));
        if (!there.empty() || !slides) break;
      }
    }
  }

  void PawnMoves(Square from) {
    const int ahead = us_ == Color::kWhite ? 1 : -1;
    const int file = from.file();
    const int rank = from.rank() + ahead;
    if (At(file, rank).empty()) {
      Try(from, Square::At(file, rank));
      const bool home = from.rank() == (us_ == Color::kWhite ? 1 : 6);
      if (home && At(file, rank + ahead).empty()) Try(from, Square::At(file, rank + ahead));
    }
    for (int f : {file - 1, file + 1}) {
      if (!Inside(f, rank)) continue;
      const Square to = Square::At(f, rank);
      if (!At(f, rank).empty() && At(f, rank).color() != us_) Try(from, to);
      if (passed_ == to) Try(from, to, true);
    }
  }

  // Written king takes rook.
  void Castling() {
    if (KingAttacked()) return;
    const int rank = us_ == Color::kWhite ? 0 : 7;
    int king = 0;
    while (king < 8 && At(king, rank) != Piece(us_, PieceType::kKing)) ++king;
    for (int rook = 0; rook < 8; ++rook) {
      if ((castling_rooks_ & Square::At(rook, rank).bit()) == 0) continue;
      const int king_to = rook > king ? 6 : 2;
      const int rook_to = rook > king ? 5 : 3;
      if (CastlingWorks(rank, king, rook, king_to, rook_to)) {
        moves_.insert(Square::At(king, rank).Name() + Square::At(rook, rank).Name());
      }
    }
  }

  bool CastlingWorks(int rank, int king, int rook, int king_to, int rook_to) {
    const Squares before = squares_;
    At(king, rank) = Piece();
    At(rook, rank) = Piece();
    bool works = true;
    for (int f = std::min({king, rook, king_to, rook_to});
         f <= std::max({king, rook, king_to, rook_to}); ++f) {
      const bool on_king_way = f >= std::min(king, king_to) && f <= std::max(king, king_to);
      const bool on_rook_way = f >= std::min(rook, rook_to) && f <= std::max(rook, rook_to);
      if ((on_king_way || on_rook_way) && !At(f, rank).empty()) works = false;
      if (on_king_way && Attacked(f, rank, ~us_)) works = false;
    }
    At(king_to, rank) = Piece(us_, PieceType::kKing);
    At(rook_to, rank) = Piece(us_, PieceType::kRook);
    works = works && !Attacked(king_to, rank, ~us_);
    squares_ = before;
    return works;
  }

  Squares squares_;
  Color us_;
  std::optional<Square> passed_;
  Bitboard castling_rooks_;
  std::set<std::string> moves_;
};

std::set<std::string> FastMoves(const Board& board) {
  std::set<std::string> moves;
  for (Move move : LegalMoves(board)) moves.insert(ToText(board, move, MoveStyle::kUciRook));
  return moves;
}

void CompareTargets(const Board& board, const MoveList& moves) {
  std::array<Bitboard, 64> targets{};
  for (Move move : moves) targets[static_cast<size_t>(move.from().index())] |= move.to().bit();
  for (int from = 0; from < 64; ++from) {
    ASSERT_EQ(LegalTargets(board, Square(from)), targets[static_cast<size_t>(from)])
        << ToFen(board) << " from " << Square(from).Name();
  }
}

// Plays random games and compares in every position; starts over at the end of a game.
void CompareFrom(const std::vector<Board>& starts, int plies, uint64_t seed) {
  Rng rng({.seed = seed});
  Board board = starts[0];
  for (int i = 0; i < plies; ++i) {
    const MoveList moves = LegalMoves(board);
    ASSERT_EQ(FastMoves(board), PlainRules(board).LegalMoves()) << ToFen(board);
    ASSERT_EQ(CountLegalMoves(board), static_cast<int>(moves.size()));
    ASSERT_EQ(HasLegalMove(board), !moves.empty());
    for (Move move : moves) ASSERT_TRUE(IsLegal(board, move));
    CompareTargets(board, moves);
    if (moves.empty() || board.halfmove_clock() > 100) {
      board = starts[rng.Below(starts.size())];
    } else {
      board = board.After(moves[rng.Below(moves.size())]);
    }
  }
}

TEST(MovegenTest, AgreesWithPlainRulesInRandomGames) { CompareFrom({Board()}, 20000, 1); }

TEST(MovegenTest, AgreesWithPlainRulesFromHardPositions) {
  std::vector<Board> starts;
  for (const char* fen : {"r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
                          "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
                          "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
                          "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
                          "8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1",  // The capture would open the rank.
                          "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1"}) {
    starts.push_back(*ParseFen(fen));
  }
  CompareFrom(starts, 20000, 2);
}

TEST(MovegenTest, AgreesWithPlainRulesInChess960) {
  std::vector<Board> starts;
  for (const char* fen :
       {"bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
        "2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9",
        "r1k1r2q/p1ppp1pp/8/8/8/8/P1PPP1PP/R1K1R2Q w KQkq - 0 1",
        "1rk4r/8/8/8/8/8/8/1RK4R w KQkq - 0 1", "qr1k1r2/8/8/8/8/8/8/QR1K1R2 w KQkq - 0 1"}) {
    auto board = ParseFen(fen, {.chess960 = true});
    ASSERT_TRUE(board) << fen << ": " << board.reason();
    starts.push_back(*board);
  }
  CompareFrom(starts, 20000, 3);
}

TEST(MovegenTest, MostMovesFit) {
  const auto record = ParseFen("R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1");
  EXPECT_EQ(CountLegalMoves(*record), 218);
  // Fifteen queens: unreachable, but text may ask for it.
  const auto queens = ParseFen("Q5Q1/2Q4Q/5Q2/Q2Q4/7Q/1Q2Q3/5Q2/K1Q1Q1Q1 w - - 0 1");
  EXPECT_FALSE(queens);  // No black king.
  const auto crowd = ParseFen("Q4Q2/2Q4Q/Q7/3Q4/QQ4Q1/4Q2k/Q2Q4/K1QQ4 b - - 0 1");
  ASSERT_TRUE(crowd) << crowd.reason();
  EXPECT_LE(LegalMoves(crowd->AfterNull()).size(), 512U);
}

TEST(MovegenTest, IllegalMovesAreNotLegal) {
  const Board board;
  EXPECT_FALSE(IsLegal(board, Move()));
  EXPECT_FALSE(IsLegal(board, Move(Square::At(4, 1), Square::At(4, 3))));  // Lacks its kind.
  EXPECT_TRUE(IsLegal(board, Move(Square::At(4, 1), Square::At(4, 3), Move::Kind::kDoublePush)));
  EXPECT_FALSE(IsLegal(board, Move(Square::At(4, 6), Square::At(4, 5))));
}

}  // namespace
}  // namespace kibitz::chess
