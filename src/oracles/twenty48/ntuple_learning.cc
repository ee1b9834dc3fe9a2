#include "oracles/twenty48/ntuple_learning.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "io/weights/safetensors.h"

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
  fields.Add("seed", options.seed, "random seed of the tiles");
  fields.Add("learning_rate", options.learning_rate,
             "learning rate of entries whose corrections all have one sign", {.min = 0, .max = 10});
  fields.Add("optimism", options.optimism,
             "initial value of a board, in points; above 0 explores more", {.min = 0, .max = 1e6});
  fields.Add("restart_from", options.restart_from,
             "replay games of at least this many moves from their middle; 0: never", {.min = 0});
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
        "{}: holds weights without training state; expected the file that 'kibitz 2048 oracle "
        "--out' wrote",
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
  Rng rng({.seed = options_.seed,
           .sample = static_cast<uint64_t>(games_),
           .purpose = Purpose("2048 n-tuple game")});
  Game game = Game::Start(rng);
  Play(game, rng);
  LearnFromSteps();
  while (options_.restart_from > 0 && std::ssize(steps_) >= options_.restart_from) {
    Game again;
    again.board = steps_[steps_.size() / 2].before;
    Play(again, rng);
    LearnFromSteps();
  }
  ++games_;
  return game;
}

void NTupleLearner::Play(Game& game, Rng& rng) {
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
    if (best == nullptr) return;
    steps_.push_back({game.board, best->board.packed(), best->points});
    game.Play(*best, rng);
  }
}

// Backward from the end of the game, so that its outcome reaches the first moves at once.
// Prefetches the entries of the next step while it corrects those of this one.
void NTupleLearner::LearnFromSteps() {
  float target = 0;  // Of the current afterstate: the points still to come.
  Entries entries(static_cast<size_t>(network_.terms()));
  Entries before(entries.size());
  if (!steps_.empty()) Find(steps_.back().afterstate, entries);
  for (size_t i = steps_.size(); i-- > 0;) {
    if (i > 0) Find(steps_[i - 1].afterstate, before);
    target = static_cast<float>(steps_[i].points) + Correct(entries, target);
    entries.swap(before);
  }
  moves_ += std::ssize(steps_);
}

void NTupleLearner::Find(uint64_t afterstate, Entries& entries) const {
  const std::array<uint64_t, 8> views = twenty48::Views(afterstate);
  size_t n = 0;
  for (size_t t = 0; t < coherence_.size(); ++t) {
    const uint64_t mask = network_.patterns()[t].mask;
    for (uint64_t view : views) {
      const auto entry = static_cast<uint32_t>(GatherBits(view, mask));
      __builtin_prefetch(&network_.table(t)[entry], 1);
      __builtin_prefetch(&coherence_[t][entry], 1);
      entries[n++] = entry;
    }
  }
}

float NTupleLearner::Correct(const Entries& entries, float target) {
  float value = 0;
  size_t n = 0;
  for (size_t t = 0; t < coherence_.size(); ++t) {
    for (int view = 0; view < 8; ++view) value += network_.table(t)[entries[n++]];
  }
  const float error = target - value;
  const float part =
      static_cast<float>(options_.learning_rate) * error / static_cast<float>(network_.terms());
  value = 0;
  n = 0;
  for (size_t t = 0; t < coherence_.size(); ++t) {
    const std::span<float> weights = network_.table(t);
    for (int view = 0; view < 8; ++view) {
      const uint32_t entry = entries[n++];
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
