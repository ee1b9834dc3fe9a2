// Products of float matrices whose numbers are rounded to bfloat16, with sums in float32: by AMX
// tiles or the dot products of AVX-512 BF16 where the processor has them (amx.h), else in plain
// C++.
//
//   Bf16Factor left(rows, depth);
//   PackByLines({x, depth, rows, depth}, Bf16Side::kLeft, left.all());
//   Bf16Factor right(columns, depth);
//   PackByDepth({w, columns, depth, columns}, Bf16Side::kRight, right.all());
//   MultiplyBf16({.left = left.all(), .right = right.all(), .rows = rows, .columns = columns,
//                 .out = y, .out_row = columns});                               // y = x w
//
// A factor is made of tiles of 16 lines by 32 numbers of depth, a kilobyte each; lines are rows of
// a left factor and columns of a right one. Both are padded with 0.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "nn/kernels/amx.h"
#include "nn/kernels/bf16.h"

namespace kibitz::nn {

inline constexpr int64_t kBf16Tile = kAmxRows * kAmxDepth;  // Numbers.

// What a tile's numbers lie like: (line, depth), or pairs of depth (depth / 2, line, 2).
enum class Bf16Side { kLeft, kRight };

// Tiles of a factor, from some line and depth on.
struct Bf16Tiles {
  Bf16* data = nullptr;
  int64_t line_step = 0;    // Numbers from a tile to that of the next 16 lines; the next depth
  int64_t depth_tiles = 0;  // is kBf16Tile on.

  Bf16Tiles At(int64_t line_tile, int64_t depth_tile) const {
    return {data + line_tile * line_step + depth_tile * kBf16Tile, line_step,
            depth_tiles - depth_tile};
  }
};

// Memory of a factor; not cleared.
class Bf16Factor {
 public:
  Bf16Factor() = default;
  Bf16Factor(int64_t lines, int64_t depth);

  int64_t line_tiles() const { return line_tiles_; }
  int64_t depth_tiles() const { return depth_tiles_; }
  Bf16Tiles all() const { return {data_.get(), depth_tiles_ * kBf16Tile, depth_tiles_}; }

 private:
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };
  int64_t line_tiles_ = 0;
  int64_t depth_tiles_ = 0;
  std::unique_ptr<Bf16[], Free> data_;
};

// A matrix of floats; `row`: distance between rows.
struct FloatMatrix {
  const float* data = nullptr;
  int64_t row = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// Rounds a matrix into tiles; its rows are the lines.
void PackByLines(const FloatMatrix& from, Bf16Side side, const Bf16Tiles& to);
// The same where its columns are the lines.
void PackByDepth(const FloatMatrix& from, Bf16Side side, const Bf16Tiles& to);

struct Bf16Product {
  Bf16Tiles left;
  Bf16Tiles right;
  int64_t depth_tiles = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  float* out = nullptr;
  int64_t out_row = 0;  // Distance between rows.
  bool add = false;     // Adds the product to what is there.
};
void MultiplyBf16(const Bf16Product& product);

// to = from^T, rows of it to_row apart.
void TransposeFloats(const FloatMatrix& from, float* to, int64_t to_row);

// The same in plain C++, for tests and other processors.
void PackByLinesPlain(const FloatMatrix& from, Bf16Side side, const Bf16Tiles& to);
void PackByDepthPlain(const FloatMatrix& from, Bf16Side side, const Bf16Tiles& to);
void MultiplyBf16Plain(const Bf16Product& product);
void TransposeFloatsPlain(const FloatMatrix& from, float* to, int64_t to_row);

}  // namespace kibitz::nn
