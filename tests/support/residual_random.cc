#include "tests/support/residual_random.h"

#include <cmath>

#include "base/random.h"

namespace kibitz::nn {
namespace {

std::vector<float> Draw(Rng& rng, int64_t count, double size) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = static_cast<float>(rng.Normal() * size);
  return numbers;
}

ConvWeights DrawConv(Rng& rng, int64_t inputs, int64_t outputs, int64_t size) {
  const int64_t window = inputs * size * size;
  return {.inputs = inputs,
          .outputs = outputs,
          .size = size,
          .weight = Draw(rng, outputs * window, std::sqrt(2.0 / static_cast<double>(window))),
          .bias = Draw(rng, outputs, 0.1)};
}

DenseWeights DrawDense(Rng& rng, int64_t inputs, int64_t outputs) {
  return {.inputs = inputs,
          .outputs = outputs,
          .weight = Draw(rng, outputs * inputs, std::sqrt(2.0 / static_cast<double>(inputs))),
          .bias = Draw(rng, outputs, 0.1)};
}

}  // namespace

ResidualWeights RandomResidualWeights(const ResidualShape& shape, uint64_t seed) {
  Rng rng({.seed = seed, .purpose = Purpose("residual weights")});
  ResidualWeights weights;
  weights.activation = shape.activation;
  weights.input = DrawConv(rng, shape.planes, shape.channels, 3);
  for (int64_t i = 0; i < shape.blocks; ++i) {
    ResidualBlockWeights block = {.first = DrawConv(rng, shape.channels, shape.channels, 3),
                                  .second = DrawConv(rng, shape.channels, shape.channels, 3),
                                  .squeeze = std::nullopt};
    for (float& x : block.second.weight) x *= 0.5F;
    if (shape.squeezed > 0) {
      block.squeeze = {.reduce = DrawDense(rng, shape.channels, shape.squeezed),
                       .expand = DrawDense(rng, shape.squeezed, 2 * shape.channels)};
    }
    weights.blocks.push_back(std::move(block));
  }
  if (shape.convolutional_policy) {
    weights.policy = DrawConv(rng, shape.channels, shape.policy_channels, 3);
    weights.policy_planes = DrawConv(rng, shape.policy_channels, shape.policy_outputs, 3);
  } else {
    weights.policy = DrawConv(rng, shape.channels, shape.policy_channels, 1);
    weights.policy_dense = DrawDense(rng, shape.policy_channels * kSquares, shape.policy_outputs);
  }
  weights.value = DrawConv(rng, shape.channels, shape.value_channels, 1);
  weights.value_hidden = DrawDense(rng, shape.value_channels * kSquares, shape.value_hidden);
  weights.value_out = DrawDense(rng, shape.value_hidden, shape.value_outputs);
  return weights;
}

RandomPlanes::RandomPlanes(int64_t planes, uint64_t seed)
    : squares(static_cast<size_t>(planes)), values(static_cast<size_t>(planes), 1.0F) {
  constexpr int64_t kBoardPlanes = 13;
  constexpr int64_t kBoards = 8;
  Rng rng({.seed = seed, .purpose = Purpose("random planes")});
  std::vector<uint64_t> kinds(kBoardPlanes - 1);  // The last one, repetition, is empty.
  for (int piece = 0; piece < 26; ++piece) {
    const uint64_t square = uint64_t{1} << rng.Below(kSquares);
    uint64_t taken = 0;
    for (const uint64_t kind : kinds) taken |= kind;
    if ((taken & square) == 0) kinds[rng.Below(kinds.size())] |= square;
  }
  for (int64_t k = 0; k < planes; ++k) {
    const auto i = static_cast<size_t>(k);
    if (k >= kBoardPlanes * kBoards) {
      squares[i] = rng.Below(2) == 0 ? 0 : ~uint64_t{0};
      continue;
    }
    const auto kind = static_cast<size_t>(k % kBoardPlanes);
    if (kind == kinds.size()) {  // A move to the board before: some piece has stood elsewhere.
      uint64_t& moved = kinds[rng.Below(kinds.size())];
      moved = (moved & (moved - 1)) | (moved != 0 ? uint64_t{1} << rng.Below(kSquares) : 0);
    } else {
      squares[i] = kinds[kind];
    }
  }
  if (planes > 2) values[static_cast<size_t>(planes - 3)] = 17;  // As a count of moves may be.
}

}  // namespace kibitz::nn
