// A network's first layer: a 3x3 convolution whose input planes are sets of squares that hold one
// value. Planes are sparse or nearly full, so it adds the weights of the set squares only; for a
// nearly full plane it adds the result of a full one and subtracts the missing squares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nn/conv/conv.h"
#include "nn/kernels/activation.h"
#include "nn/kernels/aligned.h"

namespace kibitz::nn {

// One position, an entry for each plane: its set squares, and the value that they hold. The other
// squares are 0.
struct PlaneInput {
  std::span<const uint64_t> squares;  // Bit 8 * row + column.
  std::span<const float> values;
};

class PlaneConv {
 public:
  // Scratch memory of a thread.
  struct Room {
    struct Piece {
      const float* weights = nullptr;  // Of its plane.
      float value = 0;
    };
    std::vector<Piece> pieces;  // Square by square, planes in order.
    AlignedArray<float> sums;   // (100, C): a board with a border.
    AlignedArray<float> full;   // (9, C): the result of full planes, by kind of square.
  };

  PlaneConv() = default;
  // Keeps its weights in the pool, which must outlive it.
  PlaneConv(const ConvWeights& weights, FloatPool& pool);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  size_t memory_bytes() const;

  // y: (64, PaddedChannels(outputs)).
  void Run(const PlaneInput& x, float* y, std::optional<Activation> activation, Room& room) const;

 private:
  void AddFull(const PlaneInput& x, Room& room) const;
  void AddPieces(const PlaneInput& x, Room& room) const;

  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  int64_t row_ = 0;                 // PaddedChannels(outputs)
  const float* weights_ = nullptr;  // (inputs, 9 steps from a square, row)
  const float* full_ = nullptr;     // (inputs, 9 kinds of squares, row)
  AlignedArray<float> bias_;        // (row)
};

}  // namespace kibitz::nn
