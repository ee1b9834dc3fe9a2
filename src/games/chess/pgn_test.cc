#include "games/chess/pgn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "games/chess/fen.h"
#include "games/chess/move_text.h"

namespace kibitz::chess {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Read {
  std::vector<PgnGame> games;
  std::vector<PgnProblem> problems;
};

// A byte at a time shows what depends on where the buffer ends.
PgnReader::Source ByteByByte(std::string_view text) {
  return [text](char* buffer, size_t) mutable -> size_t {
    if (text.empty()) return 0;
    *buffer = text.front();
    text.remove_prefix(1);
    return 1;
  };
}

Read ReadFrom(PgnReader::Source source, PgnReading reading) {
  PgnReader reader(std::move(source), reading);
  Read read;
  PgnGame game;
  for (auto what = reader.Next(game); what != PgnRead::kEnd; what = reader.Next(game)) {
    if (what == PgnRead::kGame) {
      read.games.push_back(game);
    } else {
      read.problems.push_back(reader.problem());
    }
  }
  return read;
}

Read ReadAll(std::string_view text, PgnReading reading = {.comments = true, .variations = true}) {
  Read slow = ReadFrom(ByteByByte(text), reading);
  Read read = ReadFrom(TextSource(text), reading);
  EXPECT_EQ(slow.games.size(), read.games.size());
  EXPECT_EQ(slow.problems.size(), read.problems.size());
  return read;
}

std::vector<std::string> Texts(Board board, const std::vector<Move>& moves) {
  std::vector<std::string> texts;
  for (Move move : moves) {
    texts.push_back(ToText(board, move));
    board = board.After(move);
  }
  return texts;
}

TEST(PgnTest, OneGame) {
  const Read read =
      ReadAll("[Event \"Test\"]\n[Result \"1-0\"]\n\n1. e4 e5 2.Nf3 Nc6 3. Bb5 a6\n4. Ba4 1-0\n");
  ASSERT_EQ(read.games.size(), 1U);
  const PgnGame& game = read.games[0];
  EXPECT_EQ(game.Tag("Event"), "Test");
  EXPECT_EQ(game.Tag("Absent"), "");
  EXPECT_EQ(game.line, 1U);
  EXPECT_EQ(game.result, GameResult::kWhiteWins);
  EXPECT_THAT(Texts(game.start, game.moves),
              ElementsAre("e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4"));
  EXPECT_TRUE(game.notes.empty());
}

TEST(PgnTest, CommentsVariationsNagsAndClocks) {
  const Read read = ReadAll(
      "{before} 1. e4! {[%eval 0.17] [%clk 0:01:30]} (1. d4 d5 (1... Nf6 2. c4) 2. c4 $14 {good}) "
      "1... e5 $2 $10 ; rest of line\n2. Nf3 (2. f4 exf4) (2. Bc4) {two} *");
  ASSERT_EQ(read.games.size(), 1U);
  const PgnGame& game = read.games[0];
  EXPECT_THAT(Texts(game.start, game.moves), ElementsAre("e2e4", "e7e5", "g1f3"));
  ASSERT_EQ(game.notes.size(), 4U);
  EXPECT_EQ(game.notes[0].ply, 0U);
  EXPECT_EQ(game.notes[0].comment, "before");
  const PgnNote& first = game.notes[1];
  EXPECT_THAT(first.nags, ElementsAre(1));
  EXPECT_EQ(ClockOf(first.comment), 90.0);
  EXPECT_EQ(EvalOf(first.comment)->centipawns, 17);
  ASSERT_EQ(first.variations.size(), 1U);
  EXPECT_THAT(Texts(game.start, first.variations[0].moves), ElementsAre("d2d4", "d7d5", "c2c4"));
  ASSERT_EQ(first.variations[0].notes.size(), 2U);
  const PgnNote& inner = first.variations[0].notes[0];
  EXPECT_EQ(inner.ply, 2U);
  ASSERT_EQ(inner.variations.size(), 1U);
  EXPECT_EQ(inner.variations[0].moves.size(), 2U);
  EXPECT_EQ(first.variations[0].notes[1].comment, "good");
  EXPECT_THAT(game.notes[2].nags, ElementsAre(2, 10));
  EXPECT_EQ(game.notes[2].comment, "rest of line");
  EXPECT_EQ(game.notes[3].variations.size(), 2U);
  EXPECT_EQ(game.notes[3].comment, "two");
}

TEST(PgnTest, VariationsAndCommentsCanBePassedOver) {
  const Read read =
      ReadAll("1. e4 (1. rubbish ((x) 1-0 {) }) ) {c} e5 1/2-1/2", {.comments = false});
  ASSERT_EQ(read.games.size(), 1U);
  EXPECT_EQ(read.games[0].moves.size(), 2U);
  EXPECT_TRUE(read.games[0].notes.empty());
  EXPECT_EQ(read.games[0].result, GameResult::kDraw);
}

TEST(PgnTest, OddButReadable) {
  // Byte order mark, escaped line, CRLF, escaped quotes, blanks in tags, missing results, no tags.
  const Read read = ReadAll(
      "\xef\xbb\xbf% a remark\r\n[Event \"a \\\"b\\\" \\\\ c\"]\r\n[ White  \"X\" ]  [Result "
      "\"0-1\"]\r\n\r\n1. e4 e5 2. Nf3\r\n\r\n[Event \"2\"]\n\n*\n\n1. d4 d5 1-0 1. c4 0-1\n"
      "[Event \"5\"]\n[FEN \"4k3/P7/8/8/8/8/8/4K3 w - - 0 1\"]\n1. a8(Q)+ Kd7 e.p. += 2... \n");
  EXPECT_TRUE(read.problems.empty()) << read.problems[0].reason;
  ASSERT_EQ(read.games.size(), 5U);
  EXPECT_EQ(read.games[0].Tag("Event"), "a \"b\" \\ c");
  EXPECT_EQ(read.games[0].Tag("White"), "X");
  EXPECT_EQ(read.games[0].result, GameResult::kBlackWins);
  EXPECT_EQ(read.games[0].moves.size(), 3U);
  EXPECT_TRUE(read.games[1].moves.empty());
  EXPECT_EQ(read.games[2].result, GameResult::kWhiteWins);
  EXPECT_EQ(read.games[3].result, GameResult::kBlackWins);
  EXPECT_EQ(read.games[4].moves.size(), 2U);
}

TEST(PgnTest, Chess960GamesStartFromTheirTag) {
  const Read read = ReadAll(
      "[Variant \"Chess960\"]\n[FEN \"1r2k1r1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w GBgb - 0 1\"]\n"
      "1. O-O O-O-O *");
  ASSERT_EQ(read.games.size(), 1U) << read.problems[0].reason;
  EXPECT_THAT(Texts(read.games[0].start, read.games[0].moves), ElementsAre("e1g1", "e8b8"));
}

TEST(PgnTest, BrokenGamesAreReportedAndTheRestIsRead) {
  const std::string good = "[Event \"good\"]\n\n1. e4 *\n\n";
  const struct {
    const char* text;
    uint64_t line;
    const char* reason;
  } cases[] = {
      {"[Event \"x\"]\n\n1. e4 e5\n2. Ke3 Ke7 1-0\n\n", 4, "move 'Ke3' is not legal in rnbqkbnr"},
      {"[Event \"x\"]\n\n1. hello *\n\n", 3, "'hello' is no move"},
      {"[Event \"x]\n\n1. e4 *\n\n", 1, "a tag is not of the form"},
      {"[Event]\n\n1. e4 *\n\n", 1, "a tag is not of the form"},
      {"[Event \"x\"]\n\n1. e4 {never closed\n\n", 3, "a comment is not closed"},
      {"[Event \"x\"]\n\n1. e4 (1. d4\n\n", 5, "a variation is not closed"},
      {"[Event \"x\"]\n\n1. e4 ) e5 *\n\n", 3, "found ) without ("},
      {"[Event \"x\"]\n\n(1. e4) *\n\n", 3, "before the first move"},
      {"[Event \"x\"]\n\n1. e4 -- 2. d4 *\n\n", 3, "null moves"},
      {"[Event \"x\"]\n\n1. e4 $999 *\n\n", 3, "above $255"},
      {"[Variant \"Atomic\"]\n\n1. e4 *\n\n", 1, "variant 'Atomic' is not chess"},
      {"[FEN \"8/8 w - -\"]\n\n1. e4 *\n\n", 1, "tag FEN '8/8 w - -': found 2 ranks"},
  };
  for (const auto& test : cases) {
    const Read read = ReadAll(test.text + good);
    ASSERT_EQ(read.problems.size(), 1U) << test.text;
    EXPECT_EQ(read.problems[0].line, test.line) << test.text;
    EXPECT_THAT(read.problems[0].reason, HasSubstr(test.reason));
    EXPECT_EQ(read.problems[0].game_line, 1U);
    ASSERT_EQ(read.games.size(), 1U) << test.text;
    EXPECT_EQ(read.games[0].Tag("Event"), "good");
  }
}

TEST(PgnTest, NothingIsNoGame) {
  EXPECT_TRUE(ReadAll("").games.empty());
  EXPECT_TRUE(ReadAll(" \n\n% x\n").games.empty());
  const Read rubbish = ReadAll(std::string(1000, '\x80'));
  EXPECT_EQ(rubbish.problems.size(), 1U);
}

TEST(PgnTest, HugePartsAreRefused) {
  const std::string comment = "1. e4 {" + std::string((1 << 20) + 10, 'x') + "} *";
  const Read long_comment = ReadFrom(TextSource(comment), {});
  ASSERT_EQ(long_comment.problems.size(), 1U);
  EXPECT_THAT(long_comment.problems[0].reason, HasSubstr("1 MiB"));
  std::string deep = "1. e4";
  for (int i = 0; i < 5000; ++i) deep += " (1. d4";
  const Read nested = ReadFrom(TextSource(deep), {.variations = true});
  ASSERT_EQ(nested.problems.size(), 1U);
  EXPECT_THAT(nested.problems[0].reason, HasSubstr("deeper than 64"));
}

TEST(PgnTest, CommandsInComments) {
  EXPECT_EQ(ClockOf("x [%clk 1:02:03.5] y"), 3723.5);
  EXPECT_EQ(ClockOf("[%emt 0:00:03][%clk 0:05]"), 5.0);
  for (const char* text : {"", "[%clk", "[%clk x]", "[%clk 1:2:3:4]", "[%clk -1]", "[%clock 1]"}) {
    EXPECT_FALSE(ClockOf(text)) << text;
  }
  EXPECT_EQ(EvalOf("[%eval -1.25]")->centipawns, -125);
  EXPECT_EQ(EvalOf("[%eval #-3]")->mate, -3);
  EXPECT_EQ(EvalOf("[%eval +0.35,18]")->depth, 18);
  for (const char* text : {"[%eval ]", "[%eval x]", "[%eval #]", "[%eval 1,2,3]", "[%eval nan]"}) {
    EXPECT_FALSE(EvalOf(text)) << text;
  }
}

}  // namespace
}  // namespace kibitz::chess
