#include "oracles/search/evaluator.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "games/chess/rules.h"

namespace kibitz::oracles {

void GamePath::Push(const chess::Board& board) {
  boards_.push_back(board);
  repetitions_.push_back(chess::EarlierOccurrences(boards_));
}

void GamePath::CutTo(size_t size) {
  CHECK(size > 0 && size <= boards_.size());
  boards_.resize(size);
  repetitions_.resize(size);
}

Question::Question(const GamePath& game, const chess::MoveList& moves)
    : count_(std::min(game.size(), kBoards)), moves_(moves.begin(), moves.end()) {
  std::ranges::copy(game.boards().last(count_), boards_.begin());
  std::ranges::copy(game.repetitions().last(count_), repetitions_.begin());
}

void Softmax(std::span<float> logits, double temperature) {
  if (logits.empty()) return;
  const float max = *std::ranges::max_element(logits);
  double sum = 0;
  for (float& logit : logits) {
    const double weight = std::exp(static_cast<double>(logit - max) / temperature);
    logit = static_cast<float>(weight);
    sum += weight;
  }
  for (float& logit : logits) logit = static_cast<float>(logit / sum);
}

}  // namespace kibitz::oracles
