#include "nn/kernels/bf16_gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <utility>

#include "nn/kernels/aligned.h"
#include "nn/kernels/bf16_dots.h"

namespace kibitz::nn {
namespace {

constexpr int64_t kTiles = 2;  // Of a block's rows, and of its columns: their sums fill 4 tiles.
constexpr int64_t kBlock = kTiles * kAmxRows;

int64_t TilesOf(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

// Where a tile holds a number.
int64_t Place(Bf16Side side, int64_t line, int64_t depth) {
  if (side == Bf16Side::kLeft) return line * kAmxDepth + depth;
  return depth / 2 * (2 * kAmxRows) + line * 2 + depth % 2;
}

// Calls number(line, depth) for all places, padding included.
template <typename Number>
void FillPlain(int64_t lines, int64_t depth, Bf16Side side, const Bf16Tiles& to,
               const Number& number) {
  for (int64_t i = 0; i < RoundUp(lines, kAmxRows); ++i) {
    for (int64_t k = 0; k < RoundUp(depth, kAmxDepth); ++k) {
      const Bf16Tiles tile = to.At(i / kAmxRows, k / kAmxDepth);
      tile.data[Place(side, i % kAmxRows, k % kAmxDepth)] =
          i < lines && k < depth ? ToBf16(number(i, k)) : Bf16{0};
    }
  }
}

#if defined(KIBITZ_HAS_AMX_INTRINSICS)

// One tile's sixteen rows of 64 bytes, in registers.
struct TileRows {
  __m512i row[16];
};

// 16 rows of 32 columns, each row rounded.
KIBITZ_BF16_INLINE void LoadLines(const FloatMatrix& from, TileRows& to) {
  const __mmask16 low = FirstLanes(from.columns);
  const __mmask16 high = FirstLanes(from.columns - 16);
  for (int i = 0; i < 16; ++i) {
    if (i >= from.rows) {
      to.row[i] = _mm512_setzero_si512();
      continue;
    }
    const float* row = from.data + i * from.row;
    const __m512 a = _mm512_maskz_loadu_ps(low, row);
    const __m512 b = _mm512_maskz_loadu_ps(high, row + 16);
    to.row[i] = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a));
  }
}

// 32 rows of 16 columns, each pair of rows rounded and its numbers side by side.
KIBITZ_BF16_INLINE void LoadPairs(const FloatMatrix& from, TileRows& to) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __mmask16 lanes = FirstLanes(from.columns);
  for (int i = 0; i < 16; ++i) {
    const float* row = from.data + 2 * i * from.row;
    const __m512 a = _mm512_maskz_loadu_ps(2 * i < from.rows ? lanes : 0, row);
    const __m512 b = _mm512_maskz_loadu_ps(2 * i + 1 < from.rows ? lanes : 0, row + from.row);
    const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a));
    to.row[i] = _mm512_permutexvar_epi16(order, both);
  }
}

// Masks for forms of instructions that GCC does not warn of.
constexpr __mmask16 kAll = 0xFFFF;
constexpr __mmask8 kAll8 = 0xFF;

// The transpose of 16 by 16 pairs.
KIBITZ_BF16_INLINE void Transpose(TileRows& tile) {
  TileRows a;
  for (int i = 0; i < 16; i += 2) {
    a.row[i] = _mm512_maskz_unpacklo_epi32(kAll, tile.row[i], tile.row[i + 1]);
    a.row[i + 1] = _mm512_maskz_unpackhi_epi32(kAll, tile.row[i], tile.row[i + 1]);
  }
  TileRows b;  // b[4 i + j]: columns j, j + 4, j + 8, j + 12 of rows 4 i to 4 i + 3.
  for (int i = 0; i < 16; i += 4) {
    b.row[i] = _mm512_maskz_unpacklo_epi64(kAll8, a.row[i], a.row[i + 2]);
    b.row[i + 1] = _mm512_maskz_unpackhi_epi64(kAll8, a.row[i], a.row[i + 2]);
    b.row[i + 2] = _mm512_maskz_unpacklo_epi64(kAll8, a.row[i + 1], a.row[i + 3]);
    b.row[i + 3] = _mm512_maskz_unpackhi_epi64(kAll8, a.row[i + 1], a.row[i + 3]);
  }
  for (int j = 0; j < 4; ++j) {
    const __m512i low01 = _mm512_maskz_shuffle_i32x4(kAll, b.row[j], b.row[4 + j], 0x88);
    const __m512i high01 = _mm512_maskz_shuffle_i32x4(kAll, b.row[j], b.row[4 + j], 0xDD);
    const __m512i low23 = _mm512_maskz_shuffle_i32x4(kAll, b.row[8 + j], b.row[12 + j], 0x88);
    const __m512i high23 = _mm512_maskz_shuffle_i32x4(kAll, b.row[8 + j], b.row[12 + j], 0xDD);
    tile.row[j] = _mm512_maskz_shuffle_i32x4(kAll, low01, low23, 0x88);
    tile.row[j + 8] = _mm512_maskz_shuffle_i32x4(kAll, low01, low23, 0xDD);
    tile.row[j + 4] = _mm512_maskz_shuffle_i32x4(kAll, high01, high23, 0x88);
    tile.row[j + 12] = _mm512_maskz_shuffle_i32x4(kAll, high01, high23, 0xDD);
  }
}

