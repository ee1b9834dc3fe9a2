// Values as distributions over buckets: a head predicts the probability of each bucket's centre.
// Its target is the two centres around the true value, weighted by their distance to it.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace kibitz::learn {

// Centres at the middle quantiles of a normal distribution, clamped to [-1, 1]: finest around 0.
torch::Tensor GaussianBuckets(int64_t count, double sigma);  // (K)
// Centres of equal parts of [0, 1].
torch::Tensor UniformBuckets(int64_t count);  // (K)

// The centre nearest to each value; any shape.
torch::Tensor NearestCentre(const torch::Tensor& values, const torch::Tensor& centres);
// Cross-entropy of each row with its target on two centres.
torch::Tensor SoftBucketLoss(const torch::Tensor& logits,   // (N, K)
                             const torch::Tensor& targets,  // (N)
                             const torch::Tensor& centres   // (K)
);                                                          // (N)
// The mean of each row's distribution.
torch::Tensor ExpectedCentre(const torch::Tensor& logits, const torch::Tensor& centres);  // (N)

}  // namespace kibitz::learn
