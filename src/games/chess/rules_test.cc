#include "games/chess/rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "games/chess/diagram.h"
#include "games/chess/fen.h"
#include "games/chess/san.h"

namespace kibitz::chess {
namespace {

Board At(const char* fen) { return ParseFen(fen).OrThrow(fen); }

std::vector<Board> Play(Board board, const std::vector<std::string>& moves) {
  std::vector<Board> game = {board};
  for (const std::string& text : moves) {
    const auto move = ParseSan(board, text);
    EXPECT_TRUE(move) << move.reason();
    board = board.After(*move);
    game.push_back(board);
  }
  return game;
}

TEST(RulesTest, MateAndStalemate) {
  EXPECT_EQ(EndingOf(Play(Board(), {"f3", "e5", "g4", "Qh4#"})), Ending::kCheckmate);
  EXPECT_TRUE(IsStalemate(At("k7/8/1Q6/8/8/8/8/7K b - - 0 1")));
  EXPECT_EQ(EndingOf(At("k7/8/1Q6/8/8/8/8/7K b - - 0 1")), Ending::kStalemate);
  EXPECT_FALSE(IsCheckmate(At("k7/8/1Q6/8/8/8/8/7K b - - 0 1")));
  EXPECT_EQ(EndingOf(Board()), Ending::kNone);
}

TEST(RulesTest, InsufficientMaterial) {
  for (const char* fen : {"4k3/8/8/8/8/8/8/4K3 w - - 0 1", "4k3/8/8/8/8/8/8/3NK3 w - - 0 1",
                          "4k3/8/8/8/8/8/8/3BK3 w - - 0 1", "2b1k3/8/8/8/8/8/8/3BK3 w - - 0 1",
                          "1b2k3/2b5/8/8/8/8/8/2B1K3 w - - 0 1"}) {
    EXPECT_TRUE(IsInsufficientMaterial(At(fen))) << fen;
  }
  for (const char* fen : {"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1", "4k3/8/8/8/8/8/8/R3K3 w - - 0 1",
                          "4k3/8/8/8/8/8/8/2NNK3 w - - 0 1", "3nk3/8/8/8/8/8/8/3NK3 w - - 0 1",
                          "4k3/8/8/8/8/8/8/2BBK3 w - - 0 1", "4k3/8/8/8/8/8/8/2BNK3 w - - 0 1"}) {
    EXPECT_FALSE(IsInsufficientMaterial(At(fen))) << fen;
  }
}

TEST(RulesTest, Repetition) {
  const std::vector<std::string> cycle = {"Nf3", "Nf6", "Ng1", "Ng8"};
  std::vector<std::string> moves;
  for (int times = 1; times <= 4; ++times) {
    moves.insert(moves.end(), cycle.begin(), cycle.end());
    const auto game = Play(Board(), moves);
    EXPECT_EQ(EarlierOccurrences(game), times);
    const Ending expected = times >= 4   ? Ending::kFivefoldRepetition
                            : times >= 2 ? Ending::kThreefoldRepetition
                                         : Ending::kNone;
    EXPECT_EQ(EndingOf(game), expected) << times;
  }
}

// The right to castle, or to take en passant, makes another position.
TEST(RulesTest, LostRightsAreNoRepetition) {
  const auto game = Play(At("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"),
                         {"Ke2", "Ke7", "Ke1", "Ke8", "Ke2", "Ke7", "Ke1", "Ke8"});
  EXPECT_EQ(EarlierOccurrences(game), 1);
  const auto passant =
      Play(At("4k3/8/8/8/3p4/8/4P3/4K3 w - - 0 1"), {"e4", "Kd8", "Kd1", "Ke8", "Ke1", "Kd8"});
  EXPECT_EQ(EarlierOccurrences(passant), 1);
  EXPECT_EQ(EarlierOccurrences(std::span(passant).first(6)), 0);
}

TEST(RulesTest, MoveCounts) {
  EXPECT_EQ(EndingOf(At("4k3/8/8/8/8/8/8/R3K3 w - - 100 80")), Ending::kFiftyMoves);
  EXPECT_EQ(EndingOf(At("4k3/8/8/8/8/8/8/R3K3 w - - 99 80")), Ending::kNone);
  EXPECT_EQ(EndingOf(At("4k3/8/8/8/8/8/8/R3K3 w - - 150 80")), Ending::kSeventyFiveMoves);
  // Mate on the last move counts.
  EXPECT_EQ(EndingOf(At("R3k3/8/4K3/8/8/8/8/8 b - - 100 80")), Ending::kCheckmate);
  EXPECT_EQ(NameOf(Ending::kFiftyMoves), "fifty-move rule");
}

TEST(DiagramTest, PlainPicture) {
  DiagramStyle style;
  style.unicode = false;
  style.last_move = Move(Square::At(4, 0), Square::At(4, 1));
  const std::string picture = Diagram(At("4k3/8/8/8/8/8/4K3/7R b - - 0 1"), style);
  EXPECT_NE(picture.find("  8  .  .  .  .  k  .  .  . \n"), std::string::npos) << picture;
  EXPECT_NE(picture.find("  2  .  .  .  . (K) .  .  . \n"), std::string::npos) << picture;
  EXPECT_NE(picture.find("     a  b  c  d  e  f  g  h \n"), std::string::npos) << picture;
  style.flipped = true;
  const std::string flipped = Diagram(At("4k3/8/8/8/8/8/4K3/7R b - - 0 1"), style);
  EXPECT_EQ(flipped.find("  1  R"), 0U) << flipped;
  style.color = true;
  style.unicode = true;
  EXPECT_NE(Diagram(Board(), style).find("♚"), std::string::npos);
}

}  // namespace
}  // namespace kibitz::chess
