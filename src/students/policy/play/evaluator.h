// The policy as an evaluator for a search: priors by the network; the value, which it has none of,
// from a material count after captures.
//
//   PolicyEvaluator evaluator(std::make_shared<Player>(options), "policy-small");
#pragma once

#include <memory>
#include <span>
#include <string>

#include "oracles/search/evaluator.h"
#include "students/policy/play/player.h"

namespace kibitz::policy {

struct PolicyEvaluatorOptions {
  double temperature = 1;  // Priors are the network's probabilities at this temperature.
  // Where nobody may castle, also asks for the board with its files mirrored, and takes the mean of
  // both answers.
  bool mirror = false;
};

class PolicyEvaluator final : public oracles::Evaluator {
 public:
  // `name` stands in reports.
  PolicyEvaluator(std::shared_ptr<Player> player, std::string name,
                  const PolicyEvaluatorOptions& options = {});

  void Evaluate(std::span<const oracles::Question> questions,
                std::span<oracles::Evaluation> answers) override;
  int batch() const override { return 64; }
  std::string name() const override { return name_; }

 private:
  std::shared_ptr<Player> player_;
  std::string name_;
  PolicyEvaluatorOptions options_;
};

}  // namespace kibitz::policy
