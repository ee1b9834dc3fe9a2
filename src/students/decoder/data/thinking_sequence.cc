#include "students/decoder/data/thinking_sequence.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "students/decoder/data/sequence_builder.h"

namespace kibitz::decoder {
namespace {

// A variation of the sequence.
struct Shown {
  const SearchVariation* variation;
  size_t depth;  // Nodes used.
};

bool HasNodes(const SearchVariation& variation, const ThinkingOptions& options) {
  return variation.node_count > 0 && (options.terminal_leaves || !variation.synthesised);
}

size_t CountCandidates(const SearchRow& row, int max_variations) {
  return std::min(row.variations.size(), static_cast<size_t>(max_variations));
}

std::vector<int> DrawRanking(const SearchRow& row, const ThinkingOptions& options,
                             const ThinkingAttempt& attempt, Rng& rng) {
  std::vector<double> fractions;
  for (size_t i = 0; i < CountCandidates(row, attempt.max_variations); ++i) {
    fractions.push_back(row.variations[i].visit_fraction);
  }
  return DrawOrder(fractions, Temperature(row.wdl, options.tau_base, options.tau_alpha), rng);
}

// A fixed ranking without the candidates that this attempt leaves out.
std::vector<int> FixedRanking(const SearchRow& row, const ThinkingOptions& options,
                              const ThinkingAttempt& attempt, const std::vector<int>& fixed) {
  const size_t count = CountCandidates(row, options.max_variations);
  std::vector<int> sorted = fixed;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size() || i < count; ++i) {
    if (sorted.size() == count && sorted[i] == static_cast<int>(i) + 1) continue;
    throw Error::Usage("--ranking: expected each of 1 to {} once: the row has {} variations", count,
                       count);
  }
  std::vector<int> ranking = fixed;
  std::erase_if(ranking, [&](int rank) { return rank > attempt.max_variations; });
  return ranking;
}

size_t DepthOf(size_t available, size_t shown_before, const ThinkingChoices& fixed, Rng& rng) {
  if (fixed.depths.empty()) return 1 + static_cast<size_t>(rng.Below(available));
  if (shown_before >= fixed.depths.size()) {
    throw Error::Usage("--depths: found {} depths, but the row has more variations",
                       fixed.depths.size());
  }
  const int depth = fixed.depths[shown_before];
  if (depth < 1) throw Error::Usage("--depths: found {}, expected at least 1", depth);
  return std::min(available, static_cast<size_t>(depth));
}

std::vector<Shown> Choose(const SearchRow& row, const ThinkingOptions& options,
                          const ThinkingChoices& fixed, ThinkingAttempt& attempt, Rng& rng) {
  attempt.ranking = fixed.ranking.empty() ? DrawRanking(row, options, attempt, rng)
                                          : FixedRanking(row, options, attempt, fixed.ranking);
  std::vector<Shown> shown;
  for (int rank : attempt.ranking) {
    const SearchVariation& variation = row.variations[static_cast<size_t>(rank - 1)];
    if (!HasNodes(variation, options)) continue;
    const auto available =
        std::min<size_t>(variation.node_count, static_cast<size_t>(attempt.max_depth));
    const size_t depth = DepthOf(available, shown.size(), fixed, rng);
    attempt.depths.push_back(static_cast<int>(depth));
    shown.push_back({&variation, depth});
  }
  return shown;
}

int32_t LengthOf(std::span<const Shown> shown) {
  int32_t length = kBoardTokens + 5;  // start_think, end_think, the final move and its values.
  for (const Shown& item : shown) {
    length += static_cast<int32_t>(item.depth) * (kBoardTokens + 3) + 1;
  }
  return length;
}

void AddVariation(const SearchRow& row, const Shown& shown, bool first, SequenceBuilder& builder) {
  TokenId move = shown.variation->root_move;
  TokenId announced_as = first ? kGenericMove : kNewVariation;
  for (const LineNode& node : row.NodesOf(*shown.variation).first(shown.depth)) {
    builder.AddMove(
        {.played = move, .target = move, .thinking = true, .announced_as = announced_as});
    builder.AddValue(node.wl, node.d, node.valid);
    builder.AddBoard(node.board);
    move = node.move;
    announced_as = kContinueVar;
  }
  builder.AddMark(kEndVar);
}

Sequence Write(const SearchRow& row, std::span<const Shown> shown, int32_t length) {
  SequenceBuilder builder;
  builder.Reserve(static_cast<size_t>(length));
  builder.AddBoard(row.root);
  builder.AddMark(kStartThink);
  for (const Shown& item : shown) AddVariation(row, item, &item == shown.data(), builder);
  builder.AddMark(kEndThink);
  builder.AddMove({.played = row.best_move, .target = row.best_move});
  const Wdl wdl = row.wdl.value_or(Wdl{});
  builder.AddValue(static_cast<float>(wdl.win - wdl.loss), static_cast<float>(wdl.draw),
                   row.wdl.has_value());
  CHECK(builder.size() == length);
  Sequence sequence = std::move(builder).Finish(length);
  sequence.thinking = true;
  sequence.first_is_not_best = shown[0].variation->root_move != row.best_move;
  return sequence;
}

// If the first candidates have no nodes, uses one node of the first that has some.
void ShowShortest(const SearchRow& row, const ThinkingOptions& options, ThinkingResult& result) {
  if (options.max_seq_len < kShortestThought) return;
  for (size_t i = 0; i < row.variations.size(); ++i) {
    if (!HasNodes(row.variations[i], options)) continue;
    result.attempts.push_back({.max_variations = 1,
                               .max_depth = 1,
                               .ranking = {static_cast<int>(i) + 1},
                               .depths = {1},
                               .length = kShortestThought});
    const Shown shown{&row.variations[i], 1};
    result.sequence = Write(row, std::span(&shown, 1), kShortestThought);
    return;
  }
}

}  // namespace

