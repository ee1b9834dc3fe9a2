#include "students/policy/play/evaluator.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "games/chess/mirror.h"
#include "oracles/search/negamax.h"

namespace kibitz::policy {
namespace {

double ProbabilityOf(const Prediction& prediction, chess::Move move) {
  const auto found = std::ranges::find(prediction.moves, move, &LikelyMove::move);
  CHECK(found != prediction.moves.end());
  return found->probability;
}

}  // namespace

PolicyEvaluator::PolicyEvaluator(std::shared_ptr<Player> player, std::string name,
                                 const PolicyEvaluatorOptions& options)
    : player_(std::move(player)), name_(std::move(name)), options_(options) {}

void PolicyEvaluator::Evaluate(std::span<const oracles::Question> questions,
                               std::span<oracles::Evaluation> answers) {
  CHECK(questions.size() == answers.size());
  std::vector<chess::Board> boards;
  for (const oracles::Question& question : questions) boards.push_back(question.board());
  std::vector<size_t> mirrored(boards.size(), 0);  // Where the mirrored board is; 0: nowhere.
  for (size_t i = 0; i < questions.size() && options_.mirror; ++i) {
    if (!chess::CanMirrorFiles(boards[i])) continue;
    mirrored[i] = boards.size();
    boards.push_back(chess::MirrorFiles(boards[i]));
  }
  const std::vector<Prediction> predictions = player_->PredictAll(boards);
  for (size_t i = 0; i < questions.size(); ++i) {
    oracles::Evaluation& answer = answers[i];
    const int score = oracles::QuietScore(boards[i], oracles::Material::kTables);
    answer.q = static_cast<float>(oracles::ExpectedResult(score));
    answer.draw = 0;
    answer.priors.clear();
    for (chess::Move move : questions[i].moves()) {
      double probability = ProbabilityOf(predictions[i], move);
      if (const size_t other = mirrored[i]; other > 0) {
        probability =
            (probability + ProbabilityOf(predictions[other], chess::MirrorFiles(move))) / 2;
      }
      answer.priors.push_back(static_cast<float>(std::log(std::max(probability, 1e-30))));
    }
    oracles::Softmax(answer.priors, options_.temperature);
  }
}

}  // namespace kibitz::policy
