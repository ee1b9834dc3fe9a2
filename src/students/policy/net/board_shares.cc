#include "students/policy/net/board_shares.h"

#include <vector>

#include "learn/parallel.h"

namespace kibitz::policy {

torch::Tensor SumOfShares(const torch::Tensor& shares) {
  constexpr int64_t kPiece = 4096;  // Numbers that stay in the first cache.
  const std::vector<int64_t> shape(shares.sizes().begin() + 1, shares.sizes().end());
  const torch::Tensor sum = torch::empty(shape, shares.options());
  const int64_t size = sum.numel();
  learn::ForEachPiece(size, kPiece, [&](int64_t begin, int64_t end) {
    const float* from = shares.data_ptr<float>();
    float* const to = sum.data_ptr<float>();
    std::copy(from + begin, from + end, to + begin);
    for (int64_t share = 1; share < shares.size(0); ++share) {
      from += size;
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    }
  });
  return sum;
}

}  // namespace kibitz::policy
