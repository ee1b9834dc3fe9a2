// How the backward pass of a CNN splits a batch: into shares, each with sums of gradients of its
// own that are added up in order at the end. Shares depend on sizes alone, so results do not depend
// on the number of threads.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>

namespace kibitz::policy {

// Boards that go through a layer together.
inline constexpr int64_t kBoardsOfPiece = 8;

// As many threads can work as there are shares. Their sums take memory as the square of the
// channels does, boards as the channels do: the more channels, the more boards are worth a share.
class Shares {
 public:
  Shares(int64_t boards, int64_t channels) : boards_(boards) {
    const int64_t pieces = (boards + kBoardsOfPiece - 1) / kBoardsOfPiece;
    const int64_t pieces_of_share = std::max<int64_t>(1, channels / 32);
    count_ = (pieces + pieces_of_share - 1) / pieces_of_share;
  }

  int64_t count() const { return count_; }
  // Calls use(begin, boards) for the pieces of a share.
  template <typename Use>
  void ForEachPieceOf(int64_t share, const Use& use) const {
    const int64_t step = count_ * kBoardsOfPiece;
    for (int64_t begin = share * kBoardsOfPiece; begin < boards_; begin += step) {
      use(begin, std::min(kBoardsOfPiece, boards_ - begin));
    }
  }

 private:
  int64_t boards_;
  int64_t count_;
};

// The sum over the first dimension, in order. torch's own sum depends on the number of threads.
torch::Tensor SumOfShares(const torch::Tensor& shares);

}  // namespace kibitz::policy
