#include "learn/buckets.h"

#include <cmath>
#include <numbers>

namespace kibitz::learn {

torch::Tensor GaussianBuckets(int64_t count, double sigma) {
  const auto quantiles = UniformBuckets(count);  // (K)
  return (torch::erfinv(quantiles * 2 - 1) * (sigma * std::numbers::sqrt2)).clamp(-1, 1);
}

torch::Tensor UniformBuckets(int64_t count) {
  return (torch::arange(count).to(torch::kFloat32) + 0.5) / static_cast<double>(count);
}

torch::Tensor NearestCentre(const torch::Tensor& values, const torch::Tensor& centres) {
  return centres.index({(values.unsqueeze(-1) - centres).abs().argmin(-1)});
}

torch::Tensor SoftBucketLoss(const torch::Tensor& logits, const torch::Tensor& targets,
                             const torch::Tensor& centres) {
  const int64_t count = centres.size(0);
  const auto clamped = torch::clamp(targets, centres[0], centres[count - 1]);                 // (N)
  const auto above = torch::searchsorted(centres, clamped.contiguous()).clamp(1, count - 1);  // (N)
  const auto below = above - 1;                                                               // (N)
  const auto low = centres.index({below});                                                    // (N)
  const auto gap = (centres.index({above}) - low).clamp_min(1e-8);                            // (N)
  const auto share = (clamped - low) / gap;                // (N) Of the upper centre.
  const auto log_likely = torch::log_softmax(logits, -1);  // (N, K)
  const auto at_below = log_likely.gather(1, below.unsqueeze(1)).squeeze(1);  // (N)
  const auto at_above = log_likely.gather(1, above.unsqueeze(1)).squeeze(1);  // (N)
  return -((1 - share) * at_below + share * at_above);
}

torch::Tensor ExpectedCentre(const torch::Tensor& logits, const torch::Tensor& centres) {
  return torch::matmul(torch::softmax(logits, -1), centres);
}

}  // namespace kibitz::learn
