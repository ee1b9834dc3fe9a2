// Matrix products of a training step: many rows by weights that change with every step. Weights are
// packed for each use; rows stay as they are, a block of them in the cache of the thread that
// multiplies it, so that what comes before and after a product finds them there.
//
//   const auto packed = Pack({{weight, Layout::kTransposed}});           // weight: (N, K)
//   ForEachPiece(rows, kBlockRows, [&](int64_t begin, int64_t end) {
//     Multiply({x + begin * k, k, end - begin}, packed[0], {y + begin * n, n});    // y = x w^T
//   });
//
// Results do not depend on the number of threads. Programs for processors without AVX multiply
// with torch's matrix library, which knows better instructions than they were compiled for.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "nn/kernels/lanes.h"

namespace kibitz::learn {

// Without AVX our tiles lose to a library that chooses its kernels at run time.
inline constexpr bool kOwnTiles = nn::kLanes >= 8;

// Rows that go through a product together: few stay in cache, many are worth the library's packing.
inline constexpr int64_t kBlockRows = kOwnTiles ? 96 : 384;

enum class Layout { kAsIs, kTransposed };
struct RightFactor {
  torch::Tensor matrix;  // (K, N), or (N, K) when transposed.
  Layout layout = Layout::kAsIs;
};

// The right factor of products, (K, N), as panels of neighbouring columns.
class PackedMatrix {
 public:
  explicit PackedMatrix(const RightFactor& from);

  int64_t depth() const { return depth_; }
  int64_t columns() const { return columns_; }
  int64_t panels() const;
  // (K, nn::kTileColumns), padded with 0.
  const float* panel(int64_t index) const;
  // For Pack().
  void FillPanel(int64_t index);
  // As it came; for products of torch's library.
  const RightFactor& from() const { return from_; }

 private:
  RightFactor from_;
  int64_t depth_;
  int64_t columns_;
  torch::Tensor panels_;  // (panels, K, nn::kTileColumns)
};
std::vector<PackedMatrix> Pack(const std::vector<RightFactor>& factors);

// Rows of a left factor, (rows, K); `row`: distance between rows.
struct LeftRows {
  const float* data = nullptr;
  int64_t row = 0;
  int64_t rows = 0;
};
struct ProductOut {
  float* data = nullptr;
  int64_t row = 0;
  bool add = false;  // Adds the product to what is there.
};
// out = left * right, by the thread that calls; at most kBlockRows rows.
void Multiply(const LeftRows& left, const PackedMatrix& right, const ProductOut& out);

// A product of any number of rows, cut into tasks for ForEachTask. x: (R, K); out: (R, N).
struct WholeProduct {
  torch::Tensor x;
  const PackedMatrix* right = nullptr;
  torch::Tensor out;
  bool add = false;

  int64_t tasks() const;
  void Run(int64_t task) const;
};

// Products that sum over all rows, for the gradients of weights, cut into tasks for ForEachTask.
class RowSums {
 public:
  // out (N, D) = a^T b; a: (R, N), b: (R, D).
  void Add(const torch::Tensor& out, const torch::Tensor& a, const torch::Tensor& b);
  int64_t tasks() const { return static_cast<int64_t>(tasks_.size()); }
  void Run(int64_t task) const;
  // All tasks.
  void Compute() const;

 private:
  struct Task {
    torch::Tensor out;
    torch::Tensor a;
    torch::Tensor b;
    int64_t row = 0;  // Of out, and how many.
    int64_t rows = 0;
    int64_t column = 0;
    int64_t columns = 0;
  };
  static void MultiplyTask(const Task& task);

  std::vector<Task> tasks_;
};

}  // namespace kibitz::learn
