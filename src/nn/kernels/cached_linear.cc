#include "nn/kernels/cached_linear.h"

#include <algorithm>

#include "base/check.h"
#include "nn/kernels/cached_gemm.h"

namespace kibitz::nn {
namespace {

// Whose sums stay in the first cache until the activation; whole tiles.
constexpr int64_t kRowsAtOnce = 24;

}  // namespace

CachedLinear::CachedLinear(const DenseWeights& weights)
    : inputs_(weights.inputs),
      outputs_(weights.outputs),
      weight_(PaddedChannels(weights.outputs) * weights.inputs),
      bias_(PaddedChannels(weights.outputs)) {
  CHECK(static_cast<int64_t>(weights.weight.size()) == inputs_ * outputs_);
  CHECK(static_cast<int64_t>(weights.bias.size()) == outputs_);
  for (int64_t n = 0; n < outputs_; ++n) {
    const float* from = weights.weight.data() + n * inputs_;
    const int64_t first = n / kTileColumns * kTileColumns;
    const int64_t width = std::min(kTileColumns, bias_.size() - first);
    float* to = weight_.data() + first * inputs_ + n - first;
    for (int64_t k = 0; k < inputs_; ++k) to[k * width] = from[k];
  }
  std::copy(weights.bias.begin(), weights.bias.end(), bias_.data());
}

size_t CachedLinear::memory_bytes() const {
  return static_cast<size_t>(weight_.size() + bias_.size()) * sizeof(float);
}

void CachedLinear::Run(const Rows& rows, std::optional<Activation> activation) const {
  for (int64_t column = 0; column < bias_.size(); column += kTileColumns) {
    for (int64_t row = 0; row < rows.count; row += kRowsAtOnce) {
      RunPanel(rows, row, column, activation);
    }
  }
}

void CachedLinear::RunPanel(const Rows& rows, int64_t row, int64_t column,
                            std::optional<Activation> activation) const {
  const int64_t count = std::min(kRowsAtOnce, rows.count - row);
  const int64_t width = std::min(kTileColumns, bias_.size() - column);
  float* const y = rows.y + row * rows.y_row + column;
  GemmVectors({.a = {.data = rows.x + row * rows.x_row, .row = rows.x_row},
               .b = weight_.data() + column * inputs_,
               .b_row = width,
               .c = y,
               .c_row = rows.y_row,
               .rows = count,
               .depth = inputs_,
               .columns = width});
  for (int64_t i = 0; i < width; i += kLanes) {
    const Lanes bias = Load(bias_.data() + column + i);
    for (float* c = y + i; c < y + i + count * rows.y_row; c += rows.y_row) {
      Store(c, Apply(activation, Load(c) + bias));
    }
  }
}

}  // namespace kibitz::nn
