// Loads the networks that play chess, each once for all players that use it.
//
//   Networks networks;
//   auto network = networks.Evaluator({.network = {.path = "maia-1500.pb.gz"}});
//
// A network answers one call at a time, so players that share one must not play at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/weights/model_file.h"
#include "nn/kernels/network_options.h"
#include "oracles/search/evaluator.h"
#include "students/decoder/play/player.h"
#include "students/policy/play/player.h"

namespace kibitz::players {

enum class NetworkKind { kDecoder, kPolicy, kLc0 };

// The file or folder a model's name stands for: itself, or a model that ships ("policy-small").
// Throws Error that lists the models there are.
std::string FindModel(const std::string& name);

// What people call the model at this path: its last part.
std::string ModelName(const std::string& path);

// By what the file holds. Throws Error when it is no network that plays chess.
NetworkKind NetworkKindOf(const io::ModelFile& file);

struct EvaluatorOptions {
  nn::NetworkOptions network = {};
  double policy_temperature = 1;  // Priors are a softmax of the policy at this temperature.
  bool lc0_rounding = false;      // Priors rounded as lc0 does.
  bool mirror = false;            // A policy also sees the mirrored board (PolicyEvaluatorOptions).
  int64_t cache = 0;              // Positions to remember; 0: none.
};

class Networks {
 public:
  // Each throws Error.
  std::shared_ptr<decoder::Player> Decoder(const nn::NetworkOptions& options);
  std::shared_ptr<policy::Player> Policy(const nn::NetworkOptions& options);
  // Any network as an evaluator for a search.
  std::shared_ptr<oracles::Evaluator> Evaluator(const EvaluatorOptions& options);

 private:
  template <typename Network>
  using Loaded = std::vector<std::pair<nn::NetworkOptions, std::shared_ptr<Network>>>;
  Loaded<decoder::Player> decoders_;
  Loaded<policy::Player> policies_;
};

}  // namespace kibitz::players
