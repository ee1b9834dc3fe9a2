// The decoder as an evaluator for a search: priors from policy_head, the value of its most likely
// move. Positions are read without their history.
//
//   DecoderEvaluator evaluator(Player::Load({.path = "model.pt"}), "model.pt");
//   oracles::Search(evaluator, tree, {.visits = 400});
#pragma once

#include <memory>
#include <span>
#include <string>

#include "oracles/search/evaluator.h"
#include "students/decoder/play/player.h"

namespace kibitz::decoder {

class DecoderEvaluator : public oracles::Evaluator {
 public:
  // `name` stands in reports. Priors are the policy's probabilities at this temperature.
  DecoderEvaluator(std::shared_ptr<Player> player, std::string name, double temperature = 1);

  void Evaluate(std::span<const oracles::Question> questions,
                std::span<oracles::Evaluation> answers) override;
  int batch() const override { return 32; }
  std::string name() const override { return name_; }

 private:
  std::shared_ptr<Player> player_;
  std::string name_;
  double temperature_;
};

}  // namespace kibitz::decoder
