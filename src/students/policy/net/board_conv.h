// Convolutions over boards of 8 by 8 with channels innermost, on the CPU in f32, forward and
// backward. A few boards at a time become the rows of a matrix product that stays in cache;
// oneDNN's own kernels are made for larger pictures. Letters: B boards, I and O channels, K window.
#pragma once

#include <torch/torch.h>

namespace kibitz::policy {

// As torch::conv2d with padding K / 2; K is odd. x: (B, 64, I) square by square, weight: (O, I, K,
// K), bias: (O). Results do not depend on the number of threads.
torch::Tensor BoardConv(const torch::Tensor& x, const torch::Tensor& weight,
                        const torch::Tensor& bias);  // (B, 64, O)

}  // namespace kibitz::policy
