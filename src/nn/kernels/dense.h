// y = activation(W x + b) for rows that lie in cache, by the thread that calls: the small products
// inside a convolutional network. linear.h has the large ones, shared by a team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nn/conv/activation.h"
#include "nn/kernels/aligned.h"

namespace kibitz::nn {

struct DenseWeights {
  int64_t inputs = 0;
  int64_t outputs = 0;
  std::vector<float> weight;  // (outputs, inputs)
  std::vector<float> bias;    // (outputs)
};

class Dense {
 public:
  Dense() = default;
  explicit Dense(const DenseWeights& weights);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  size_t memory_bytes() const;

  // x: (rows, inputs), rows x_row apart; y: (rows, outputs), rows y_row apart, which must have room
  // for PaddedChannels(outputs): the rest becomes activation(0).
  void Run(int64_t rows, const float* x, int64_t x_row, float* y, int64_t y_row,
           std::optional<Activation> activation) const;

 private:
  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  AlignedArray<float> weight_;  // (panels, inputs, kTileColumns)
  AlignedArray<float> bias_;    // (panels * kTileColumns)
};

}  // namespace kibitz::nn
