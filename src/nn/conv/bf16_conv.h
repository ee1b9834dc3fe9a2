// 3x3 convolutions (and 1x1) over boards of 8 by 8 in bfloat16 with sums in float32, forward and
// backward, by AMX tiles or AVX-512 BF16 (nn/kernels/amx.h), for training in mixed precision. A
// direct convolution: taps beyond the edge are left out, and nothing is padded.
//
//   const Bf16Weights weights({.weight = w, .outputs = 64, .inputs = 64}, ConvPass::kForward);
//   const AmxTiles tiles;
//   for (int64_t square = 0; square < 64; ++square) {
//     ConvolveSquare(weights, x, square, z + square * kPieceBoards * weights.outputs());
//   }
//
// Letters: a piece is 32 boards (P) that go through a layer together, square by square; I and O are
// channels padded to whole tiles (PaddedPiece). Rows of a piece are (64, P, I). For the gradient of
// weights the boards are innermost: of inputs (64, I, P), of outputs in pairs (64, P / 2, O, 2).
#pragma once

#include <cstdint>

#include "nn/kernels/aligned.h"
#include "nn/kernels/amx.h"
#include "nn/kernels/bf16.h"

namespace kibitz::nn {

inline constexpr int64_t kPieceBoards = 32;
constexpr int64_t PaddedPiece(int64_t channels) { return RoundUp(channels, kAmxDepth); }

// A convolution's weights as its module holds them.
struct WindowWeights {
  const float* weight = nullptr;  // (outputs, inputs, taps)
  int64_t outputs = 0;
  int64_t inputs = 0;
  int64_t taps = 9;  // 3x3; or 1: a product with each square alone.
};
// kBackward is the convolution that turns the gradient of outputs into that of inputs.
enum class ConvPass { kForward, kBackward };

// Weights as the right factors of tile products.
class Bf16Weights {
 public:
  Bf16Weights(const WindowWeights& from, ConvPass pass);

  // Of the pass, padded.
  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  int64_t taps() const { return taps_; }
  // Of 32 outputs, a tap and 32 inputs: two tiles of 16 outputs, (16 pairs of inputs, 16, 2).
  const Bf16* TilesOf(int64_t outputs, int64_t tap, int64_t inputs) const;

 private:
  Bf16* At(int64_t output, int64_t input, int64_t tap);

  int64_t inputs_;
  int64_t outputs_;
  int64_t taps_;
  AlignedArray<Bf16> tiles_;  // (O / 32, taps, I / 32, 2, 16, 16, 2)
};

// z = conv(x) of one square. x: (64, P, I); z: (P, O). The caller has AmxTiles.
void ConvolveSquare(const Bf16Weights& weights, const Bf16* x, int64_t square, float* z);
// The plain version, for tests.
void PlainConvolveSquare(const Bf16Weights& weights, const Bf16* x, int64_t square, float* z);

struct WeightGradients {
  const Bf16* x = nullptr;   // (64, I, P)
  const Bf16* dz = nullptr;  // (64, P / 2, O, 2)
  int64_t inputs = 0;        // I
  int64_t outputs = 0;       // O
  int64_t taps = 9;
  bool add = true;  // To what is in dw; else it is replaced.
};
// A piece's gradient of the weights. dw: (taps, I, O). The caller has AmxTiles.
void AddWeightGradients(const WeightGradients& from, float* dw);
void PlainAddWeightGradients(const WeightGradients& from, float* dw);

}  // namespace kibitz::nn
