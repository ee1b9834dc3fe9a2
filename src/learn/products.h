// Matrix products of a training step: many rows by weights that change with every step. Weights are
// packed for each use; rows stay as they are, a block of them in the cache of the thread that
// multiplies it, so that what comes before and after a product finds them there.
//
//   const auto packed = Pack({{weight, Layout::kTransposed}});           // weight: (N, K)
//   ForEachPiece(rows, kBlockRows, [&](int64_t begin, int64_t end) {
//     Multiply({x + begin * k, k, end - begin}, packed[0], {y + begin * n, n});    // y = x w^T
//   });
//
// Factors are float32, or rounded to bfloat16 (nn/kernels/bf16_gemm.h); sums are float32. Results
// do not depend on the number of threads. Programs for processors without AVX multiply with torch's
// matrix library, which knows better instructions than they were compiled for.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "learn/precision.h"
#include "nn/kernels/bf16_gemm.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {

// Without AVX our tiles lose to a library that chooses its kernels at run time.
inline constexpr bool kOwnTiles = nn::kLanes >= 8;

// Rows that go through a product together: few stay in cache and share a batch of a thousand rows
// evenly among threads, many are worth the library's packing.
inline constexpr int64_t kBlockRows = kOwnTiles ? (nn::kLanes == 16 ? 64 : 96) : 384;

enum class Layout { kAsIs, kTransposed };
struct RightFactor {
  torch::Tensor matrix;  // (K, N), or (N, K) when transposed.
  Layout layout = Layout::kAsIs;
};

// The right factor of products, (K, N), as panels of neighbouring columns.
class PackedMatrix {
 public:
  PackedMatrix(const RightFactor& from, Precision precision);

  Precision precision() const { return precision_; }
  int64_t depth() const { return depth_; }
  int64_t columns() const { return columns_; }
  int64_t panels() const;
  int64_t PanelColumns() const;
  // (K, nn::kTileColumns), padded with 0; of float32.
  const float* panel(int64_t index) const;
  // Of bfloat16.
  nn::Bf16Tiles tiles() const { return tiles_.all(); }
  // For Pack().
  void FillPanel(int64_t index);
  // As it came; for products of torch's library.
  const RightFactor& from() const { return from_; }

 private:
  RightFactor from_;
  int64_t depth_;
  int64_t columns_;
  Precision precision_;
  torch::Tensor panels_;  // (panels, K, nn::kTileColumns)
  nn::Bf16Factor tiles_;

  void FillTiles(int64_t index);
};
std::vector<PackedMatrix> Pack(const std::vector<RightFactor>& factors,
                               Precision precision = Precision::kFloat32);

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

// A range of a right factor's panels.
struct Panels {
  int64_t begin = 0;
  int64_t end = 0;
};

// A block of rows for several products in one precision: rounds them once.
class LeftBlock {
 public:
  LeftBlock(const LeftRows& rows, int64_t depth, Precision precision);
  void Multiply(const PackedMatrix& right, const ProductOut& out) const;
  // Some columns of the product, in bfloat16.
  void Multiply(const PackedMatrix& right, const ProductOut& out, const Panels& panels) const;

 private:
  LeftRows rows_;
  nn::Bf16Factor tiles_;
};

// A product of any number of rows, cut into tasks for ForEachTask. x: (R, K); out: (R, N).
struct WholeProduct {
  torch::Tensor x;
  const PackedMatrix* right = nullptr;
  torch::Tensor out;
  torch::Tensor onto = {};  // (R, N) Added to the product, or none.

  int64_t tasks() const;
  void Run(int64_t task) const;

 private:
  void CopyColumns(int64_t row, int64_t rows, const Panels& panels) const;
};

// Memory of a block of rows, aligned to cache lines; not cleared.
class Scratch {
 public:
  explicit Scratch(int64_t columns);
  float* Row(int64_t row) const { return data_.get() + row * columns_; }

 private:
  struct Free {
    void operator()(float* block) const { std::free(block); }
  };
  int64_t columns_;
  std::unique_ptr<float[], Free> data_;  // (kBlockRows, columns)
};

// A factor of RowSums, (R, N), as its sums read it: blocks of rows are packed, or rounded into
// tiles of bfloat16, while they are in cache.
class SumFactor {
 public:
  enum class Side { kA, kB };
  // Of rows that are in memory; Keep() each block of them.
  SumFactor(const torch::Tensor& rows, Side side, Precision precision);
  // Of rows that a SumBlock writes.
  SumFactor(int64_t rows, int64_t width, Side side, Precision precision);

  Precision precision() const { return precision_; }
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  // The rows as they are, without our tiles in float32.
  const torch::Tensor& floats() const { return floats_; }
  nn::Bf16Tiles tiles() const { return tiles_.all(); }
  // In float32: the block of rows that begins there, as panels (rows of the block, PanelWidth()).
  const float* Block(int64_t begin) const { return packed_.data_ptr<float>() + begin * padded_; }
  // Keeps the rows of a block, which begins at a multiple of kBlockRows.
  void Keep(const LeftRows& block, int64_t begin) const;
  void Keep(int64_t begin, int64_t end) const;

 private:
  int64_t PanelWidth() const;
  void Allocate();

  Side side_;
  Precision precision_;
  int64_t rows_;
  int64_t width_;
  int64_t padded_ = 0;    // N in whole panels.
  torch::Tensor floats_;  // (R, N), of rows in memory.
  torch::Tensor packed_;  // (R, padded) in all.
  nn::Bf16Factor tiles_;
};

// Rows of a factor on their way: written to data(), then kept.
class SumBlock {
 public:
  SumBlock(const SumFactor& factor, int64_t begin, int64_t end);
  float* data() const { return own_.Row(0); }  // (end - begin, N)
  float* Row(int64_t row) const { return own_.Row(row); }
  void Keep() const { factor_.Keep({data(), factor_.width(), rows_}, begin_); }

 private:
  const SumFactor& factor_;
  int64_t begin_;
  int64_t rows_;
  Scratch own_;
};

// Products that sum over all rows, for the gradients of weights, cut into tasks for ForEachTask.
class RowSums {
 public:
  // out (N, D) = a^T b; a: (R, N), b: (R, D). The factors outlive the sums.
  void Add(const torch::Tensor& out, const SumFactor& a, const SumFactor& b);
  // All tasks.
  void Compute() const;

 private:
  struct Task {
    torch::Tensor out;
    const SumFactor* a = nullptr;
    const SumFactor* b = nullptr;
    int64_t row = 0;  // Of out, and how many.
    int64_t rows = 0;
    int64_t column = 0;
    int64_t columns = 0;
  };
  static void Run(const Task& task);
  static void MultiplyPanels(const Task& task);
  static void MultiplyTiles(const Task& task);

  std::vector<Task> tasks_;
};

}  // namespace kibitz::learn
