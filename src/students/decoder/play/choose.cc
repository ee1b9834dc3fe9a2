#include "students/decoder/play/choose.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "games/chess/movegen.h"

namespace kibitz::decoder {
namespace {

// Sorts, and computes probabilities from logits.
std::vector<Candidate> Ranked(std::vector<Candidate> candidates) {
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  double sum = 0;
  for (Candidate& candidate : candidates) {
    candidate.probability = std::exp(candidate.logit - candidates.front().logit);
    sum += candidate.probability;
  }
  for (Candidate& candidate : candidates) candidate.probability /= sum;
  return candidates;
}

// Which of the numbers the draw takes; `logit(i)` for i below count.
template <typename Logit>
size_t Drawn(size_t count, Logit logit, const Draw& draw) {
  Rng rng({.seed = draw.seed, .sample = draw.position, .purpose = Purpose("decoder token")});
  double top = logit(0);
  for (size_t i = 1; i < count; ++i) top = std::max(top, static_cast<double>(logit(i)));
  const auto weight = [&](size_t i) { return std::exp((logit(i) - top) / draw.temperature); };
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += weight(i);
  double rest = rng.Uniform() * sum;
  for (size_t i = 0; i < count; ++i) {
    rest -= weight(i);
    if (rest < 0) return i;
  }
  return count - 1;
}

}  // namespace

std::vector<Candidate> LegalCandidates(const chess::Board& board, std::span<const float> logits) {
  std::vector<Candidate> candidates;
  for (chess::Move move : chess::LegalMoves(board)) {
    const TokenId token = TokenOf(move);
    candidates.push_back({.token = token, .move = move, .probability = 0, .logit = logits[token]});
  }
  return Ranked(std::move(candidates));
}

std::vector<Candidate> AllCandidates(const chess::Board* board, std::span<const float> logits) {
  std::vector<Candidate> candidates(kMoveVocabularySize);
  for (TokenId token = 0; token < kMoveVocabularySize; ++token) {
    candidates[token] = {.token = token, .move = {}, .probability = 0, .logit = logits[token]};
  }
  if (board != nullptr) {
    for (chess::Move move : chess::LegalMoves(*board)) candidates[TokenOf(move)].move = move;
  }
  return Ranked(std::move(candidates));
}

const Candidate& Choose(std::span<const Candidate> candidates, const Draw& draw) {
  CHECK(!candidates.empty());
  if (draw.temperature <= 0) return candidates.front();
  size_t count = candidates.size();
  if (draw.top_k > 0) count = std::min(count, static_cast<size_t>(draw.top_k));
  return candidates[Drawn(
      count, [&](size_t i) { return candidates[i].logit; }, draw)];
}

size_t Choose(std::span<const float> logits, const Draw& draw) {
  if (draw.temperature <= 0) {
    return static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
  }
  return Drawn(
      logits.size(), [&](size_t i) { return static_cast<double>(logits[i]); }, draw);
}

}  // namespace kibitz::decoder
