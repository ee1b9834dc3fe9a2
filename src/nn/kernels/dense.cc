#include "nn/kernels/dense.h"

#include <algorithm>

#include "base/check.h"
#include "nn/kernels/small_product.h"

namespace kibitz::nn {

Dense::Dense(const DenseWeights& weights)
    : inputs_(weights.inputs),
      outputs_(weights.outputs),
      weight_(PaddedChannels(weights.outputs) * weights.inputs),
      bias_(PaddedChannels(weights.outputs)) {
  CHECK(static_cast<int64_t>(weights.weight.size()) == inputs_ * outputs_);
  CHECK(static_cast<int64_t>(weights.bias.size()) == outputs_);
  for (int64_t n = 0; n < outputs_; ++n) {
    const float* from = weights.weight.data() + n * inputs_;
    float* to = weight_.data() + n / kTileColumns * inputs_ * kTileColumns + n % kTileColumns;
    for (int64_t k = 0; k < inputs_; ++k) to[k * kTileColumns] = from[k];
  }
  std::copy(weights.bias.begin(), weights.bias.end(), bias_.data());
}

size_t Dense::memory_bytes() const {
  return static_cast<size_t>(weight_.size() + bias_.size()) * sizeof(float);
}

void Dense::Run(int64_t rows, const float* x, int64_t x_row, float* y, int64_t y_row,
                std::optional<Activation> activation) const {
  for (int64_t column = 0; column < outputs_; column += kTileColumns) {
    const float* b = weight_.data() + column * inputs_;
    const Lanes left = Load(bias_.data() + column);
    const Lanes right = Load(bias_.data() + column + kLanes);
    for (int64_t row = 0; row < rows; row += kTileRows) {
      const int64_t count = std::min(kTileRows, rows - row);
      float* c = y + row * y_row + column;
      MultiplyTile(count, {.data = x + row * x_row, .row = x_row}, b, kTileColumns, inputs_, c,
                   y_row, false);
      for (int64_t i = 0; i < count; ++i, c += y_row) {
        Store(c, Apply(activation, Load(c) + left));
        Store(c + kLanes, Apply(activation, Load(c + kLanes) + right));
      }
    }
  }
}

}  // namespace kibitz::nn
