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
#include "nn/kernels/gemm_tile.h"

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

// The index-th of `count` parts.
struct ConvPart {
  int64_t index = 0;
  int64_t count = 1;
};

// Scratch memory of a thread; grows as needed, and one serves all layers.
struct ConvRoom {
  AlignedArray<float> taps;      // (36, T, C), with room between taps.
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
  // Some output channels of a 3x3 window, of one position: for threads that share it. More parts
  // than panels() leave some empty.
  void RunPart(const ConvPart& part, const float* x, float* y, const ConvFinish& finish,
               ConvRoom& room) const;
  // Of output channels that are multiplied together; 0 with a 1x1 window.
  int64_t panels() const { return (bias_.size() + kTileColumns - 1) / kTileColumns; }

 private:
  // Output channels that are multiplied together: one or two vectors.
  struct Panel {
    int64_t first = 0;
    int64_t width = 0;
  };

  void PackTaps(const ConvWeights& weights, FloatPool& pool);
  Panel PanelOf(int64_t channel) const;
  // Makes room and transforms the inputs.
  void Prepare(int64_t positions, const float* x, ConvRoom& room) const;
  void RunPanel(const Panel& panel, int64_t tiles, float* y, const ConvFinish& finish,
                ConvRoom& room) const;
  template <int64_t kVectors>
  void MultiplyLine(const Panel& panel, int64_t line, int64_t tiles, ConvRoom& room) const;
  void WriteOutputs(const Panel& panel, int64_t tiles, float* y, const ConvFinish& finish,
                    const ConvRoom& room) const;

  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  CachedLinear pointwise_;  // 1x1
  // 3x3: (panels, 36, C, kTileColumns), in the pool; the last panel may be one vector wide.
  const float* taps_ = nullptr;
  AlignedArray<float> bias_;  // 3x3: (PaddedChannels(outputs))
};

}  // namespace kibitz::nn
