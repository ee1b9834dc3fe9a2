#include "students/decoder/play/evaluator.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"

namespace kibitz::decoder {

using oracles::Evaluation;
using oracles::Question;

DecoderEvaluator::DecoderEvaluator(std::shared_ptr<Player> player, std::string name,
                                   double temperature)
    : player_(std::move(player)), name_(std::move(name)), temperature_(temperature) {}

void DecoderEvaluator::Evaluate(std::span<const Question> questions,
                                std::span<Evaluation> answers) {
  CHECK(questions.size() == answers.size());
  std::vector<chess::Board> boards;
  for (const Question& question : questions) boards.push_back(question.board());
  const std::vector<Prediction> predictions = player_->PredictAll(boards, {.value = true});
  for (size_t i = 0; i < questions.size(); ++i) {
    const Prediction& prediction = predictions[i];
    CHECK(prediction.value.has_value());
    Evaluation& answer = answers[i];
    answer.q = prediction.value->wl;
    // Two heads that know nothing of each other may promise more than certainty.
    answer.draw = std::min(prediction.value->d, 1 - std::abs(answer.q));
    answer.priors.clear();
    for (chess::Move move : questions[i].moves()) {
      const auto found = std::ranges::find(prediction.candidates, move, &Candidate::move);
      CHECK(found != prediction.candidates.end());
      answer.priors.push_back(static_cast<float>(found->logit));
    }
    oracles::Softmax(answer.priors, temperature_);
  }
}

}  // namespace kibitz::decoder
