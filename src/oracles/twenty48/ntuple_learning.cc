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

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

}  // namespace

Fields FieldsOf(NTupleLearningOptions& options) {
  Fields fields;
  fields.Add("patterns", options.patterns, "patterns of cells, in hexadecimal",
             {.metavar = "CELLS,..."});
  fields.Add("stages", options.stages,
             "tiles from which on the largest one selects other tables, such as 8192,16384",
             {.metavar = "TILE,..."});
  fields.Add("seed", options.seed, "random seed of the tiles");
  fields.Add("learning_rate", options.learning_rate,
             "learning rate of entries whose corrections all have one sign", {.min = 0, .max = 10});
  fields.Add("optimism", options.optimism,
             "initial value of a board, in points; above 0 explores more", {.min = 0, .max = 1e6});
  fields.Add("restart_from", options.restart_from,
             "replay games of at least this many moves from their middle; 0: never", {.min = 0});
  fields.Add(
      "trace", options.trace,
      "lambda of TD(lambda): 0 learns from the value of the next board, 1 from all points that "
      "came later",
      {.min = 0, .max = 1});
  return fields;
}

NTupleLearner::NTupleLearner(const NTupleLearningOptions& options)
    : options_(options), network_(options.patterns, options.stages) {
  const auto start = static_cast<float>(options.optimism / network_.terms());
  for (size_t t = 0; t < network_.patterns().size(); ++t) {
    std::ranges::fill(network_.table(t), start);
  }
  for (size_t stage = 0; stage < network_.stages(); ++stage) {
    for (const TuplePattern& pattern : network_.patterns()) {
      coherence_.emplace_back(pattern.entries);
    }
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
  options.trace = 0;  // As files that do not name it were made.
  FieldsOf(options).ReadTree(nlohmann::ordered_json::parse(*config), path);
  NTupleLearner learner(options);
  learner.network_ = NTupleNetwork::Load(path);
  learner.games_ = ParseInt(*games).value_or(0);
  for (size_t i = 0; i < learner.coherence_.size(); ++i) {
    const std::string name = "coherence." + learner.network_.TableName(i % options.patterns.size(),
                                                                       i / options.patterns.size());
    const auto found = std::ranges::find(file.tensors, name, &io::NamedTensor::name);
    const std::span<Coherence> table = learner.coherence_[i].span();
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
  const auto trace = static_cast<float>(options_.trace);
  float target = 0;  // Of the current afterstate: the points still to come.
  Entries entries{.at = std::vector<uint32_t>(static_cast<size_t>(network_.terms()))};
  Entries before = entries;
  if (!steps_.empty()) Find(steps_.back().afterstate, entries);
  for (size_t i = steps_.size(); i-- > 0;) {
    if (i > 0) Find(steps_[i - 1].afterstate, before);
    const float value = Correct(entries, target);
    target = static_cast<float>(steps_[i].points) + value + trace * (target - value);
    std::swap(entries, before);
  }
  moves_ += std::ssize(steps_);
}

void NTupleLearner::Find(uint64_t afterstate, Entries& entries) const {
  const std::array<uint64_t, 8> views = twenty48::Views(afterstate);
  entries.stage = network_.Stage(afterstate);
  size_t n = 0;
  for (size_t t = 0; t < network_.patterns().size(); ++t) {
    const uint64_t mask = network_.patterns()[t].mask;
    const std::span<const float> weights = network_.table(t, entries.stage);
    const HugeArray<Coherence>& coherence = CoherenceOf(t, entries.stage);
    for (uint64_t view : views) {
      const auto entry = static_cast<uint32_t>(GatherBits(view, mask));
      __builtin_prefetch(&weights[entry], 1);
      __builtin_prefetch(&coherence[entry], 1);
      entries.at[n++] = entry;
    }
  }
}

float NTupleLearner::Correct(const Entries& entries, float target) {
  float value = 0;
  size_t n = 0;
  for (size_t t = 0; t < network_.patterns().size(); ++t) {
    for (int view = 0; view < 8; ++view) {
      value += network_.Weight(t, entries.stage, entries.at[n++]);
    }
  }
  const float error = target - value;
  const float part =
      static_cast<float>(options_.learning_rate) * error / static_cast<float>(network_.terms());
  value = 0;
  n = 0;
  for (size_t t = 0; t < network_.patterns().size(); ++t) {
    const std::span<float> weights = network_.table(t, entries.stage);
    HugeArray<Coherence>& table = CoherenceOf(t, entries.stage);
    for (int view = 0; view < 8; ++view) {
      const uint32_t entry = entries.at[n++];
      Coherence& coherence = table[entry];
      const float rate = coherence.size == 0 ? 1.0F : std::abs(coherence.sum) / coherence.size;
      weights[entry] = network_.Weight(t, entries.stage, entry) + rate * part;
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
  file.metadata = {{"patterns", Joined(options.patterns)},
                   {"games", std::to_string(games_)},
                   {"kind", "2048 n-tuple network"}};
  if (!options.stages.empty()) file.metadata.emplace_back("stages", Joined(options.stages));
  if (complete) file.metadata.emplace_back("learning", FieldsOf(options).ToTree().dump());
  for (size_t i = 0; i < coherence_.size(); ++i) {
    const size_t t = i % options.patterns.size();
    const size_t stage = i / options.patterns.size();
    const std::string name = network_.TableName(t, stage);
    const auto entries = static_cast<int64_t>(coherence_[i].size());
    file.tensors.push_back(Borrowed("weights." + name, network_.table(t, stage).data(), {entries}));
    if (complete) {
      file.tensors.push_back(
          Borrowed("coherence." + name, coherence_[i].span().data(), {entries, 2}));
    }
  }
  io::WriteSafetensors(path, file);
}

}  // namespace kibitz::oracles
