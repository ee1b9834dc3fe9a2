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

// As many threads can work as there are shares: eight at least where the batch has as many pieces.
// The sums of a share take memory as the square of the channels does, boards as the channels do:
// the more channels, the more boards are worth a share, up to 32. With 16 boards of 64 channels,
// adding up the sums took 4% of a step.
class Shares {
 public:
  Shares(int64_t boards, int64_t channels) : boards_(boards) {
    const int64_t pieces = (boards + kBoardsOfPiece - 1) / kBoardsOfPiece;
    size_ = kBoardsOfPiece * std::clamp<int64_t>(std::min(channels / 16, pieces / 8), 1, 4);
  }

  int64_t count() const { return (boards_ + size_ - 1) / size_; }
  // Boards of a share; the last may have less.
  int64_t size() const { return size_; }
  // The first board of a share, and how many it has.
  int64_t FirstOf(int64_t share) const { return share * size_; }
  int64_t SizeOf(int64_t share) const { return std::min(size_, boards_ - FirstOf(share)); }

 private:
  int64_t boards_;
  int64_t size_;
};

// The sum over the first dimension, in order. torch's own sum depends on the number of threads.
torch::Tensor SumOfShares(const torch::Tensor& shares);

}  // namespace kibitz::policy
