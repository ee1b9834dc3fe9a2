// A 3x3 convolution whose inputs are planes over a board, each a set of squares that hold one
// value: a network's first layer. Few squares of a plane are set, or nearly all, so it adds up
// weights of what is there, and takes full planes as they come out for a whole board.
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

// One position: planes over the 64 squares, each a set of squares that hold one value, the others
// 0. Both lists are as long as the network has planes.
struct PlaneInput {
  std::span<const uint64_t> squares;  // Bit 8 * row + column.
  std::span<const float> values;
};

class PlaneConv {
 public:
  // What a thread needs.
  struct Room {
    struct Piece {
      const float* weights = nullptr;  // Of its plane.
      float value = 0;
    };
    std::vector<Piece> pieces;  // Square by square, planes in order.
    AlignedArray<float> sums;   // (100, C): a board with a border.
    AlignedArray<float> full;   // (9, C): what full planes come to, by the kind of square.
  };

  PlaneConv() = default;
  // Keeps its weights in the pool, which must live as long.
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
