#include "oracles/records/teacher_evaluator.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace kibitz::oracles {
namespace {

void SetPriors(const Question& question, const Lesson& lesson, double rest, Evaluation& answer) {
  answer.priors.assign(question.moves().size(), -1);
  double told = 0;
  size_t lines = 0;
  for (const Variation& variation : lesson.variations) {
    const auto moves = question.moves();
    const auto found = std::ranges::find(moves, variation.nodes.front().move);
    if (found == moves.end()) continue;
    answer.priors[static_cast<size_t>(found - moves.begin())] =
        static_cast<float>(variation.fraction);
    told += variation.fraction;
    ++lines;
  }
  const size_t others = answer.priors.size() - lines;
  const double share = others == 0 ? 0 : told <= 0 ? 1 : rest;
  for (float& prior : answer.priors) {
    prior = static_cast<float>(prior < 0 ? share / static_cast<double>(others)
                                         : (1 - share) * prior / told);
  }
}

}  // namespace

TeacherEvaluator::TeacherEvaluator(std::unique_ptr<Teacher> teacher, int batch, double rest)
    : teacher_(std::move(teacher)), batch_(batch), rest_(rest) {
  CHECK(batch_ > 0 && rest_ > 0 && rest_ < 1);
}

std::string TeacherEvaluator::name() const {
  return teacher_->OptionsJson().value("name", "a teacher");
}

void TeacherEvaluator::Evaluate(std::span<const Question> questions,
                                std::span<Evaluation> answers) {
  CHECK(questions.size() == answers.size());
  std::vector<GameSoFar> games;
  for (const Question& question : questions) {
    games.push_back({.start = question.board(), .moves = {}});
  }
  const auto lessons = teacher_->Teach(games);
  for (size_t i = 0; i < questions.size(); ++i) {
    CHECK(lessons[i].has_value());  // The search asks only where the game is not over.
    answers[i].q = static_cast<float>(lessons[i]->wdl.win - lessons[i]->wdl.loss);
    answers[i].draw = static_cast<float>(lessons[i]->wdl.draw);
    SetPriors(questions[i], *lessons[i], rest_, answers[i]);
  }
}

}  // namespace kibitz::oracles
