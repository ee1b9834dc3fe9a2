#include "students/decoder/play/fit_votes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace kibitz::decoder {
namespace {

// Of a line: its end's vote, 1, the values, the comparisons. Then the factor of all logits.
constexpr size_t kFeatures = 7;
constexpr size_t kParameters = kFeatures + 1;
using Parameters = std::array<double, kParameters>;
using Features = std::array<double, kFeatures>;

// Adam over all samples at once.
constexpr int kSteps = 300;
constexpr double kRate = 0.05;
// Of the logits before the thought: an instinct that knows nothing would be worth nothing.
constexpr double kLeastFactor = 0.05;

struct Line {
  size_t move = 0;  // Among the sample's moves.
  Features features = {};
};

// One sample as it is after some of its variations.
struct Case {
  const VoteSample* sample = nullptr;
  std::vector<Line> lines = {};
};

size_t IndexOf(const VoteSample& sample, TokenId token) {
  const auto found = std::ranges::find(sample.moves, token, &VoteSample::Move::token);
  CHECK(found != sample.moves.end());
  return static_cast<size_t>(found - sample.moves.begin());
}

Case CaseOf(const VoteSample& sample, size_t count) {
  const auto lines = std::span(sample.lines).first(count);
  const std::vector<LineComparison> compared = CompareLines(lines);
  Case made = {.sample = &sample};
  for (size_t i = 0; i < count; ++i) {
    made.lines.push_back(
        {.move = IndexOf(sample, lines[i].move),
         .features = {lines[i].end_vote, 1, lines[i].first_wl, lines[i].last_wl,
                      compared[i].last_wl, compared[i].first_wl, compared[i].logit}});
  }
  return made;
}

// The logits of a case's moves.
std::vector<double> LogitsOf(const Case& one, const Parameters& parameters) {
  std::vector<double> logits;
  for (const VoteSample::Move& move : one.sample->moves) {
    logits.push_back(parameters[kFeatures] * move.logit);
  }
  for (const Line& line : one.lines) {
    for (size_t i = 0; i < kFeatures; ++i) {
      logits[line.move] += parameters[i] * line.features[i];
    }
  }
  return logits;
}

// Adds the gradient of a case's loss.
void AddGradient(const Case& one, const Parameters& parameters, Parameters& gradient) {
  const std::vector<VoteSample::Move>& moves = one.sample->moves;
  std::vector<double> p = LogitsOf(one, parameters);
  const double largest = *std::ranges::max_element(p);
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - largest);
  double expected = 0;
  for (size_t i = 0; i < p.size(); ++i) expected += (p[i] /= sum) * moves[i].wl;
  std::vector<double>& slope = p;  // By the logit of each move.
  for (size_t i = 0; i < p.size(); ++i) {
    slope[i] = p[i] - moves[i].share - kExpectedWeight * p[i] * (moves[i].wl - expected);
    gradient[kFeatures] += slope[i] * moves[i].logit;
  }
  for (const Line& line : one.lines) {
    for (size_t i = 0; i < kFeatures; ++i) gradient[i] += slope[line.move] * line.features[i];
  }
}

// Adam with a rate that falls to 0.
Parameters Minimise(std::span<const Case> cases, Parameters parameters) {
  constexpr double kBeta1 = 0.9;
  constexpr double kBeta2 = 0.99;
  Parameters mean = {};
  Parameters square = {};
  for (int step = 1; step <= kSteps; ++step) {
    Parameters gradient = {};
    for (const Case& one : cases) AddGradient(one, parameters, gradient);
    const double rate = kRate * (1 - static_cast<double>(step - 1) / kSteps);
    for (size_t i = 0; i < kParameters; ++i) {
      const double g = gradient[i] / static_cast<double>(cases.size());
      mean[i] = kBeta1 * mean[i] + (1 - kBeta1) * g;
      square[i] = kBeta2 * square[i] + (1 - kBeta2) * g * g;
      const double m = mean[i] / (1 - std::pow(kBeta1, step));
      const double v = square[i] / (1 - std::pow(kBeta2, step));
      parameters[i] -= rate * m / (std::sqrt(v) + 1e-8);
    }
  }
  return parameters;
}

}  // namespace

