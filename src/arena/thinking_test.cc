#include "arena/thinking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "tests/support/test_data.h"

namespace kibitz::arena {
namespace {

using chess::Board;
using chess::Move;
using ::testing::HasSubstr;

Board BoardOf(const char* fen) { return chess::ParseFen(fen).OrThrow(fen); }
Move ReadMove(const Board& board, const char* text) {
  return chess::ParseMove(board, text).OrThrow(text);
}

TEST(JudgeTest, AnEngineScoresEachMove) {
  const Board board = BoardOf("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1");
  EngineJudge judge({.engine = "negamax?depth=2&eval=pieces"}, 1);
  const std::vector<Move> moves = {ReadMove(board, "e4d5"), ReadMove(board, "e1f1"),
                                   ReadMove(board, "e4d5")};
  const auto verdict = judge.Judge({}, board, moves);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->moves[0], verdict->best);
  EXPECT_EQ(verdict->moves[0], verdict->moves[2]);
  EXPECT_LT(verdict->moves[1], verdict->moves[0] - 500);
}

TEST(JudgeTest, RecordedScoresAreForTheSideToMove) {
  const testing::TempFolder folder;
  WriteFileAtomically(
      folder.File("e.jsonl"),
      R"({"fen":"4k3/8/8/3q4/4P3/8/8/4K3 b - -","evals":[{"depth":9,"pvs":[{"cp":-900,"line":"d5e4 e1f1"},{"cp":300,"line":"d5d1"},{"mate":2,"line":"e8e7"}]},{"depth":3,"pvs":[{"cp":0,"line":"d5a5"},{"cp":0,"line":"d5a8"}]}]})"
      "\n"
      R"({"fen":"4k3/8/8/8/8/8/8/4K2R w K -","evals":[{"depth":9,"pvs":[{"cp":5,"line":"e1h1"}]}]})"
      "\n");
  RecordedJudge judge(folder.File("e.jsonl"));
  ASSERT_EQ(judge.positions().size(), 1u);  // One line alone compares nothing.
  const Board board = judge.positions()[0];
  const std::vector<Move> moves = {ReadMove(board, "d5e4"), ReadMove(board, "e8e7"),
                                   ReadMove(board, "d5a5")};
  const auto verdict = judge.Judge({}, board, moves);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->best, 900);
  EXPECT_EQ(verdict->moves[0], 900);
  EXPECT_EQ(verdict->moves[1], -9998);
  EXPECT_EQ(verdict->moves[2], -9998);  // Not listed: as the last.
  EXPECT_FALSE(judge.Judge({}, Board(), moves));
}

TEST(ThinkingTest, TheOnePlyRuleIsOffUnlessAskedFor) {
  // Mates in one that the tiny decoder does not see.
  const std::vector<Board> positions = {BoardOf("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1"),
                                        BoardOf("7k/6pp/8/8/8/8/Q7/K3R3 w - - 0 1")};
  ThinkingOptions options{.model = testing::GoldenPath("decoder/tiny.pt"), .variations = {1}};
  const auto run = [&] {
    EngineJudge judge({.engine = "negamax?depth=2"}, 1);
    return RunThinking(positions, options, judge, {.concurrency = 1}, {}, nullptr);
  };
  const ThinkingResult bare = run();
  EXPECT_EQ(bare.ToJson()["one_ply"], false);
  EXPECT_THAT(bare.Text(), HasSubstr("one-ply rule off"));
  EXPECT_GT(bare.instinct_loss, 0);
  options.one_ply = true;
  const ThinkingResult ruled = run();
  EXPECT_THAT(ruled.Text(), HasSubstr("one-ply rule on"));
  EXPECT_EQ(ruled.instinct_loss, 0);
  EXPECT_EQ(ruled.budgets[0].loss, 0);
}

TEST(ThinkingTest, MeasuresATinyDecoder) {
  const std::vector<Board> positions = {
      Board(), BoardOf("r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3"),
      BoardOf("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1")};
  ThinkingOptions options{
      .model = testing::GoldenPath("decoder/tiny.pt"), .variations = {1, 2, 0}, .times = {20}};
  const auto run = [&](int threads, const std::string& out) {
    EngineJudge judge({.engine = "negamax?depth=2"}, threads);
    return RunThinking(positions, options, judge, {.concurrency = threads, .out = out}, {},
                       nullptr);
  };
  const testing::TempFolder folder;
  const ThinkingResult result = run(1, folder.File("a"));
  EXPECT_EQ(result.positions, 3);
  ASSERT_EQ(result.budgets.size(), 4u);
  EXPECT_EQ(result.budgets[result.headline].name, "own length");
  for (const BudgetResult& budget : result.budgets) {
    EXPECT_EQ(budget.thinking_better + budget.instinct_better + budget.equal, 3) << budget.name;
    EXPECT_LE(budget.thinking_better + budget.instinct_better, budget.changed);
    EXPECT_NEAR(result.instinct_loss - budget.loss, budget.gain.mean, 1e-9) << budget.name;
    EXPECT_GT(budget.milliseconds, 0);
    EXPECT_NEAR(budget.versus_first.gain.mean, result.budgets[0].loss - budget.loss, 1e-9);
    EXPECT_LE(budget.versus_first.better + budget.versus_first.worse, 3);
  }
  const ThoughtForm& form = result.form;
  EXPECT_EQ(form.thoughts, 3);
  EXPECT_LE(form.legal_moves, form.moves);
  EXPECT_LE(form.legal_final_moves, form.final_moves);
  EXPECT_LE(form.final_moves, form.thoughts);
  EXPECT_LE(form.right_boards, form.boards);
  EXPECT_EQ(form.tokens, 68 * form.boards);
  const Json json = result.ToJson();
  for (const char* key : {"positions", "instinct_better", "thinking_better", "equal", "p_value",
                          "legal", "final_legal", "well_formed"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(run(1, folder.File("a")).ToJson(), json);  // From the journal, times too.
  const ThinkingResult two = run(2, "");
  EXPECT_EQ(two.budgets[2].thinking_better, result.budgets[2].thinking_better);
  EXPECT_EQ(two.form.well_formed, form.well_formed);
}

}  // namespace
}  // namespace kibitz::arena
