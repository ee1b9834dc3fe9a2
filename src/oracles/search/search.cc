#include "oracles/search/search.h"

#include <algorithm>
#include <chrono>
#include <memory>

namespace kibitz::oracles {
namespace {

// A running search.
class Driver {
 public:
  Driver(Evaluator& evaluator, const SearchLimits& limits)
      : evaluator_(evaluator),
        limits_(limits),
        end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                 std::chrono::duration<double>(limits.seconds))) {}

  bool Ended() const {
    if (limits_.stop.stop_requested()) return true;
    return limits_.seconds > 0 && std::chrono::steady_clock::now() >= end_;
  }
  bool Ended(const SearchTree& tree) const {
    return tree.visits() >= limits_.visits || tree.decided();
  }

  // One batch of leaves of all these trees.
  void Step(std::span<SearchTree* const> trees) {
    questions_.clear();
    ends_.clear();
    for (SearchTree* tree : trees) {
      tree->Gather(limits_.visits, questions_);
      ends_.push_back(questions_.size());
    }
    answers_.resize(questions_.size());
    if (!questions_.empty()) evaluator_.Evaluate(questions_, answers_);
    size_t start = 0;
    for (size_t i = 0; i < trees.size(); ++i) {
      trees[i]->BackUp(std::span(answers_).subspan(start, ends_[i] - start));
      start = ends_[i];
    }
  }

 private:
  Evaluator& evaluator_;
  const SearchLimits& limits_;
  std::chrono::steady_clock::time_point end_;
  std::vector<Question> questions_;
  std::vector<Evaluation> answers_;
  std::vector<size_t> ends_;  // Of each tree's questions.
};

}  // namespace

int LeavesFor(int64_t visits, int batch) {
  return static_cast<int>(std::clamp<int64_t>(visits / 25, 1, batch));
}

void Search(Evaluator& evaluator, SearchTree& tree, const SearchLimits& limits,
            const std::function<void()>& on_batch) {
  Driver driver(evaluator, limits);
  SearchTree* const one = &tree;
  while (!driver.Ended(tree) && !driver.Ended()) {
    driver.Step(std::span(&one, 1));
    if (on_batch) on_batch();
  }
}

std::vector<SearchReport> SearchMany(Evaluator& evaluator, std::span<const GameSoFar> games,
                                     const TreeOptions& options, const SearchLimits& limits,
                                     const std::function<void()>& on_batch) {
  struct Active {
    size_t game;
    std::unique_ptr<SearchTree> tree;
  };
  std::vector<SearchReport> reports(games.size());
  std::vector<Active> active;
  Driver driver(evaluator, limits);
  const size_t at_once = static_cast<size_t>(std::max(1, evaluator.batch() / options.leaves));
  size_t next = 0;
  while (true) {
    while (active.size() < at_once && next < games.size()) {
      active.push_back({next, std::make_unique<SearchTree>(games[next], options)});
      ++next;
    }
    const bool ended = driver.Ended();
    std::erase_if(active, [&](const Active& search) {
      if (!ended && !driver.Ended(*search.tree)) return false;
      reports[search.game] = search.tree->Report();
      return true;
    });
    if (ended || (active.empty() && next == games.size())) return reports;
    std::vector<SearchTree*> trees;
    trees.reserve(active.size());
    for (const Active& search : active) trees.push_back(search.tree.get());
    driver.Step(trees);
    if (on_batch) on_batch();
  }
}

}  // namespace kibitz::oracles
