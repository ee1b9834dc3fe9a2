#include "students/decoder/data/tokens.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "students/decoder/data/records.h"

namespace kibitz::decoder {
namespace {

using chess::Board;

Board Position(const std::string& fen) { return chess::ParseFen(fen).OrThrow(fen); }

TEST(TokensTest, StartPosition) {
  const BoardTokens tokens = BoardTokensOf(Board());
  EXPECT_EQ(tokens[0], kStartPos);
  EXPECT_EQ(tokens[1], kWhiteRook);
  EXPECT_EQ(tokens[5], kWhiteKing);
  EXPECT_EQ(tokens[61], kBlackKing);
  EXPECT_EQ(tokens[65], kEndPos);
  EXPECT_EQ(TokenName(tokens[66]), "KQkq");
  EXPECT_EQ(tokens[67], kWhiteToMove);
}

TEST(TokensTest, EveryCombinationOfCastlingRightsHasItsToken) {
  for (const char* rights : {"K", "Q", "k", "q", "KQ", "Kk", "Kq", "Qk", "Qq", "kq", "KQk", "KQq",
                             "Kkq", "Qkq", "KQkq", "-"}) {
    const Board board = Position(fmt::format("r3k2r/8/8/8/8/8/8/R3K2R b {} - 0 1", rights));
    const BoardTokens tokens = BoardTokensOf(board);
    EXPECT_EQ(TokenName(tokens[66]), rights == std::string("-") ? "no_castling_rights" : rights);
    EXPECT_TRUE(SameTokens(BoardOf(tokens).OrThrow(rights), board));
  }
}

TEST(TokensTest, MovesAreDecidedWithThePosition) {
  // The king castles; a rook on the same square goes to h1 and g1.
  const Board castle = Position("4k3/8/8/8/8/8/8/4K2R w K - 0 1");
  EXPECT_EQ(TokenName(TokenOf(*chess::ParseMove(castle, "e1g1"))), "e1h1");
  EXPECT_EQ(MoveOf(castle, *FindToken("e1h1"))->kind(), chess::Move::Kind::kCastle);
  EXPECT_FALSE(MoveOf(castle, *FindToken("e1g1")));
  const Board rook = Position("3k4/8/8/8/8/8/K7/4R3 w - - 0 1");
  EXPECT_EQ(TokenName(TokenOf(*chess::ParseMove(rook, "e1g1"))), "e1g1");
  EXPECT_EQ(MoveOf(rook, *FindToken("e1h1"))->kind(), chess::Move::Kind::kNormal);
  // A knight promotion is the bare pair.
  const Board pawn = Position("8/P7/8/8/8/8/8/K1k5 w - - 0 1");
  EXPECT_EQ(TokenName(TokenOf(*chess::ParseMove(pawn, "a7a8n"))), "a7a8");
  EXPECT_EQ(MoveOf(pawn, *FindToken("a7a8"))->promotion(), chess::PieceType::kKnight);
  EXPECT_EQ(MoveOf(pawn, *FindToken("a7a8q"))->promotion(), chess::PieceType::kQueen);
  EXPECT_FALSE(MoveOf(pawn, kEmpty));
}

TEST(TokensTest, RandomPlayGoesThereAndBack) {
  Rng rng({.seed = 3});
  for (int game = 0; game < 200; ++game) {
    Board board;
    for (int ply = 0; ply < 120 && chess::HasLegalMove(board); ++ply) {
      const chess::MoveList moves = chess::LegalMoves(board);
      const chess::Move move = moves[rng.Below(moves.size())];
      ASSERT_EQ(*MoveOf(board, TokenOf(move)), move);
      const Result<Board> back = BoardOf(BoardTokensOf(board));
      ASSERT_TRUE(back) << back.reason();
      ASSERT_TRUE(SameTokens(*back, board));
      board = board.After(move);
    }
  }
}

TEST(TokensTest, TokensThatAreNoPositionSayWhy) {
  const BoardTokens good = BoardTokensOf(Board());
  const auto reason = [&](size_t place, TokenId token) {
    BoardTokens tokens = good;
    tokens[place] = token;
    return BoardOf(tokens).reason();
  };
  EXPECT_EQ(reason(0, kEmpty), "token 0: found empty, expected start_pos");
  EXPECT_EQ(reason(9, kPad), "token 9: found pad, expected a piece or empty");
  EXPECT_EQ(reason(65, kEmpty), "token 65: found empty, expected end_pos");
  EXPECT_EQ(reason(66, kEndPos), "token 66: found end_pos, expected castling rights");
  EXPECT_EQ(reason(67, kEndVar),
            "token 67: found end_var, expected white_to_move or black_to_move");
  EXPECT_EQ(reason(5, kEmpty), "castling rights KQkq need a king on e1 and a rook on h1");
  EXPECT_EQ(reason(20, kWhiteKing), "White has 2 kings");
  EXPECT_EQ(reason(2, kWhitePawn), "a pawn stands on b1");
  EXPECT_EQ(reason(53, kWhiteRook), "the side to move could take the king");
  EXPECT_EQ(reason(3, 5000), "token 3: found 5000, expected an id below 1968");
  EXPECT_EQ(BoardOf(std::span(good).first(67)).reason(), "found 67 tokens, expected 68");
}

// Whatever the tokens are, a board comes back only if it has these very tokens.
TEST(TokensTest, RandomDamageIsFoundOrHarmless) {
  Rng rng({.seed = 4});
  const BoardTokens good = BoardTokensOf(Board());
  for (int i = 0; i < 100'000; ++i) {
    BoardTokens tokens = good;
    for (uint64_t changes = 1 + rng.Below(3); changes > 0; --changes) {
      tokens[rng.Below(kBoardTokens)] =
          static_cast<TokenId>(kWhiteKing + rng.Below(kVocabularySize - kWhiteKing));
    }
    const Result<Board> board = BoardOf(tokens);
    if (board) {
      ASSERT_EQ(BoardTokensOf(*board), tokens);
    }
  }
}

TEST(TokensTest, VariationsStandBehindTheRoot) {
  LineView line;
  const auto next = [&](TokenId token) {
    const TokenView view = line.Next(token);
    return std::array{view.position, view.hidden_begin, view.hidden_end};
  };
  for (int i = 0; i < kBoardTokens; ++i) EXPECT_EQ(next(kEmpty), (std::array{i, 0, 0}));
  EXPECT_EQ(next(kStartThink), (std::array{68, 0, 0}));
  EXPECT_EQ(next(5), (std::array{69, 69, 69}));         // A move, the first token of a variation.
  EXPECT_EQ(next(kWlValue), (std::array{70, 69, 69}));  // Nothing is hidden yet.
  EXPECT_EQ(next(kEndVar), (std::array{71, 0, 0}));
  EXPECT_EQ(next(7), (std::array{69, 69, 72}));
  EXPECT_EQ(next(kWlValue), (std::array{70, 69, 72}));
  EXPECT_EQ(next(kEndVar), (std::array{71, 0, 0}));
  EXPECT_EQ(next(kEndThink), (std::array{72, 0, 0}));
  EXPECT_EQ(next(7), (std::array{73, 0, 0}));  // The final move.
}

}  // namespace
}  // namespace kibitz::decoder
