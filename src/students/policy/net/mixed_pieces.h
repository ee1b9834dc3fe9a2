// Tensors of pieces of boards, and the work on pieces split over threads, for the functions of
// mixed_block.h and mixed_head.h. Letters: N pieces of P = 32 boards, C padded channels.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>

#include "learn/parallel.h"
#include "nn/conv/bf16_conv.h"
#include "nn/conv/piece_passes.h"

namespace kibitz::policy {

constexpr int64_t PiecesOf(int64_t boards) {
  return (boards + nn::kPieceBoards - 1) / nn::kPieceBoards;
}

// Shares of a batch in backward, each with sums of its own: so many threads can work. Sums of
// weights take more memory than the boards of a piece: two pieces share them.
constexpr int64_t PieceSharesOf(int64_t pieces) { return (pieces + 1) / 2; }

// Calls use(share, first piece, end) for each share. The thread has AmxTiles.
template <typename Use>
void ForEachShareOfPieces(int64_t pieces, const Use& use) {
  learn::ForEachTask(PieceSharesOf(pieces), [&](int64_t share) {
    const nn::AmxTiles tiles;
    use(share, 2 * share, std::min(pieces, 2 * share + 2));
  });
}

inline torch::Tensor EmptyPieces(int64_t pieces, int64_t channels, torch::ScalarType type) {
  return torch::empty({pieces, 64, nn::kPieceBoards, channels}, type);
}
inline constexpr int64_t kPieceSumFloats = sizeof(nn::PieceSums) / sizeof(float);
inline torch::Tensor EmptyPieceSums(int64_t pieces) {
  return torch::empty({pieces, kPieceSumFloats});
}

template <typename T>
T* PieceAt(const torch::Tensor& pieces, int64_t piece) {
  return static_cast<T*>(pieces.data_ptr()) + piece * pieces.stride(0);
}
// sums: as EmptyPieceSums makes them.
inline nn::PieceSums& PieceSumsAt(const torch::Tensor& sums, int64_t piece) {
  return *reinterpret_cast<nn::PieceSums*>(PieceAt<float>(sums, piece));
}

// What a thread needs for a piece in backward, in its cache. Columns and gradients share memory:
// the ones are read before the others are written.
class MixedRoom {
 public:
  MixedRoom(int64_t inputs, int64_t outputs)
      : rows_(EmptyPieces(1, outputs, torch::kBFloat16)),
        pairs_(torch::empty_like(rows_)),
        gradients_(EmptyPieces(1, inputs, torch::kFloat32)) {}

  nn::Bf16* rows() const { return PieceAt<nn::Bf16>(rows_, 0); }          // (64, P, O)
  nn::Bf16* pairs() const { return PieceAt<nn::Bf16>(pairs_, 0); }        // (64, P / 2, O, 2)
  nn::Bf16* columns() const { return PieceAt<nn::Bf16>(gradients_, 0); }  // (64, I, P)
  float* gradients() const { return PieceAt<float>(gradients_, 0); }      // (64, P, I)

 private:
  torch::Tensor rows_;
  torch::Tensor pairs_;
  torch::Tensor gradients_;
};

}  // namespace kibitz::policy
