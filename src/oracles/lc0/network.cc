#include "oracles/lc0/network.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "oracles/lc0/planes.h"
#include "oracles/lc0/policy_index.h"

namespace kibitz::oracles {
namespace {

constexpr int64_t kBoardSquares = 64;

}  // namespace

Lc0Network::Lc0Network(const std::string& path, const Lc0Options& options)
    : Lc0Network(path, ReadLc0File(path), options) {}

Lc0Network::Lc0Network(const std::string& path, Lc0File file, const Lc0Options& options)
    : options_(options),
      name_(fmt::format("{} ({})", std::filesystem::path(path).filename().string(),
                        DescriptionOf(file))),
      value_head_(file.value_head),
      planes_policy_(file.weights.policy_planes.has_value()),
      net_(file.weights, options.precision),
      team_(options.threads) {}

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
    Softmax(outputs[i].logits, options_.policy_temperature);
    answers[i] = {.q = outputs[i].win - outputs[i].loss,
                  .draw = outputs[i].draw,
                  .priors = std::move(outputs[i].logits)};
  }
}

}  // namespace kibitz::oracles
