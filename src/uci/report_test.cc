#include "uci/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "games/chess/move_text.h"

namespace kibitz::uci {
namespace {

using chess::Board;
using chess::Move;
using ::testing::ElementsAre;

Move Read(const Board& board, const char* text) { return *ParseMove(board, text); }

TEST(ReportTest, ScoresAreThoseOfLc0) {
  EXPECT_EQ(CentipawnsOf(0), 0);
  EXPECT_EQ(CentipawnsOf(0.5), 89);
  EXPECT_EQ(CentipawnsOf(-0.5), -89);
  EXPECT_EQ(CentipawnsOf(1), 12780);
  EXPECT_EQ(CentipawnsOf(-7), -12780);
}

TEST(ReportTest, ChancesSumToThousand) {
  EXPECT_THAT(PermilleOf({1.0 / 3, 1.0 / 3, 1.0 / 3}), ElementsAre(333, 334, 333));
  EXPECT_THAT(PermilleOf({1, 0, 0}), ElementsAre(1000, 0, 0));
  EXPECT_THAT(PermilleOf({0, 0, 0}), ElementsAre(0, 1000, 0));
  for (int i = 0; i <= 100; ++i) {
    for (int j = 0; j <= 100 - i; ++j) {
      const auto [win, draw, loss] =
          PermilleOf({i * 0.00999, (100 - i - j) * 0.00999, j * 0.00999});
      ASSERT_EQ(win + draw + loss, 1000);
      ASSERT_TRUE(win >= 0 && draw >= 0 && loss >= 0);
    }
  }
}

TEST(ReportTest, WritesInfo) {
  const Board root;
  players::Answer answer;
  answer.nodes = 5;
  answer.lines = {
      {.pv = {Read(root, "e2e4")}, .wdl = oracles::Wdl{0.6, 0.3, 0.1}},
      {.pv = {Read(root, "d2d4"), Read(root.After(Read(root, "d2d4")), "d7d5")}, .centipawns = -7},
      {.pv = {Read(root, "a2a3")}, .mate = oracles::Mate{.wins = false, .moves = 3}}};
  EXPECT_THAT(
      InfoLines({.start = root}, answer, {.milliseconds = 250, .max_lines = 3, .show_wdl = true}),
      ElementsAre("info depth 1 seldepth 2 multipv 1 score cp 89 wdl 600 300 100 nodes 5 nps 20 "
                  "time 250 pv e2e4",
                  "info depth 2 seldepth 2 multipv 2 score cp -7 nodes 5 nps 20 time 250 pv d2d4 "
                  "d7d5",
                  "info depth 1 seldepth 2 multipv 3 score mate -3 nodes 5 nps 20 time 250 pv "
                  "a2a3"));
  EXPECT_EQ(InfoLines({.start = root}, answer, {}).size(), 1U);
  EXPECT_TRUE(InfoLines({.start = root}, {}, {}).empty());
  answer.moves = {{.move = Read(root, "e2e4"),
                   .probability = 0.5,
                   .visits = 12,
                   .wdl = oracles::Wdl{0.6, 0.3, 0.1}},
                  {.move = Read(root, "d2d4"), .probability = 0.25}};
  EXPECT_THAT(MoveStatsLines(root, answer),
              ElementsAre("info string d2d4  (N:       0) (P: 25.00%)",
                          "info string e2e4  (N:      12) (P: 50.00%) (WL:  0.50000) (D: 0.300)"));
}

// Clients complain about moves after the end of the game.
TEST(ReportTest, ALineEndsWhereTheGameDoes) {
  oracles::GameSoFar game;
  Board board;
  const auto play = [&](const char* text) {
    const Move move = Read(board, text);
    board = board.After(move);
    return move;
  };
  for (int i = 0; i < 2; ++i) {
    for (const char* text : {"g1f3", "g8f6", "f3g1", "f6g8"}) {
      if (i == 0 || text[0] == 'g') game.moves.push_back(play(text));
    }
  }
  players::Answer answer{.move = Move()};
  answer.lines = {
      {.pv = {play("f3g1"), play("f6g8"), play("e2e4")}, .wdl = oracles::Wdl{.draw = 1}}};
  EXPECT_THAT(InfoLines(game, answer, {}), ElementsAre(::testing::EndsWith(" pv f3g1 f6g8")));
}

}  // namespace
}  // namespace kibitz::uci
