#include "players/networks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/shipped.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "oracles/lc0/network.h"
#include "oracles/search/cached_evaluator.h"
#include "students/decoder/play/evaluator.h"
#include "students/policy/play/evaluator.h"

namespace kibitz::players {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ShippedModels() {
  std::vector<std::string> names;
  const auto folder = FindShipped("models");
  if (!folder) return names;
  for (const fs::directory_entry& entry : fs::directory_iterator(*folder)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// An evaluator that remembers, with the one it asks.
class Remembering final : public oracles::Evaluator {
 public:
  Remembering(std::shared_ptr<oracles::Evaluator> evaluator, int64_t entries)
      : evaluator_(std::move(evaluator)), cached_(*evaluator_, {.entries = entries}) {}

  void Evaluate(std::span<const oracles::Question> questions,
                std::span<oracles::Evaluation> answers) override {
    cached_.Evaluate(questions, answers);
  }
  int batch() const override { return cached_.batch(); }
  std::string name() const override { return cached_.name(); }

 private:
  std::shared_ptr<oracles::Evaluator> evaluator_;
  oracles::CachedEvaluator cached_;
};

// More threads than cores only get into each other's way.
nn::NetworkOptions Sensible(nn::NetworkOptions options) {
  options.threads = std::min(options.threads, HardwareThreads());
  return options;
}

// The network with these options, loaded where it is not there. Networks that nobody uses any more
// make room first.
template <typename Network, typename Load>
std::shared_ptr<Network> Kept(
    std::vector<std::pair<nn::NetworkOptions, std::shared_ptr<Network>>>& networks,
    const nn::NetworkOptions& options, Load load) {
  for (const auto& [known, network] : networks) {
    if (known == options) return network;
  }
  std::erase_if(networks, [](const auto& item) { return item.second.use_count() == 1; });
  return networks.emplace_back(options, load()).second;
}

}  // namespace

std::string FindModel(const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error)) return name;
  if (const auto shipped = FindShipped("models/" + name)) return *shipped;
  throw Error("{}: there is no such file or folder; models that ship: {}", name,
              fmt::join(ShippedModels(), ", "));
}

std::string ModelName(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

NetworkKind NetworkKindOf(const io::ModelFile& file) {
  if (file.format == io::ModelFormat::kLc0) return NetworkKind::kLc0;
  if (file.weights.Find("tok_embedding.weight") != nullptr) return NetworkKind::kDecoder;
  const nlohmann::ordered_json* model = file.Section("model");
  const auto has = [&](const char* key) { return model != nullptr && model->contains(key); };
  if (has("input_vocab_size") || has("output_n_bins")) {
    throw Error("{}: a 2048 network does not play chess; try 'kibitz 2048 play --model {}'",
                file.place, file.place);
  }
  return NetworkKind::kPolicy;
}

std::shared_ptr<decoder::Player> Networks::Decoder(const nn::NetworkOptions& asked) {
  const nn::NetworkOptions options = Sensible(asked);
  return Kept(decoders_, options,
              [&]() -> std::shared_ptr<decoder::Player> { return decoder::Player::Load(options); });
}

std::shared_ptr<policy::Player> Networks::Policy(const nn::NetworkOptions& asked) {
  const nn::NetworkOptions options = Sensible(asked);
  return Kept(policies_, options, [&] { return std::make_shared<policy::Player>(options); });
}

std::shared_ptr<oracles::Evaluator> Networks::Evaluator(const EvaluatorOptions& options) {
  const io::ModelFile file = io::ReadModel(options.network.path);
  const std::string name = ModelName(options.network.path);
  std::shared_ptr<oracles::Evaluator> evaluator;
  switch (NetworkKindOf(file)) {
    case NetworkKind::kLc0:
      evaluator = std::make_shared<oracles::Lc0Network>(
          file, oracles::Lc0Options{.network = Sensible(options.network),
                                    .policy_temperature = options.policy_temperature,
                                    .lc0_rounding = options.lc0_rounding});
      break;
    case NetworkKind::kDecoder:
      evaluator = std::make_shared<decoder::DecoderEvaluator>(Decoder(options.network), name,
                                                              options.policy_temperature);
      break;
    case NetworkKind::kPolicy:
      evaluator = std::make_shared<policy::PolicyEvaluator>(
          Policy(options.network), name,
          policy::PolicyEvaluatorOptions{.temperature = options.policy_temperature,
                                         .mirror = options.mirror});
      break;
  }
  if (options.cache == 0) return evaluator;
  return std::make_shared<Remembering>(std::move(evaluator), options.cache);
}

}  // namespace kibitz::players
