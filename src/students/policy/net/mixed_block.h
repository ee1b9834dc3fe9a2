// The parts of board_block.h in mixed precision, on processors with AVX-512 BF16 or AMX:
// convolutions in bfloat16 with sums in float32; norms, gelu, the residual stream and the gradients
// of parameters in float32. Between the functions boards lie in pieces, square by square. Letters:
// B boards, N pieces of P = 32, C channels, Cp padded (nn::PaddedPiece). Boards behind the last one
// are like an empty board, with gradients of 0. Results do not depend on the number of threads.
//
//   Tensor x = MixedInput(inputs, conv->weight, conv->bias);
//   x = MixedBlocks(x, {first, second});
//   x = BoardsOfPieces(x, inputs.size(0), channels);
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "students/policy/net/board_layer.h"

namespace kibitz::policy {

// gelu(conv(x)). x: (B, 64, I) square by square, without a gradient of its own.
torch::Tensor MixedInput(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias);  // (N, 64, P, Cp)

// Residual blocks one after the other, each x + gelu(conv2(norm2(gelu(conv1(norm1(x)))))): a piece
// goes through all of them in a thread's cache. layers: two of each block. x: (N, 64, P, Cp).
torch::Tensor MixedBlocks(const torch::Tensor& x,
                          const std::vector<LayerTensors>& layers);  // (N, 64, P, Cp)

// Back to boards as board_block.h has them.
torch::Tensor BoardsOfPieces(const torch::Tensor& x, int64_t boards,
                             int64_t channels);  // (B, 64, PaddedBoard(C))

}  // namespace kibitz::policy
