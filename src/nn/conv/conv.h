// Convolution over the 64 squares of boards, for the few positions that one thread takes through
// all layers of a network in its own cache. 3x3 windows use Winograd's transform (winograd.h), so
// results differ from the plain sum by rounding: a relative error of about 1e-6. Always
// in f32: integers are not enough faster (docs/DECISIONS.md).
//
//   const Conv conv(weights, pool);
//   conv.Run(positions, x, y, {.activation = Activation::kRelu}, room);
//
// Letters: P positions, C channels, T = 4 P tiles. Activations are (P, 64, PaddedChannels(C)); the
// padding after a square's C channels is 0 in x and in y.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nn/kernels/activation.h"
#include "nn/kernels/aligned.h"
#include "nn/kernels/cached_linear.h"

namespace kibitz::nn {

inline constexpr int64_t kSquares = 64;

struct ConvWeights {
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t size = 0;           // 1 or 3: of the window; boards are zero-padded.
  std::vector<float> weight;  // (outputs, inputs, size, size), batch norm folded in.
  std::vector<float> bias;    // (outputs)
};

struct ConvFinish {
  const float* skip = nullptr;  // Added before the activation; has the layout of y, may be y.
  std::optional<Activation> activation = {};
};

// Scratch memory of a thread; grows as needed, and one serves all layers.
struct ConvRoom {
  AlignedArray<float> taps;      // (T, 36, C)
  AlignedArray<float> products;  // (T, 6, kTileColumns): of one line of taps.
  AlignedArray<float> lines;     // (T, 6, 4, kTileColumns): outputs along each line.
};

class Conv {
 public:
  Conv() = default;
  // Keeps its weights in the pool, which must outlive it.
  Conv(const ConvWeights& weights, FloatPool& pool);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  size_t memory_bytes() const;
  // Floating-point operations of its products for a position, as computed here.
  double ProductFlops() const;

  // A position's result does not depend on the others'. x and y must not overlap.
  void Run(int64_t positions, const float* x, float* y, const ConvFinish& finish,
           ConvRoom& room) const;

 private:
  void PackTaps(const ConvWeights& weights, FloatPool& pool);
  void MultiplyLine(int64_t panel, int64_t line, int64_t tiles, ConvRoom& room) const;
  void WriteOutputs(int64_t panel, int64_t tiles, float* y, const ConvFinish& finish,
                    const ConvRoom& room) const;

  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  CachedLinear pointwise_;       // 1x1
  const float* taps_ = nullptr;  // 3x3: (panels, 36, C, kTileColumns), in the pool.
  AlignedArray<float> bias_;     // 3x3: (panels * kTileColumns)
};

}  // namespace kibitz::nn
