#include "students/policy/play/evaluate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/permutation.h"
#include "base/progress.h"
#include "students/policy/data/target.h"

namespace kibitz::policy {
namespace {

constexpr double kNormal95 = 1.959964;  // Standard deviations of a 95% interval.

// The centre and half the width of Wilson's interval.
std::pair<double, double> Wilson(const Accuracy& accuracy) {
  const auto n = static_cast<double>(accuracy.trials);
  if (n == 0) return {0.5, 0.5};
  const double p = static_cast<double>(accuracy.hits) / n;
  const double z2 = kNormal95 * kNormal95;
  const double half = kNormal95 * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  return {(p + z2 / (2 * n)) / (1 + z2 / n), half / (1 + z2 / n)};
}

// One position that waits for its logits.
struct Pending {
  Target target;
  bool deep = false;
};

class Evaluator {
 public:
  Evaluator(Player& player, const Dataset& data, const EvaluateOptions& options)
      : player_(player), data_(data), options_(options), part_(data.split(options.split)) {}

  Evaluation Run() {
    const uint64_t wanted =
        options_.positions == 0 ? part_.size() : std::min(options_.positions, part_.size());
    const Permutation order(part_.size(), {.purpose = Purpose("policy eval")});
    Progress progress("positions", wanted);
    for (uint64_t i = 0; i < wanted && !Interrupted(); ++i) {
      Take(wanted == part_.size() ? i : order[i]);
      if (positions_.size() < static_cast<size_t>(options_.batch_size) && i + 1 < wanted) continue;
      Score();
      progress.Add(i + 1 - progress.done());
    }
    result_.complete = !Interrupted();
    if (result_.complete) progress.Finish();
    return std::move(result_);
  }

 private:
  void Take(uint64_t index) {
    const auto skip = [&](const char* reason, std::string detail) {
      result_.skipped.Add(reason,
                          {.file = fmt::format("{}, {}", data_.folder(), NameOf(options_.split)),
                           .row = static_cast<int64_t>(index),
                           .detail = std::move(detail)});
    };
    const Result<Sample> sample = part_.TryAt(index, scratch_);
    if (!sample) return skip("unreadable position", sample.reason());
    const bool flip = player_.model().config().flip_board;
    Pending pending;
    const bool usable = MakeTarget(*sample, data_.vocabulary(),
                                   {.flip = flip, .label = options_.label}, pending.target);
    if (pending.target.outside > 0) skip("position with a move outside the vocabulary", "");
    if (!usable) return skip("position without a usable analysis", "");
    pending.deep = UsableDepth(*sample, data_.vocabulary(), flip) >= options_.deep_min_depth;
    positions_.push_back(sample->position);
    pending_.push_back(std::move(pending));
  }

  void Score() {
    const auto moves = static_cast<size_t>(player_.model().config().num_moves);
    logits_.resize(positions_.size() * moves);
    if (!positions_.empty()) player_.model().Answer(positions_, logits_.data());
    for (size_t i = 0; i < positions_.size(); ++i) {
      const std::span<const float> logits(&logits_[i * moves], moves);
      Count(pending_[i].target, logits, result_.all);
      if (pending_[i].deep) Count(pending_[i].target, logits, result_.deep);
    }
    positions_.clear();
    pending_.clear();
  }

  static void Count(const Target& target, std::span<const float> logits, EvaluationPart& part) {
    const float own = logits[target.best];
    const auto above =
        std::count_if(logits.begin(), logits.end(), [&](float x) { return x > own; });
    part.first.trials += 1;
    part.five.trials += 1;
    part.first.hits += above == 0 ? 1 : 0;
    part.five.hits += above < 5 ? 1 : 0;
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - largest);
    const double log_sum = largest + std::log(sum);
    double loss = 0;
    for (const MoveShare& share : target.shares)
      loss += share.share * (log_sum - logits[share.move]);
    part.loss.Add(loss);
  }

  Player& player_;
  const Dataset& data_;
  EvaluateOptions options_;
  const SplitData& part_;
  std::vector<Analysis> scratch_;
  std::vector<PackedPosition> positions_;
  std::vector<Pending> pending_;
  std::vector<float> logits_;
  Evaluation result_;
};

}  // namespace

Fields FieldsOf(EvaluateOptions& options) {
  Fields fields;
  fields.AddChoice("split", options.split, "which positions",
                   {{"train", Split::kTrain}, {"val", Split::kVal}, {"test", Split::kTest}});
  fields.Add("positions", options.positions, "max positions, drawn from the whole split; 0: all",
             {.min = 0, .metavar = "N"});
  fields.Add("deep_min_depth", options.deep_min_depth, "depth from which a position counts as deep",
             {.min = 0, .max = kMaxDepth});
  fields.Add("batch_size", options.batch_size, "positions of a batch", {.min = 1, .max = 1 << 16});
  fields.AddAll(FieldsOf(options.label));
  return fields;
}

double Accuracy::rate() const {
  return trials == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(trials);
}

double Accuracy::low() const {
  const auto [centre, half] = Wilson(*this);
  return std::max(0.0, centre - half);
}

double Accuracy::high() const {
  const auto [centre, half] = Wilson(*this);
  return std::min(1.0, centre + half);
}

void Mean::Add(double value) {
  ++count;
  sum += value;
  squares += value * value;
}

double Mean::value() const { return count == 0 ? 0 : sum / static_cast<double>(count); }

double Mean::error() const {
  if (count < 2) return 0;
  const auto n = static_cast<double>(count);
  const double variance = std::max(0.0, (squares - sum * sum / n) / (n - 1));
  return kNormal95 * std::sqrt(variance / n);
}

Evaluation Evaluate(Player& player, const Dataset& data, const EvaluateOptions& options) {
  if (!(player.vocabulary() == data.vocabulary())) {
    throw Error(
        "{}: its vocabulary of {} moves is not the network's of {}; write the data set with it: "
        "'kibitz policy export {} --format planes --vocab FOLDER_OF_THE_MODEL/vocab.npy --out DIR'",
        data.folder(), data.vocabulary().size(), player.vocabulary().size(), data.folder());
  }
  if (data.split(options.split).size() == 0) {
    throw Error(
        "{}: the split {} has no positions; choose another with --split, or make the data "
        "set with --val-share and --test-share",
        data.folder(), NameOf(options.split));
  }
  return Evaluator(player, data, options).Run();
}

}  // namespace kibitz::policy
