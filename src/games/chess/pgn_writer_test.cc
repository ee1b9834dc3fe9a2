#include "games/chess/pgn_writer.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"

namespace kibitz::chess {
namespace {

PgnGame ReadBack(const std::string& text) {
  PgnReader reader(TextSource(text));
  PgnGame game;
  EXPECT_EQ(reader.Next(game), PgnRead::kGame) << reader.problem().reason << "\n" << text;
  return game;
}

TEST(PgnWriterTest, RandomGamesComeBack) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng({.seed = seed});
    PgnGame game;
    if (seed % 2 == 1) game.start = *ParseFen("8/5k2/8/8/1p6/8/P3K2P/8 b - - 3 40");
    game.tags = {{"White", "a \"quoted\" \\ name"}, {"Annotator", "test"}};
    game.result = GameResult::kDraw;
    Board board = game.start;
    for (int ply = 0; ply < 80 && HasLegalMove(board); ++ply) {
      const MoveList moves = LegalMoves(board);
      game.moves.push_back(moves[rng.Below(moves.size())]);
      board = board.After(game.moves.back());
      if (rng.Below(4) == 0) {
        game.notes.push_back(
            {.ply = game.moves.size(), .comment = "[%eval 0.35] a word", .nags = {1}});
      }
    }
    const std::string text = ToPgn(game);
    for (std::string_view line : Split(text, '\n')) EXPECT_LE(line.size(), 80u);
    const PgnGame back = ReadBack(text);
    EXPECT_EQ(back.start, game.start);
    EXPECT_EQ(back.moves, game.moves);
    EXPECT_EQ(back.result, game.result);
    EXPECT_EQ(back.Tag("White"), "a \"quoted\" \\ name");
    EXPECT_EQ(back.Tag("Annotator"), "test");
    ASSERT_EQ(back.notes.size(), game.notes.size());
    for (size_t i = 0; i < back.notes.size(); ++i) {
      EXPECT_EQ(SplitWords(back.notes[i].comment),
                SplitWords(game.notes[i].comment));  // Lines break.
      EXPECT_EQ(back.notes[i].nags, game.notes[i].nags);
      EXPECT_EQ(back.notes[i].ply, game.notes[i].ply);
    }
  }
}

TEST(PgnWriterTest, CommandsInCommentsStayOnOneLine) {
  PgnGame game;
  for (size_t width = 1; width < 90; ++width) {
    game.notes = {
        {.ply = 0, .comment = std::string(width, 'x') + " [%eval #1,2] [%clk 0:00:01.5]"}};
    const std::string text = ToPgn(game);
    EXPECT_NE(text.find("[%eval #1,2]"), std::string::npos) << text;
    EXPECT_NE(text.find("[%clk 0:00:01.5]"), std::string::npos) << text;
  }
}

TEST(PgnWriterTest, BracesDoNotEndAComment) {
  PgnGame game;
  game.notes = {{.ply = 0, .comment = "before {inside} after"}};
  EXPECT_EQ(ReadBack(ToPgn(game)).notes.at(0).comment, "before [inside] after");
}

}  // namespace
}  // namespace kibitz::chess
