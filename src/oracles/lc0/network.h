// An lc0 network as an evaluator: priors of the legal moves, and win, draw, loss.
//
//   Lc0Network net({.network = {.path = "maia-1500.pb.gz", .threads = 2}});
//   net.Evaluate(questions, answers);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/conv/residual_net.h"
#include "nn/kernels/network_options.h"
#include "nn/kernels/team.h"
#include "oracles/lc0/residual_weights.h"
#include "oracles/search/evaluator.h"

namespace kibitz::oracles {

struct Lc0Options {
  nn::NetworkOptions network = {};
  double policy_temperature = 1;  // Priors are a softmax of logits divided by this.
  // Computes priors as lc0 does, with its approximate exponential and rounded to 11 bits, so that a
  // search has the same visits. Else exact.
  bool lc0_rounding = false;
};

// The outputs of the network.
struct Lc0Output {
  std::vector<float> logits;  // Of the question's moves.
  float win = 0;              // For the side to move; sum 1. A network without WDL: draw is 0.
  float draw = 0;
  float loss = 0;
};

class Lc0Network : public Evaluator {
 public:
  // Of the file at options.network.path, or of one that was read before. Throws Error.
  explicit Lc0Network(const Lc0Options& options);
  Lc0Network(const io::ModelFile& file, const Lc0Options& options);

  void Evaluate(std::span<const Question> questions, std::span<Evaluation> answers) override;
  int batch() const override;
  std::string name() const override { return name_; }

  std::vector<Lc0Output> Run(std::span<const Question> questions);

 private:
  Lc0Network(const std::string& place, const Lc0Weights& weights, const Lc0Options& options);

  Lc0Options options_;
  std::string name_;
  Lc0ValueHead value_head_;
  bool planes_policy_;  // Convolutional head.
  nn::ResidualNet net_;
  nn::Team team_;
  std::vector<float> policy_;  // (N, policy_size)
  std::vector<float> value_;   // (N, value_size)
};

}  // namespace kibitz::oracles
