#include "nn/kernels/cached_linear.h"

#include <algorithm>

#include "base/check.h"
#include "nn/kernels/gemm_tile.h"

namespace kibitz::nn {

CachedLinear::CachedLinear(const DenseWeights& weights)
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

size_t CachedLinear::memory_bytes() const {
  return static_cast<size_t>(weight_.size() + bias_.size()) * sizeof(float);
}

void CachedLinear::Run(const Rows& rows, std::optional<Activation> activation) const {
  for (int64_t column = 0; column < outputs_; column += kTileColumns) {
    const Lanes left = Load(bias_.data() + column);
    const Lanes right = Load(bias_.data() + column + kLanes);
    for (int64_t row = 0; row < rows.count; row += kTileRows) {
      const int64_t count = std::min(kTileRows, rows.count - row);
      float* c = rows.y + row * rows.y_row + column;
      GemmTile({.a = {.data = rows.x + row * rows.x_row, .row = rows.x_row},
                .b = weight_.data() + column * inputs_,
                .b_row = kTileColumns,
                .c = c,
                .c_row = rows.y_row,
                .rows = count,
                .depth = inputs_});
      for (int64_t i = 0; i < count; ++i, c += rows.y_row) {
        Store(c, Apply(activation, Load(c) + left));
        Store(c + kLanes, Apply(activation, Load(c + kLanes) + right));
      }
    }
  }
}

}  // namespace kibitz::nn
