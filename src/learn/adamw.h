// AdamW (Loshchilov and Hutter, 2019) as PyTorch computes it, with its state in PyTorch's own
// layout: either side resumes from the other's checkpoint.
//
//   AdamW optimizer(module.parameters(), options);
//   double norm = ClipGradients(module.parameters(), 10);
//   optimizer.Step(rate);
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/weights/value.h"
#include "learn/options/loop_options.h"

namespace kibitz::learn {

class AdamW {
 public:
  AdamW(std::vector<torch::Tensor> parameters, const LoopOptions& options);

  // One update. A parameter without a gradient is left alone, also by weight decay. So are the rows
  // that a sparse gradient lacks; its others are updated without a first moment, because nothing
  // would move them on between two gradients.
  void Step(double learning_rate);
  // Drops the gradients.
  void ZeroGradients();

  // "optimizer_state_dict" of a checkpoint. The tensors share memory with the optimizer.
  io::Value ToValue() const;
  // Throws Error, naming `place`, when the state does not fit the parameters.
  void Restore(const io::Value& state, const std::string& place);

 private:
  struct State {
    int64_t step = 0;
    torch::Tensor exp_avg;  // As the parameter; undefined before the first step.
    torch::Tensor exp_avg_sq;
  };

  std::vector<torch::Tensor> parameters_;
  LoopOptions options_;
  double learning_rate_ = 0;  // Of the last step.
  std::vector<State> states_;
};

// Scales the gradients down to a total norm of `max_norm`, unless that is 0 or the norm is NaN or
// infinite. Returns the norm before.
double ClipGradients(const std::vector<torch::Tensor>& parameters, double max_norm);

}  // namespace kibitz::learn
