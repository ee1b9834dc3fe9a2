// y = activation(W x + b) for rows that lie in cache, by the thread that calls: the small layers
// inside a convolutional network. linear.h has the large ones, which a team of threads shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nn/kernels/activation.h"
#include "nn/kernels/aligned.h"

namespace kibitz::nn {

struct DenseWeights {
  int64_t inputs = 0;
  int64_t outputs = 0;
  std::vector<float> weight;  // (outputs, inputs)
  std::vector<float> bias;    // (outputs)
};

class CachedLinear {
 public:
  struct Rows {
    int64_t count = 0;
    const float* x = nullptr;  // (count, inputs), rows x_row apart.
    int64_t x_row = 0;
    // (count, outputs), rows y_row apart, each with room for PaddedChannels(outputs): the padding
    // becomes activation(0).
    float* y = nullptr;
    int64_t y_row = 0;
  };

  CachedLinear() = default;
  explicit CachedLinear(const DenseWeights& weights);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  size_t memory_bytes() const;

  void Run(const Rows& rows, std::optional<Activation> activation) const;

 private:
  // Some rows from `row` on, the panel at `column`.
  void RunPanel(const Rows& rows, int64_t row, int64_t column,
                std::optional<Activation> activation) const;

  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  // (panels, inputs, kTileColumns); the last panel may be one vector wide.
  AlignedArray<float> weight_;
  AlignedArray<float> bias_;  // (PaddedChannels(outputs))
};

}  // namespace kibitz::nn
