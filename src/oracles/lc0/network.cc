#include "oracles/lc0/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "oracles/lc0/planes.h"
#include "oracles/lc0/policy_index.h"

namespace kibitz::oracles {
namespace {

constexpr int64_t kBoardSquares = 64;

// e^x as lc0 computes it: a parabola between powers of two.
float QuickExp(float x) {
  const float power = x * 1.442695040F;
  if (power < -126) return 0;
  const auto whole = static_cast<int32_t>(power < 0 ? power - 1 : power);
  const float part = power - static_cast<float>(whole);
  const float mantissa = 1.0F + part * (0.6602339F + 0.33976606F * part);
  return std::bit_cast<float>(std::bit_cast<int32_t>(mantissa) + (whole << 23));
}

// To 11 bits after the leading one, as lc0 stores priors in 16 bits; tiny ones become 0.
float RoundPrior(float prior) {
  const int32_t kept = std::bit_cast<int32_t>(prior) + (1 << 11) - (3 << 28);
  return kept < 0 ? 0 : std::bit_cast<float>(((kept >> 12) << 12) + (3 << 28));
}

void QuickSoftmax(std::span<float> logits, double temperature) {
  const float max = *std::ranges::max_element(logits);
  float sum = 0;
  for (float& logit : logits) {
    logit = QuickExp((logit - max) / static_cast<float>(temperature));
    sum += logit;
  }
  for (float& logit : logits) logit = RoundPrior(logit * (1 / sum));
}

}  // namespace

Lc0Network::Lc0Network(const Lc0Options& options)
    : Lc0Network(io::ReadModel(options.network.path), options) {}

Lc0Network::Lc0Network(const io::ModelFile& file, const Lc0Options& options)
    : Lc0Network(file.place, Lc0WeightsOf(file), options) {}

Lc0Network::Lc0Network(const std::string& place, const Lc0Weights& weights,
                       const Lc0Options& options)
    : options_(options),
      name_(fmt::format("{} ({})", std::filesystem::path(place).filename().string(),
                        DescriptionOf(weights))),
      value_head_(weights.value_head),
      planes_policy_(weights.residual.policy_planes.has_value()),
      net_(weights.residual),
      team_(options.network.threads) {
  if (options.network.precision != nn::Precision::kF32) {
    throw Error::Usage("{}: an lc0 network runs in f32 only", place);
  }
}

int Lc0Network::batch() const { return 32 * team_.size(); }

std::vector<Lc0Output> Lc0Network::Run(std::span<const Question> questions) {
  const size_t count = questions.size();
  std::vector<Lc0Planes> planes(count);
  std::vector<nn::PlaneInput> inputs(count);
  for (size_t i = 0; i < count; ++i) {
    planes[i] = MakeLc0Planes(questions[i]);
    inputs[i] = {planes[i].squares, planes[i].values};
  }
  const auto policy_size = static_cast<size_t>(net_.policy_size());
  const auto value_size = static_cast<size_t>(net_.value_size());
  policy_.resize(count * policy_size);
  value_.resize(count * value_size);
  net_.Run(team_, inputs, policy_.data(), value_.data());

  std::vector<Lc0Output> outputs(count);
  for (size_t i = 0; i < count; ++i) {
    const float* policy = policy_.data() + i * policy_size;
    const chess::Color mover = questions[i].board().side_to_move();
    for (chess::Move move : questions[i].moves()) {
      int64_t index = Lc0MoveIndex(mover, move);
      if (planes_policy_) {
        const Lc0PlanePlace place = Lc0PlaceOf(mover, move);
        index = place.square * (net_.policy_size() / kBoardSquares) + place.plane;
      }
      outputs[i].logits.push_back(policy[index]);
    }
    const float* value = value_.data() + i * value_size;
    if (value_head_ == Lc0ValueHead::kWdl) {
      std::array<float, 3> wdl = {value[0], value[1], value[2]};
      Softmax(wdl);
      std::tie(outputs[i].win, outputs[i].draw, outputs[i].loss) = std::tie(wdl[0], wdl[1], wdl[2]);
    } else {
      outputs[i].win = (1 + std::tanh(value[0])) / 2;
      outputs[i].loss = 1 - outputs[i].win;
    }
  }
  return outputs;
}

void Lc0Network::Evaluate(std::span<const Question> questions, std::span<Evaluation> answers) {
  CHECK(questions.size() == answers.size());
  std::vector<Lc0Output> outputs = Run(questions);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (options_.lc0_rounding) {
      QuickSoftmax(outputs[i].logits, options_.policy_temperature);
    } else {
      Softmax(outputs[i].logits, options_.policy_temperature);
    }
    answers[i] = {.q = outputs[i].win - outputs[i].loss,
                  .draw = outputs[i].draw,
                  .priors = std::move(outputs[i].logits)};
  }
}

}  // namespace kibitz::oracles
