#include "oracles/ntuple_learning.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "io/safetensors.h"

namespace kibitz::oracles {
namespace {

using twenty48::Board;
using twenty48::Game;
using twenty48::Slid;

io::NamedTensor Borrowed(std::string name, const void* data, std::vector<int64_t> shape) {
  io::Tensor tensor;
  tensor.type = io::DType::kF32;
  tensor.shape = std::move(shape);
  tensor.bytes = {static_cast<const std::byte*>(data),
                  static_cast<size_t>(*io::BytesOf(tensor.type, tensor.shape))};
  return {std::move(name), std::move(tensor)};
}

std::string Joined(const std::vector<TuplePattern>& patterns) {
  std::string text;
  for (const TuplePattern& pattern : patterns) text += (text.empty() ? "" : ",") + pattern.text;
  return text;
}

}  // namespace

Fields FieldsOf(NTupleLearningOptions& options) {
  Fields fields;
  fields.Add("patterns", options.patterns, "patterns of cells, in hexadecimal",
             {.metavar = "CELLS,..."});
  fields.Add("seed", options.seed, "of the games' chance");
  fields.Add("learning_rate", options.learning_rate, "of entries whose corrections agree",
             {.min = 0, .max = 10});
  fields.Add("optimism", options.optimism, "points a board is worth before anything is known",
             {.min = 0, .max = 1e6});
  return fields;
}

NTupleLearner::NTupleLearner(const NTupleLearningOptions& options)
    : options_(options), network_(options.patterns) {
  const auto start = static_cast<float>(options.optimism / network_.terms());
  for (size_t t = 0; t < network_.patterns().size(); ++t) {
    coherence_.emplace_back(network_.patterns()[t].entries);
    std::ranges::fill(network_.table(t), start);
  }
}

NTupleLearner NTupleLearner::Load(const std::string& path) {
  const io::Safetensors file = io::ReadSafetensors(path);
  const std::string* config = file.FindMetadata("learning");
  const std::string* games = file.FindMetadata("games");
  if (config == nullptr || games == nullptr) {
    throw Error(
        "{}: has no state of learning; give the file that 'kibitz 2048 oracle' goes on "
        "with, not the weights alone",
        path);
  }
  NTupleLearningOptions options;
  FieldsOf(options).ReadTree(nlohmann::ordered_json::parse(*config), path);
  NTupleLearner learner(options);
  learner.network_ = NTupleNetwork::Load(path);
  learner.games_ = ParseInt(*games).value_or(0);
  for (size_t t = 0; t < options.patterns.size(); ++t) {
    const std::string name = "coherence." + options.patterns[t];
    const auto found = std::ranges::find(file.tensors, name, &io::NamedTensor::name);
    const std::span<Coherence> table = learner.coherence_[t].span();
    if (found == file.tensors.end() || found->tensor.bytes.size() != table.size_bytes()) {
      throw Error("{}: tensor {} is missing or not float32 [{}, 2]", path, name, table.size());
    }
    std::memcpy(table.data(), found->tensor.bytes.data(), table.size_bytes());
  }
  return learner;
}

Game NTupleLearner::LearnGame() {
  const Game game = Play();
  LearnFromSteps();
  ++games_;
  return game;
}

Game NTupleLearner::Play() {
  Rng rng({.seed = options_.seed,
           .sample = static_cast<uint64_t>(games_),
           .purpose = Purpose("2048 n-tuple game")});
  Game game = Game::Start(rng);
  steps_.clear();
  while (true) {
    const std::array<Slid, 4> moves = twenty48::SlideAll(game.board);
    const Slid* best = nullptr;
    float best_value = 0;
    for (const Slid& slid : moves) {
      if (!slid.legal(game.board)) continue;
      const float value = static_cast<float>(slid.points) + network_.Value(slid.board.packed());
      if (best == nullptr || value > best_value) {
        best = &slid;
        best_value = value;
      }
    }
    if (best == nullptr) return game;
    steps_.push_back({best->board.packed(), best->points});
    game.Play(*best, rng);
  }
}

// From the end of the game, so that what happened there reaches its beginning at once.
void NTupleLearner::LearnFromSteps() {
  float target = 0;  // Of the afterstate at hand: the points that come behind it.
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    const float value = network_.Value(step.afterstate);
    target = static_cast<float>(step.points) + Correct(step.afterstate, target - value);
  }
}

float NTupleLearner::Correct(uint64_t afterstate, float error) {
  const std::array<uint64_t, 8> views = twenty48::Views(afterstate);
  const float part =
      static_cast<float>(options_.learning_rate) * error / static_cast<float>(network_.terms());
  float value = 0;
  for (size_t t = 0; t < coherence_.size(); ++t) {
    const uint64_t mask = network_.patterns()[t].mask;
    const std::span<float> weights = network_.table(t);
    for (uint64_t view : views) {
      const uint64_t entry = GatherBits(view, mask);
      Coherence& coherence = coherence_[t][entry];
      const float rate = coherence.size == 0 ? 1.0F : std::abs(coherence.sum) / coherence.size;
      weights[entry] += rate * part;
      coherence.sum += error;
      coherence.size += std::abs(error);
      value += weights[entry];
    }
  }
  return value;
}

void NTupleLearner::Save(const std::string& path, bool complete) const {
  io::Safetensors file;
  NTupleLearningOptions options = options_;
  file.metadata = {{"patterns", Joined(network_.patterns())},
                   {"games", std::to_string(games_)},
                   {"kind", "2048 n-tuple network"}};
  if (complete) file.metadata.emplace_back("learning", FieldsOf(options).ToTree().dump());
  for (size_t t = 0; t < coherence_.size(); ++t) {
    const std::string& text = network_.patterns()[t].text;
    const auto entries = static_cast<int64_t>(coherence_[t].size());
    file.tensors.push_back(Borrowed("weights." + text, network_.table(t).data(), {entries}));
    if (complete) {
      file.tensors.push_back(
          Borrowed("coherence." + text, coherence_[t].span().data(), {entries, 2}));
    }
  }
  io::WriteSafetensors(path, file);
}

}  // namespace kibitz::oracles