KIBITZ_BF16_INLINE void StoreTile(const TileRows& tile, Bf16* to) {
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * kAmxDepth, tile.row[i]);
}

// The part of a matrix that starts at a row and column.
FloatMatrix From(const FloatMatrix& matrix, int64_t row, int64_t column) {
  return {matrix.data + row * matrix.row + column, matrix.row, matrix.rows - row,
          matrix.columns - column};
}

template <Bf16Side kSide>
KIBITZ_AVX512_BF16 void PackLines(const FloatMatrix& from, const Bf16Tiles& to) {
  for (int64_t i = 0; i < from.rows; i += kAmxRows) {
    for (int64_t k = 0; k < from.columns; k += kAmxDepth) {
      TileRows tile;
      LoadLines(From(from, i, k), tile);
      if (kSide == Bf16Side::kRight) Transpose(tile);
      StoreTile(tile, to.At(i / kAmxRows, k / kAmxDepth).data);
    }
  }
}

template <Bf16Side kSide>
KIBITZ_AVX512_BF16 void PackDepth(const FloatMatrix& from, const Bf16Tiles& to) {
  for (int64_t k = 0; k < from.rows; k += kAmxDepth) {
    for (int64_t i = 0; i < from.columns; i += kAmxRows) {
      TileRows tile;
      LoadPairs(From(from, k, i), tile);
      if (kSide == Bf16Side::kLeft) Transpose(tile);
      StoreTile(tile, to.At(i / kAmxRows, k / kAmxDepth).data);
    }
  }
}

KIBITZ_AVX512_BF16 void TransposeByTiles(const FloatMatrix& from, float* to, int64_t to_row) {
  for (int64_t i = 0; i < from.rows; i += 16) {
    const __mmask16 rows = FirstLanes(from.rows - i);
    for (int64_t j = 0; j < from.columns; j += 16) {
      const __mmask16 columns = FirstLanes(from.columns - j);
      TileRows tile;
      for (int64_t k = 0; k < 16; ++k) {
        const __mmask16 lanes = i + k < from.rows ? columns : 0;
        tile.row[k] = _mm512_maskz_loadu_epi32(lanes, from.data + (i + k) * from.row + j);
      }
      Transpose(tile);
      for (int64_t k = 0; k < 16; ++k) {
        const __mmask16 lanes = j + k < from.columns ? rows : 0;
        _mm512_mask_storeu_epi32(to + (j + k) * to_row + i, lanes, tile.row[k]);
      }
    }
  }
}

// Up to two tiles of rows by two of columns.
struct TileBlock {
  const Bf16* left;
  int64_t left_step;  // Numbers to the second tile of rows.
  const Bf16* right;
  int64_t right_step;
  int64_t depth_tiles;
  float* out;
  int64_t out_row;
  bool add;
};

