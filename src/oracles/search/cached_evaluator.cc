#include "oracles/search/cached_evaluator.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"

namespace kibitz::oracles {
namespace {

// Mixes a number into a key so that every bit counts (splitmix64's finalizer).
uint64_t Mix(uint64_t key, uint64_t number) {
  uint64_t x = (key ^ number) + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

CachedEvaluator::CachedEvaluator(Evaluator& evaluator, const CacheOptions& options)
    : evaluator_(evaluator), options_(options) {
  CHECK(options_.entries > 0 && options_.boards > 0);
  entries_.resize(static_cast<size_t>(options_.entries));
}

uint64_t CachedEvaluator::KeyOf(const Question& question) const {
  const size_t count = std::min(question.boards().size(), static_cast<size_t>(options_.boards));
  // The number of boards tells whether the game's root is among them.
  uint64_t key = Mix(static_cast<uint64_t>(question.board().halfmove_clock()),
                     options_.boards > 1 ? question.boards().size() : 0);
  const auto boards = question.boards().last(count);
  const auto repetitions = question.repetitions().last(count);
  for (size_t i = 0; i < count; ++i) {
    // The key has the en passant square only where a capture is legal; lc0 sees it always.
    const auto passed = boards[i].passed_square();
    key = Mix(key, boards[i].key());
    key = Mix(key, (passed ? 2 + static_cast<uint64_t>(passed->index()) * 2 : 0) +
                       (repetitions[i] > 0 ? 1 : 0));
  }
  return key;
}

void CachedEvaluator::Evaluate(std::span<const Question> questions, std::span<Evaluation> answers) {
  CHECK(questions.size() == answers.size());
  std::vector<uint64_t> keys(questions.size());
  std::vector<Question> unknown;
  std::vector<size_t> asked(questions.size(), questions.size());  // Place in `unknown`.
  std::unordered_map<uint64_t, size_t> places;
  for (size_t i = 0; i < questions.size(); ++i) {
    keys[i] = KeyOf(questions[i]);
    const Entry& entry = SlotOf(keys[i]);
    if (entry.key == keys[i] && entry.evaluation.priors.size() == questions[i].moves().size()) {
      answers[i] = entry.evaluation;
      continue;
    }
    const auto [place, fresh] = places.try_emplace(keys[i], unknown.size());
    if (fresh) unknown.push_back(questions[i]);
    asked[i] = place->second;
  }
  std::vector<Evaluation> evaluations(unknown.size());
  if (!unknown.empty()) evaluator_.Evaluate(unknown, evaluations);
  for (size_t i = 0; i < questions.size(); ++i) {
    if (asked[i] == questions.size()) continue;
    answers[i] = evaluations[asked[i]];
    SlotOf(keys[i]) = {keys[i], answers[i]};
  }
  asked_ += static_cast<int64_t>(questions.size());
  found_ += static_cast<int64_t>(questions.size() - unknown.size());
}

}  // namespace kibitz::oracles