Fields FieldsOf(ThinkingOptions& options) {
  Fields fields;
  fields.Add("max_variations", options.max_variations, "max variations in a thinking sequence",
             {.min = 1, .max = 256});
  fields.Add("max_depth", options.max_depth, "max positions in a variation",
             {.min = 1, .max = 256});
  fields.Add("tau_base", options.tau_base, "temperature that draws the order of variations",
             {.min = 1e-6});
  fields.Add("tau_alpha", options.tau_alpha, "how much the variance of the result raises tau_base",
             {.min = 0});
  fields.Add("terminal_leaves", options.terminal_leaves,
             "include root moves that end the game, which records list without nodes");
  return fields;
}

double ResultVariance(const Wdl& wdl) {
  const double mean = wdl.win - wdl.loss;
  return wdl.win + wdl.loss - mean * mean;
}

double Temperature(const std::optional<Wdl>& wdl, double tau_base, double tau_alpha) {
  return tau_base * (1 + tau_alpha * (wdl ? ResultVariance(*wdl) : 0));
}

std::vector<int> OrderByUtility(std::span<const double> fractions, double tau,
                                std::span<const double> noise) {
  CHECK(fractions.size() == noise.size());
  std::vector<int> order(fractions.size());
  std::iota(order.begin(), order.end(), 1);
  const auto utility = [&](int rank) {
    const auto i = static_cast<size_t>(rank - 1);
    return fractions[i] / tau + noise[i];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return utility(a) > utility(b); });
  return order;
}

std::vector<int> DrawOrder(std::span<const double> fractions, double tau, Rng& rng) {
  std::vector<double> noise(fractions.size());
  for (double& value : noise) value = rng.Gumbel();
  return OrderByUtility(fractions, tau, noise);
}

ThinkingResult Think(const SearchRow& row, const ThinkingOptions& options, Rng& rng,
                     const ThinkingChoices& fixed) {
  ThinkingResult result;
  // True when no further attempt is needed.
  const auto attempt = [&](int max_variations, int max_depth) {
    ThinkingAttempt& tried = result.attempts.emplace_back();
    tried.max_variations = max_variations;
    tried.max_depth = max_depth;
    const std::vector<Shown> shown = Choose(row, options, fixed, tried, rng);
    tried.length = LengthOf(shown);
    if (shown.empty() || tried.length > options.max_seq_len) return false;
    result.sequence = Write(row, shown, tried.length);
    return true;
  };
  if (attempt(options.max_variations, options.max_depth)) return result;
  // A single variation can only get shorter.
  for (int variations = std::max(1, options.max_variations - 1); variations > 0; --variations) {
    for (int depth = options.max_depth; depth > 0; --depth) {
      if (attempt(variations, depth)) return result;
    }
  }
  ShowShortest(row, options, result);
  return result;
}

bool HasThought(const SearchRow& row, const ThinkingOptions& options) {
  return std::any_of(
      row.variations.begin(), row.variations.end(),
      [&](const SearchVariation& variation) { return HasNodes(variation, options); });
}

Sequence ThinkingSequence(const SearchRow& row, const ThinkingOptions& options, Rng& rng) {
  ThinkingResult result = Think(row, options, rng);
  CHECK(result.sequence.has_value());
  return *std::move(result.sequence);
}

}  // namespace kibitz::decoder
