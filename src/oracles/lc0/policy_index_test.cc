#include "oracles/lc0/policy_index.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "games/chess/movegen.h"

namespace kibitz::oracles {
namespace {

using chess::Color;
using chess::Move;
using chess::Square;

Move Make(const char* from, const char* to, Move::Kind kind = Move::Kind::kNormal) {
  return {*Square::FromName(from), *Square::FromName(to), kind};
}

TEST(PolicyIndexTest, KnownPlaces) {
  EXPECT_EQ(Lc0MoveIndex(Color::kWhite, Make("e2", "e4", Move::Kind::kDoublePush)), 322);
  EXPECT_EQ(Lc0MoveIndex(Color::kBlack, Make("e7", "e5", Move::Kind::kDoublePush)), 322);
  EXPECT_EQ(Lc0MoveIndex(Color::kWhite, Make("a7", "a8", Move::Kind::kPromoteQueen)), 1792);
  EXPECT_EQ(Lc0MoveIndex(Color::kWhite, Make("h7", "h8", Move::Kind::kPromoteBishop)), 1857);
  // A knight promotion is the bare move.
  EXPECT_EQ(Lc0MoveIndex(Color::kWhite, Make("a7", "a8", Move::Kind::kPromoteKnight)),
            Lc0MoveIndex(Color::kWhite, Make("a7", "a8")));
  const Lc0PlanePlace castle = Lc0PlaceOf(Color::kWhite, Make("e1", "h1", Move::Kind::kCastle));
  EXPECT_EQ(castle.plane, 2 * 7 + 2);  // Three squares to the east.
  EXPECT_EQ(castle.square, 4);
  EXPECT_EQ(Lc0PlaceOf(Color::kBlack, Make("b2", "a1", Move::Kind::kPromoteQueen)).plane, 64 + 2);
}

TEST(PolicyIndexTest, MovesHavePlacesOfTheirOwn) {
  // Every move that a queen or knight makes on an empty board, and every promotion.
  std::vector<Move> moves;
  for (int from = 0; from < 64; ++from) {
    for (int to = 0; to < 64; ++to) {
      const Move move{Square(from), Square(to)};
      if (Lc0MoveIndex(Color::kWhite, move) >= 0) moves.push_back(move);
      if (from / 8 != 6 || to / 8 != 7 || std::abs(from % 8 - to % 8) > 1) continue;
      for (Move::Kind kind :
           {Move::Kind::kPromoteQueen, Move::Kind::kPromoteRook, Move::Kind::kPromoteBishop}) {
        moves.emplace_back(Square(from), Square(to), kind);
      }
    }
  }
  std::set<int> indexes;
  std::set<std::pair<int, int>> places;
  for (Move move : moves) {
    indexes.insert(Lc0MoveIndex(Color::kWhite, move));
    const Lc0PlanePlace place = Lc0PlaceOf(Color::kWhite, move);
    EXPECT_LT(place.plane, 73);
    places.insert({place.plane, place.square});
  }
  EXPECT_EQ(moves.size(), static_cast<size_t>(kLc0Moves));
  EXPECT_EQ(indexes.size(), moves.size());
  EXPECT_EQ(*indexes.begin(), 0);
  EXPECT_EQ(*indexes.rbegin(), kLc0Moves - 1);
  EXPECT_EQ(places.size(), moves.size());
}

TEST(PolicyIndexTest, EveryLegalMoveHasAPlace) {
  Rng rng({.seed = 5, .purpose = Purpose("policy index test")});
  for (int game = 0; game < 200; ++game) {
    chess::Board board;
    for (int ply = 0; ply < 120; ++ply) {
      const chess::MoveList moves = chess::LegalMoves(board);
      if (moves.empty()) break;
      std::set<int> indexes;
      for (Move move : moves) indexes.insert(Lc0MoveIndex(board.side_to_move(), move));
      ASSERT_EQ(indexes.size(), moves.size());
      ASSERT_GE(*indexes.begin(), 0);
      board = board.After(moves[rng.Below(moves.size())]);
    }
  }
}

}  // namespace
}  // namespace kibitz::oracles
