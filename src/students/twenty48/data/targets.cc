#include "students/twenty48/data/targets.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace kibitz::twenty48 {
namespace {

bool IsLegal(unsigned legal, size_t move) { return (legal >> move & 1U) != 0; }

// The value of the best legal move, and which it is; the first where several are equal.
size_t BestMove(const Judged& judged) {
  size_t best = 4;
  for (size_t i = 0; i < 4; ++i) {
    if (IsLegal(judged.legal, i) && (best == 4 || judged.values[i] > judged.values[best])) best = i;
  }
  return best;
}

// The lower one where their number is even.
float Median(std::vector<float> values) {
  std::ranges::sort(values);
  return values[(values.size() - 1) / 2];
}

float ScaleOf(const Judged& judged, float best, ScaleKind kind) {
  std::vector<float> values;
  for (size_t i = 0; i < 4; ++i) {
    if (IsLegal(judged.legal, i)) values.push_back(judged.values[i]);
  }
  float scale = 0;
  if (kind == ScaleKind::kMaxAbs) {
    for (float value : values) scale = std::max(scale, std::abs(value - best));
    return scale;
  }
  const float median = Median(values);
  for (float value : values) scale += std::abs(value - median);
  return scale / static_cast<float>(values.size());
}

}  // namespace

Fields FieldsOf(TargetOptions& options) {
  Fields fields;
  fields.AddChoice("mode", options.mode, "objective",
                   {{"binned_ev", TargetMode::kBinnedEv},
                    {"hard_move", TargetMode::kHardMove},
                    {"tsad_soft", TargetMode::kTsadSoft}});
  fields.Add("mask_illegal", options.mask_illegal, "hard_move: mask illegal moves");
  fields.Add("tsad_temperature", options.tsad_temperature,
             "temperature of the softmax of advantages", {.min = 1e-6});
  fields.AddChoice("tsad_scale_kind", options.tsad_scale_kind, "what advantages are divided by",
                   {{"max_abs", ScaleKind::kMaxAbs}, {"mad", ScaleKind::kMad}});
  fields.Add("tsad_min_scale", options.tsad_min_scale, "min of that divisor", {.min = 1e-12});
  fields.Add("tsad_mix_with_hard", options.tsad_mix_with_hard,
             "weight of the move made in the target", {.min = 0, .max = 1});
  fields.Add("tsad_aux_ce_weight", options.tsad_aux_ce_weight,
             "weight of the cross-entropy of the move made, added to the divergence", {.min = 0});
  fields.AddChoice("tsad_kl", options.tsad_kl, "direction of the divergence",
                   {{"teacher_student", KlDirection::kTeacherStudent},
                    {"student_teacher", KlDirection::kStudentTeacher}});
  return fields;
}

Fields FieldsOf(BinningOptions& options) {
  Fields fields;
  fields.AddChoice("strategy", options.strategy, "how the edges divide [0, 1]",
                   {{"edges", BinStrategy::kEdges}, {"upper_bounds", BinStrategy::kUpperBounds}});
  fields.Add("special_zero_one", options.special_zero_one,
             "with edges: exactly 0 and exactly 1 have bins of their own");
  fields.Add("edges", options.edges, "ascending values in [0, 1]", {.min = 0, .max = 1});
  return fields;
}

Binner::Binner(const BinningOptions& options) : options_(options) {
  if (options.edges.size() < 2 || !std::ranges::is_sorted(options.edges)) {
    throw Error::Usage("binning.edges: expected at least two values in ascending order");
  }
  for (double edge : options.edges) edges_.push_back(static_cast<float>(edge));
  const int count = static_cast<int>(edges_.size());
  if (options.strategy == BinStrategy::kUpperBounds) {
    bins_ = count;
  } else {
    bins_ = options.special_zero_one ? count + 1 : count - 1;
  }
}

int Binner::BinOf(float value) const {
  value = std::clamp(value, 0.0F, 1.0F);
  if (options_.strategy == BinStrategy::kUpperBounds) {
    const auto above = std::ranges::upper_bound(edges_, value);
    return std::min(static_cast<int>(above - edges_.begin()), bins_ - 1);
  }
  // Bins are open below and closed above.
  const int interval =
      static_cast<int>(std::ranges::lower_bound(edges_, value) - edges_.begin()) - 1;
  const int intervals = static_cast<int>(edges_.size()) - 1;
  const int bin = std::clamp(interval, 0, intervals - 1);
  if (!options_.special_zero_one) return bin;
  if (value <= 0) return 0;
  return value >= 1 ? bins_ - 1 : bin + 1;
}

double Binner::CenterOf(int bin) const {
  const auto edge = [this](int i) {
    return static_cast<double>(
        edges_[static_cast<size_t>(std::clamp(i, 0, static_cast<int>(edges_.size()) - 1))]);
  };
  if (options_.strategy == BinStrategy::kUpperBounds) return (edge(bin - 1) + edge(bin)) / 2;
  if (!options_.special_zero_one) return (edge(bin) + edge(bin + 1)) / 2;
  if (bin == 0) return 0;
  return bin == bins_ - 1 ? 1 : (edge(bin - 1) + edge(bin)) / 2;
}

std::array<float, 4> Normalised(const Judged& judged) {
  constexpr float kBest = 1 - std::numeric_limits<float>::epsilon();
  float low = std::numeric_limits<float>::infinity();
  float high = -low;
  int count = 0;
  for (size_t i = 0; i < 4; ++i) {
    if (!IsLegal(judged.legal, i)) continue;
    low = std::min(low, judged.values[i]);
    high = std::max(high, judged.values[i]);
    ++count;
  }
  std::array<float, 4> out{};
  for (size_t i = 0; i < 4; ++i) {
    if (!IsLegal(judged.legal, i)) continue;
    if (count == 1) {
      out[i] = kBest;
    } else if (high == low) {
      out[i] = 0.5F;
    } else {
      const double share = (double{judged.values[i]} - low) / (double{high} - low);
      out[i] = std::min(static_cast<float>(share), kBest);
    }
  }
  if (IsLegal(judged.legal, static_cast<size_t>(judged.move))) {
    out[static_cast<size_t>(judged.move)] = 1;
  }
  return out;
}

std::array<float, 4> SoftTargets(const Judged& judged, const TargetOptions& options) {
  std::array<float, 4> targets{};
  const size_t best = BestMove(judged);
  if (best == 4) return targets;
  const float top = judged.values[best];
  const auto min_scale = static_cast<float>(options.tsad_min_scale);
  const float scale = std::max(ScaleOf(judged, top, options.tsad_scale_kind), min_scale);
  const float divisor = std::max(scale * static_cast<float>(options.tsad_temperature), min_scale);
  float sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    if (IsLegal(judged.legal, i)) sum += targets[i] = std::exp((judged.values[i] - top) / divisor);
  }
  const auto mix = static_cast<float>(options.tsad_mix_with_hard);
  for (float& target : targets) target *= (1 - mix) / sum;
  const auto made = static_cast<size_t>(judged.move);
  targets[IsLegal(judged.legal, made) ? made : best] += mix;
  return targets;
}

}  // namespace kibitz::twenty48
