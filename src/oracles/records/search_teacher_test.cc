#include "oracles/records/search_teacher.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "oracles/records/teacher_evaluator.h"

namespace kibitz::oracles {
namespace {

// Every move is as likely, captures of material are good.
class CountingEvaluator : public Evaluator {
 public:
  void Evaluate(std::span<const Question> questions, std::span<Evaluation> answers) override {
    for (size_t i = 0; i < questions.size(); ++i) {
      const chess::Board& board = questions[i].board();
      const int own = chess::PopCount(board.pieces(board.side_to_move()));
      const int their = chess::PopCount(board.pieces(~board.side_to_move()));
      answers[i].q = static_cast<float>(std::tanh(0.3 * (own - their)));
      answers[i].draw = (1 - std::abs(answers[i].q)) / 2;
      const size_t moves = questions[i].moves().size();
      answers[i].priors.assign(moves, 1.0F / static_cast<float>(moves));
    }
  }
  int batch() const override { return 32; }
  std::string name() const override { return "counting"; }
};

GameSoFar GameFrom(const char* fen) { return {.start = *chess::ParseFen(fen), .moves = {}}; }

TEST(SearchTeacherTest, LessonsAreWhatTheSearchFound) {
  CountingEvaluator evaluator;
  SearchTeacher teacher(
      evaluator, {.visits = 200, .tree = {.leaves = 4}, .max_variations = 3, .line_plies = 2});
  // A queen to take; a mate to give; a stalemate; a mate.
  const std::vector<GameSoFar> games = {GameFrom("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1"),
                                        GameFrom("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1"),
                                        GameFrom("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"),
                                        GameFrom("3R2k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1")};
  const auto lessons = teacher.Teach(games);
  ASSERT_EQ(lessons.size(), 4U);
  ASSERT_TRUE(lessons[0] && lessons[1]);
  EXPECT_FALSE(lessons[2]);
  EXPECT_FALSE(lessons[3]);
  EXPECT_EQ(lessons[0]->best.to(), *chess::Square::FromName("d5"));
  EXPECT_EQ(lessons[0]->variations.size(), 3U);
  double sum = 0;
  for (const Variation& variation : lessons[0]->variations) {
    sum += variation.fraction;
    EXPECT_LE(variation.nodes.size(), 2U);
    chess::Board board = games[0].start;
    for (const VariationNode& node : variation.nodes) {
      ASSERT_TRUE(chess::IsLegal(board, node.move));
      board = board.After(node.move);
      EXPECT_NEAR(node.wdl.win + node.wdl.draw + node.wdl.loss, 1, 1e-6);
    }
    EXPECT_EQ(variation.nodes.front().visits, variation.visits);
  }
  EXPECT_GT(sum, 0.5);
  EXPECT_LE(sum, 1);
  const Wdl& taken = lessons[0]->variations.front().nodes.front().wdl;  // As Black sees it.
  EXPECT_GT(taken.loss, taken.win);
  EXPECT_EQ(lessons[1]->score.mate, (Mate{true, 1}));
  EXPECT_EQ(teacher.OptionsJson()["visits"], 200);
}

TEST(SearchTeacherTest, CentipawnsAsLc0ShowsThem) {
  EXPECT_EQ(CentipawnsFrom(0), 0);
  EXPECT_EQ(CentipawnsFrom(0.5), 89);
  EXPECT_EQ(CentipawnsFrom(-0.5), -89);
  EXPECT_GT(CentipawnsFrom(1), 12000);
}

TEST(TeacherEvaluatorTest, FractionsBecomePriors) {
  CountingEvaluator counting;
  auto teacher = std::make_unique<SearchTeacher>(
      counting, SearchTeacherOptions{.visits = 100, .max_variations = 2});
  TeacherEvaluator evaluator(std::move(teacher), 4, 0.1);
  EXPECT_EQ(evaluator.name(), "counting");
  const GamePath path((*chess::ParseFen("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1")));
  const Question question(path, chess::LegalMoves(path.last()));
  Evaluation answer;
  evaluator.Evaluate(std::span(&question, 1), std::span(&answer, 1));
  double sum = 0;
  int small = 0;
  for (float prior : answer.priors) {
    EXPECT_GT(prior, 0);
    sum += prior;
    small += prior < 0.1F ? 1 : 0;
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_GE(small, static_cast<int>(answer.priors.size()) - 2);
  EXPECT_GT(answer.q, 0);
  SearchTree tree({.start = path.last()}, {});
  Search(evaluator, tree, {.visits = 20});
  EXPECT_EQ(tree.Report().moves.front().move.to(), *chess::Square::FromName("d5"));
}

}  // namespace
}  // namespace kibitz::oracles