std::optional<VoteSample> VoteSampleOf(const Thought& thought, const SearchRow& row) {
  if (thought.votes.empty()) return std::nullopt;
  VoteSample sample = {.moves = {}, .lines = thought.votes};
  double sum = 0;
  for (const Candidate& candidate : thought.instinct) {
    const auto found =
        std::ranges::find(row.variations, candidate.token, &SearchVariation::root_move);
    if (found == row.variations.end() || found->node_count == 0) return std::nullopt;
    const LineNode& after = row.NodesOf(*found).front();
    if (!after.valid) return std::nullopt;
    sample.moves.push_back({.token = candidate.token,
                            .logit = static_cast<float>(candidate.logit),
                            .share = static_cast<float>(found->visit_fraction),
                            .wl = -after.wl});
    sum += found->visit_fraction;
  }
  if (sample.moves.empty() || !(sum > 0)) return std::nullopt;
  for (VoteSample::Move& move : sample.moves) move.share /= static_cast<float>(sum);
  const auto known = [&](const VotingLine& line) {
    return std::ranges::find(sample.moves, line.move, &VoteSample::Move::token) !=
           sample.moves.end();
  };
  if (!std::ranges::all_of(sample.lines, known)) return std::nullopt;  // An illegal first move.
  return sample;
}

VoteFit FitVotes(std::span<const VoteSample> samples, const VoteWeights& start) {
  std::vector<Case> cases;
  for (const VoteSample& sample : samples) {
    for (size_t count = 1; count <= sample.lines.size(); ++count) {
      cases.push_back(CaseOf(sample, count));
    }
  }
  CHECK(!cases.empty());
  const auto& [value, compared] = start;
  constexpr double kScale = kValueVoteScale;
  const Parameters found =
      Minimise(cases, {1, 0, kScale * value[0], kScale * value[1], kScale * compared[0],
                       kScale * compared[1], compared[2], 1});
  // The logits themselves stay as they are: everything else is measured by their factor.
  const double unit = std::max(found[kFeatures], kLeastFactor);
  const auto of = [&](size_t i, double scale) {
    return static_cast<float>(found[i] / unit / scale);
  };
  return {.end_scale = of(0, 1),
          .end_bias = of(1, 1),
          .weights = {.value = {of(2, kScale), of(3, kScale)},
                      .compared = {of(4, kScale), of(5, kScale), of(6, 1)}}};
}

VoteQuality QualityOf(std::span<const VoteSample> samples, const VoteFit& fit) {
  VoteQuality quality;
  for (const VoteSample& sample : samples) {
    std::vector<VotingLine> lines = sample.lines;
    for (VotingLine& line : lines) line.end_vote = line.end_vote * fit.end_scale + fit.end_bias;
    const std::vector<float> votes = VotesOf(lines, fit.weights);
    std::vector<float> logits;
    float best = -1;
    for (const VoteSample::Move& move : sample.moves) {
      logits.push_back(move.logit);
      best = std::max(best, move.wl);
    }
    const auto lost = [&] {
      const auto chosen = std::ranges::max_element(logits) - logits.begin();
      return sample.moves[static_cast<size_t>(chosen)].wl - best;
    };
    quality.instinct += lost();
    for (size_t i = 0; i < lines.size(); ++i) logits[IndexOf(sample, lines[i].move)] += votes[i];
    quality.voted += lost();
  }
  const auto count = static_cast<double>(std::max<size_t>(samples.size(), 1));
  return {.instinct = quality.instinct / count, .voted = quality.voted / count};
}

}  // namespace kibitz::decoder
