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

class PolicyEvaluator final : public oracles::Evaluator {
 public:
  // `name` stands in reports. Priors are the network's probabilities at this temperature.
  PolicyEvaluator(std::shared_ptr<Player> player, std::string name, double temperature = 1);

  void Evaluate(std::span<const oracles::Question> questions,
                std::span<oracles::Evaluation> answers) override;
  int batch() const override { return 64; }
  std::string name() const override { return name_; }

 private:
  std::shared_ptr<Player> player_;
  std::string name_;
  double temperature_;
};

}  // namespace kibitz::policy
