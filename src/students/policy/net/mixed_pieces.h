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

// Shares of a batch in backward, each with sums of its own: so many threads can work.
constexpr int64_t PieceSharesOf(int64_t pieces) {
  constexpr int64_t kPiecesOfShare = 4;
  constexpr int64_t kFewShares = 8;  // Of a small batch.
  return std::min(pieces, std::max(kFewShares, pieces / kPiecesOfShare));
}

// Calls use(share, piece), the pieces of a share one after the other. The thread has AmxTiles.
template <typename Use>
void ForEachShareOfPieces(int64_t pieces, const Use& use) {
  const int64_t shares = PieceSharesOf(pieces);
  learn::ForEachTask(shares, [&](int64_t share) {
    const nn::AmxTiles tiles;
    for (int64_t piece = share; piece < pieces; piece += shares) use(share, piece);
  });
}

inline torch::Tensor EmptyPieces(int64_t pieces, int64_t channels, torch::ScalarType type) {
  return torch::empty({pieces, 64, nn::kPieceBoards, channels}, type);
}
inline torch::Tensor EmptyPieceSums(int64_t pieces) {
  return torch::empty({pieces, 2 * nn::kPieceBoards});
}

template <typename T>
T* PieceAt(const torch::Tensor& pieces, int64_t piece) {
  return static_cast<T*>(pieces.data_ptr()) + piece * pieces.stride(0);
}
// sums: as EmptyPieceSums makes them.
inline nn::PieceSums& PieceSumsAt(const torch::Tensor& sums, int64_t piece) {
  static_assert(sizeof(nn::PieceSums) == 2 * nn::kPieceBoards * sizeof(float));
  return *reinterpret_cast<nn::PieceSums*>(PieceAt<float>(sums, piece));
}

// What a thread needs for a piece in backward, in its cache.
struct MixedRoom {
  MixedRoom(int64_t inputs, int64_t outputs)
      : rows_(EmptyPieces(1, outputs, torch::kBFloat16)),
        pairs_(torch::empty_like(rows_)),
        columns_(EmptyPieces(1, inputs, torch::kBFloat16)),
        gradients_(EmptyPieces(1, inputs, torch::kFloat32)) {}

  nn::Bf16* rows() const { return PieceAt<nn::Bf16>(rows_, 0); }        // (64, P, O)
  nn::Bf16* pairs() const { return PieceAt<nn::Bf16>(pairs_, 0); }      // (64, P / 2, O, 2)
  nn::Bf16* columns() const { return PieceAt<nn::Bf16>(columns_, 0); }  // (64, I, P)
  float* gradients() const { return PieceAt<float>(gradients_, 0); }    // (64, P, I)

 private:
  torch::Tensor rows_;
  torch::Tensor pairs_;
  torch::Tensor columns_;
  torch::Tensor gradients_;
};

}  // namespace kibitz::policy