template <int kRowTiles, int kColumnTiles>
KIBITZ_AMX void MultiplyBlock(const TileBlock& block) {
  const auto stride = static_cast<size_t>(block.out_row) * sizeof(float);
  float* const out = block.out;
  float* const below = out + kAmxRows * block.out_row;
  if (block.add) {
    _tile_loadd(0, out, stride);
    if (kColumnTiles > 1) _tile_loadd(1, out + 16, stride);
    if (kRowTiles > 1) _tile_loadd(2, below, stride);
    if (kRowTiles > 1 && kColumnTiles > 1) _tile_loadd(3, below + 16, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const Bf16* left = block.left;
  const Bf16* right = block.right;
  for (int64_t k = 0; k < block.depth_tiles; ++k, left += kBf16Tile, right += kBf16Tile) {
    _tile_loadd(6, right, 64);
    _tile_loadd(4, left, 64);
    _tile_dpbf16ps(0, 4, 6);
    if (kColumnTiles > 1) {
      _tile_loadd(7, right + block.right_step, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (kRowTiles > 1) {
      _tile_loadd(5, left + block.left_step, 64);
      _tile_dpbf16ps(2, 5, 6);
    }
    if (kRowTiles > 1 && kColumnTiles > 1) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, out, stride);
  if (kColumnTiles > 1) _tile_stored(1, out + 16, stride);
  if (kRowTiles > 1) _tile_stored(2, below, stride);
  if (kRowTiles > 1 && kColumnTiles > 1) _tile_stored(3, below + 16, stride);
}

// `rows` and `columns` are more than 0.
void MultiplyAnyBlock(const TileBlock& block, int64_t rows, int64_t columns) {
  const bool tall = rows > kAmxRows;
  const bool wide = columns > kAmxRows;
  if (tall && wide) return MultiplyBlock<2, 2>(block);
  if (tall) return MultiplyBlock<2, 1>(block);
  if (wide) return MultiplyBlock<1, 2>(block);
  MultiplyBlock<1, 1>(block);
}

// A block that is not made of whole tiles goes through memory that is.
void MultiplyEdge(TileBlock block, int64_t rows, int64_t columns) {
  alignas(kCacheLine) float sums[kBlock * kBlock];
  float* const out = block.out;
  const bool add = block.add;
  block.out = sums;
  const int64_t out_row = std::exchange(block.out_row, kBlock);
  block.add = false;
  MultiplyAnyBlock(block, rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    float* to = out + i * out_row;
    const float* from = sums + i * kBlock;
    for (int64_t j = 0; j < columns; ++j) to[j] = add ? to[j] + from[j] : from[j];
  }
}

// Columns outside: their tiles stay in the first cache while rows pass.
void MultiplyTiles(const Bf16Product& product) {
  const AmxTiles tiles;
  for (int64_t j = 0; j < product.columns; j += kBlock) {
    const int64_t columns = std::min(kBlock, product.columns - j);
    for (int64_t i = 0; i < product.rows; i += kBlock) {
      const int64_t rows = std::min(kBlock, product.rows - i);
      const TileBlock block = {.left = product.left.At(i / kAmxRows, 0).data,
                               .left_step = product.left.line_step,
                               .right = product.right.At(j / kAmxRows, 0).data,
                               .right_step = product.right.line_step,
                               .depth_tiles = product.depth_tiles,
                               .out = product.out + i * product.out_row + j,
                               .out_row = product.out_row,
                               .add = product.add};
      const bool whole = rows % kAmxRows == 0 && columns % kAmxRows == 0;
      whole ? MultiplyAnyBlock(block, rows, columns) : MultiplyEdge(block, rows, columns);
    }
  }
}

// Some rows of a tile by one or two tiles of columns.
struct DotBlock {
  const Bf16* left;
  const Bf16* right;
  int64_t right_step;  // Numbers to the second tile of columns.
  int64_t depth_tiles;
  int64_t columns;
  float* out;
  int64_t out_row;
  bool add;
};

template <int kRows, int kVectors>
KIBITZ_AVX512_BF16 void MultiplyDots(const DotBlock& block) {
  __mmask16 lanes[kVectors];
  for (int j = 0; j < kVectors; ++j) lanes[j] = FirstLanes(block.columns - j * kAmxRows);
  DotSums<kRows, kVectors> sums;
  for (int i = 0; i < kRows; ++i) {
    const float* out = block.out + i * block.out_row;
    for (int j = 0; j < kVectors; ++j) {
      sums.of[i][j] = _mm512_maskz_loadu_ps(block.add ? lanes[j] : 0, out + j * kAmxRows);
    }
  }
  for (int64_t k = 0; k < block.depth_tiles; ++k) {
    sums.Add({block.left + k * kBf16Tile, kAmxDepth},
             {block.right + k * kBf16Tile, 2 * kAmxRows, block.right_step});
  }
  for (int i = 0; i < kRows; ++i) {
    float* out = block.out + i * block.out_row;
    for (int j = 0; j < kVectors; ++j) {
      _mm512_mask_storeu_ps(out + j * kAmxRows, lanes[j], sums.of[i][j]);
    }
  }
}

template <int kVectors>
void MultiplyDotRows(const DotBlock& block, int64_t rows) {
  switch (rows) {
    case 1:
      return MultiplyDots<1, kVectors>(block);
    case 2:
      return MultiplyDots<2, kVectors>(block);
    case 3:
      return MultiplyDots<3, kVectors>(block);
    case 4:
      return MultiplyDots<4, kVectors>(block);
    case 5:
      return MultiplyDots<5, kVectors>(block);
    case 6:
      return MultiplyDots<6, kVectors>(block);
    case 7:
      return MultiplyDots<7, kVectors>(block);
    default:
      return MultiplyDots<8, kVectors>(block);
  }
}

void MultiplyByDots(const Bf16Product& product) {
  for (int64_t j = 0; j < product.columns; j += kBlock) {
    for (int64_t i = 0; i < product.rows; i += kDotRows) {
      const int64_t rows = std::min(kDotRows, product.rows - i);
      const DotBlock block = {
          .left = product.left.At(i / kAmxRows, 0).data + i % kAmxRows * kAmxDepth,
          .right = product.right.At(j / kAmxRows, 0).data,
          .right_step = product.right.line_step,
          .depth_tiles = product.depth_tiles,
          .columns = product.columns - j,
          .out = product.out + i * product.out_row + j,
          .out_row = product.out_row,
          .add = product.add};
      block.columns > kAmxRows ? MultiplyDotRows<2>(block, rows) : MultiplyDotRows<1>(block, rows);
    }
  }
}

#endif

}  // namespace

Bf16Factor::Bf16Factor(int64_t lines, int64_t depth)
    : line_tiles_(TilesOf(lines, kAmxRows)), depth_tiles_(TilesOf(depth, kAmxDepth)) {
  const auto bytes = static_cast<size_t>(line_tiles_ * depth_tiles_ * kBf16Tile) * sizeof(Bf16);
  if (bytes == 0) return;
  data_.reset(static_cast<Bf16*>(std::aligned_alloc(kCacheLine, bytes)));
  if (!data_) throw std::bad_alloc();
}

void PackByLinesPlain(const FloatMatrix& from, Bf16Side side, const Bf16Tiles& to) {
  FillPlain(from.rows, from.columns, side, to,
            [&](int64_t line, int64_t depth) { return from.data[line * from.row + depth]; });
}

void PackByDepthPlain(const FloatMatrix& from, Bf16Side side, const Bf16Tiles& to) {
  FillPlain(from.columns, from.rows, side, to,
            [&](int64_t line, int64_t depth) { return from.data[depth * from.row + line]; });
}

void MultiplyBf16Plain(const Bf16Product& product) {
  for (int64_t i = 0; i < product.rows; ++i) {
    for (int64_t j = 0; j < product.columns; ++j) {
      float sum = product.add ? product.out[i * product.out_row + j] : 0;
      for (int64_t k = 0; k < product.depth_tiles * kAmxDepth; ++k) {
        const Bf16* left = product.left.At(i / kAmxRows, k / kAmxDepth).data;
        const Bf16* right = product.right.At(j / kAmxRows, k / kAmxDepth).data;
        sum += FromBf16(left[Place(Bf16Side::kLeft, i % kAmxRows, k % kAmxDepth)]) *
               FromBf16(right[Place(Bf16Side::kRight, j % kAmxRows, k % kAmxDepth)]);
      }
      product.out[i * product.out_row + j] = sum;
    }
  }
}

void TransposeFloatsPlain(const FloatMatrix& from, float* to, int64_t to_row) {
  for (int64_t i = 0; i < from.rows; ++i) {
    for (int64_t j = 0; j < from.columns; ++j) to[j * to_row + i] = from.data[i * from.row + j];
  }
}

#if defined(KIBITZ_HAS_AMX_INTRINSICS)

void PackByLines(const FloatMatrix& from, Bf16Side side, const Bf16Tiles& to) {
  if (!HasAvx512Bf16()) return PackByLinesPlain(from, side, to);
  side == Bf16Side::kLeft ? PackLines<Bf16Side::kLeft>(from, to)
                          : PackLines<Bf16Side::kRight>(from, to);
}

void PackByDepth(const FloatMatrix& from, Bf16Side side, const Bf16Tiles& to) {
  if (!HasAvx512Bf16()) return PackByDepthPlain(from, side, to);
  side == Bf16Side::kLeft ? PackDepth<Bf16Side::kLeft>(from, to)
                          : PackDepth<Bf16Side::kRight>(from, to);
}

void MultiplyBf16(const Bf16Product& product) {
  if (HasAmx()) return MultiplyTiles(product);
  HasAvx512Bf16() ? MultiplyByDots(product) : MultiplyBf16Plain(product);
}

void TransposeFloats(const FloatMatrix& from, float* to, int64_t to_row) {
  HasAvx512Bf16() ? TransposeByTiles(from, to, to_row) : TransposeFloatsPlain(from, to, to_row);
}

#else

void PackByLines(const FloatMatrix& from, Bf16Side side, const Bf16Tiles& to) {
  PackByLinesPlain(from, side, to);
}
void PackByDepth(const FloatMatrix& from, Bf16Side side, const Bf16Tiles& to) {
  PackByDepthPlain(from, side, to);
}
void MultiplyBf16(const Bf16Product& product) { MultiplyBf16Plain(product); }
void TransposeFloats(const FloatMatrix& from, float* to, int64_t to_row) {
  TransposeFloatsPlain(from, to, to_row);
}

#endif

}  // namespace kibitz::nn
