// A cache in front of an evaluator. Answers are the same as without it, as long as `boards` covers
// the history that the evaluator sees.
//
//   CachedEvaluator cached(network, {.entries = 200000});
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oracles/search/evaluator.h"

namespace kibitz::oracles {

struct CacheOptions {
  int64_t entries = 100000;  // Positions; about 250 bytes each.
  // Boards that, with the half-move clock, must match for an answer to be reused; the default is
  // all that an lc0 network sees. 1 is enough for evaluators that see no history, and also finds
  // transpositions.
  int boards = Question::kBoards;
};

class CachedEvaluator : public Evaluator {
 public:
  // `evaluator` is borrowed.
  CachedEvaluator(Evaluator& evaluator, const CacheOptions& options);

  void Evaluate(std::span<const Question> questions, std::span<Evaluation> answers) override;
  int batch() const override { return evaluator_.batch(); }
  std::string name() const override { return evaluator_.name(); }

  int64_t asked() const { return asked_; }
  int64_t found() const { return found_; }  // Without asking the evaluator.

 private:
  struct Entry {
    uint64_t key = 0;
    Evaluation evaluation;
  };
  uint64_t KeyOf(const Question& question) const;
  Entry& SlotOf(uint64_t key) { return entries_[key % entries_.size()]; }

  Evaluator& evaluator_;
  CacheOptions options_;
  std::vector<Entry> entries_;
  int64_t asked_ = 0;
  int64_t found_ = 0;
};

}  // namespace kibitz::oracles
