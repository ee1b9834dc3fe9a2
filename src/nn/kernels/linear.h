// A linear layer, y = W x + b: weights are packed once into the order in which the product reads
// them, and a team of threads shares the work. cached_linear.h is for few rows and one thread.
// Letters: R rows, K inputs, N outputs.
//
//   const Linear linear({.weight = w, .outputs = n, .inputs = k}, Precision::kF32);
//   PackedRows x;
//   x.Pack(team, rows, linear, [&](int64_t row, float* out) { ... });    // (R, K)
//   linear.Run(team, x, {.to = y, .row = n});                            // (R, N)
//
// Results do not depend on the number of threads; in f32 a row's result does not depend on the
// other rows either.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "nn/kernels/aligned.h"
#include "nn/kernels/precision.h"
#include "nn/kernels/team.h"

namespace kibitz::nn {

struct LinearWeights {
  std::span<const float> weight = {};  // (N, K), row-major.
  int64_t outputs = 0;                 // N
  int64_t inputs = 0;                  // K
  std::span<const float> bias = {};    // (N), or none.
  // int8: never a second plane of activations, which layers with few inputs otherwise get.
  bool coarse = false;
};

enum class Finish : uint8_t {
  kStore,
  kAdd,     // y += W x + b.
  kSwiGlu,  // Weights from InterleaveSwiGlu; stores silu(gate) * up, half as many columns.
};

struct RowsOut {
  float* to = nullptr;
  int64_t row = 0;  // Distance between rows.
  Finish finish = Finish::kStore;
};

class Linear;

// Input rows, packed in the order in which the product reads them.
class PackedRows {
 public:
  // `make_row` writes the K numbers of a row; it is called from the team's threads.
  void Pack(Team& team, int64_t rows, const Linear& linear,
            const std::function<void(int64_t row, float* out)>& make_row);
  // The same for rows that lie in memory, x_row apart.
  void Pack(Team& team, int64_t rows, const Linear& linear, const float* x, int64_t x_row);

  int64_t rows() const { return rows_; }

 private:
  friend class Linear;
  // Where a row's numbers are: made in `space`, or elsewhere.
  using RowSource = std::function<const float*(int64_t row, float* space)>;
  void PackTiles(Team& team, int64_t rows, const Linear& linear, const RowSource& source);
  void PackFloats(int64_t tile, const RowSource& source);
  void PackInt8(int64_t tile, const RowSource& source);

  int64_t rows_ = 0;
  int64_t inputs_ = 0;
  int64_t groups_ = 0;             // int8: of activations, planes counted.
  int64_t planes_ = 1;             // int8: see int8_gemm.h.
  AlignedArray<float> floats_;     // f32: (tiles, K, rows of a tile).
  AlignedArray<uint8_t> numbers_;  // int8: (tiles, groups, kInt8RowGroupBytes).
  AlignedArray<float> scales_;     // int8: (tiles, groups, kInt8Rows).
};

class Linear {
 public:
  Linear() = default;
  Linear(const LinearWeights& weights, Precision precision);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  Precision precision() const { return precision_; }
  size_t memory_bytes() const;

  // x must have been packed for a Linear of the same inputs and precision.
  void Run(Team& team, const PackedRows& x, const RowsOut& y) const;

 private:
  friend class PackedRows;
  void PackFloats(const LinearWeights& weights);
  void PackInt8(const LinearWeights& weights);
  struct Block;
  void RunBlock(const PackedRows& x, const Block& block, const RowsOut& y) const;
  void MultiplyFloats(const PackedRows& x, const Block& block, float* c) const;
  void MultiplyFewFloats(const PackedRows& x, const Block& block, float* c) const;
  void MultiplyInt8(const PackedRows& x, const Block& block, float* c) const;
  void MultiplyInt8Slice(const PackedRows& x, const Block& block, int64_t group, float* c) const;
  void Write(const Block& block, const float* c, const RowsOut& y) const;
  void WriteSums(const float* c, int64_t panel, int64_t width, int64_t rows,
                 const RowsOut& y) const;

  Precision precision_ = Precision::kF32;
  int64_t inputs_ = 0;
  int64_t outputs_ = 0;
  int64_t columns_ = 0;  // Of a panel.
  int64_t panels_ = 0;
  int64_t groups_ = 0;            // int8: of weights, for a column.
  int64_t planes_ = 1;            // int8: of activations.
  AlignedArray<float> floats_;    // f32: (panels, K, kTileColumns).
  AlignedArray<int8_t> numbers_;  // int8: (panels, groups, kInt8ColumnGroupBytes).
  AlignedArray<float> scales_;    // int8: (panels, groups, kInt8Columns).
  AlignedArray<int32_t> zeros_;   // int8: the same.
  AlignedArray<float> bias_;      // (panels * columns), or empty.
};

// The weights of a SwiGLU's gate and up projections, their panels in turn. Both: (hidden, K).
AlignedArray<float> InterleaveSwiGlu(std::span<const float> gate, std::span<const float> up,
                                     int64_t hidden, int64_t inputs, Precision precision);
// Outputs of the interleaved weights: twice `hidden`, rounded up to whole panels.
int64_t SwiGluOutputs(int64_t hidden, Precision precision);

}  // namespace kibitz::nn
