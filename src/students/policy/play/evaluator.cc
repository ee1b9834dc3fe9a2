#include "students/policy/play/evaluator.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "oracles/search/negamax.h"

namespace kibitz::policy {

PolicyEvaluator::PolicyEvaluator(std::shared_ptr<Player> player, std::string name,
                                 double temperature)
    : player_(std::move(player)), name_(std::move(name)), temperature_(temperature) {}

void PolicyEvaluator::Evaluate(std::span<const oracles::Question> questions,
                               std::span<oracles::Evaluation> answers) {
  CHECK(questions.size() == answers.size());
  std::vector<chess::Board> boards;
  for (const oracles::Question& question : questions) boards.push_back(question.board());
  const std::vector<Prediction> predictions = player_->PredictAll(boards);
  for (size_t i = 0; i < questions.size(); ++i) {
    oracles::Evaluation& answer = answers[i];
    const int score = oracles::QuietScore(boards[i], oracles::Material::kTables);
    answer.q = static_cast<float>(oracles::ExpectedResult(score));
    answer.draw = 0;
    answer.priors.clear();
    for (chess::Move move : questions[i].moves()) {
      const auto found = std::ranges::find(predictions[i].moves, move, &LikelyMove::move);
      CHECK(found != predictions[i].moves.end());
      answer.priors.push_back(static_cast<float>(std::log(std::max(found->probability, 1e-30))));
    }
    oracles::Softmax(answer.priors, temperature_);
  }
}

}  // namespace kibitz::policy
