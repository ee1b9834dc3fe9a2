#include "nn/kernels/int8_gemm.h"

#include <algorithm>

#include "nn/kernels/int8_gemm_256.h"
#if defined(__AVX512VNNI__)
#include <immintrin.h>

#include "nn/kernels/lanes.h"
#endif

namespace kibitz::nn {

void Int8GemmTilePlain(const Int8Gemm& gemm) {
  const auto& [a, b, rows, groups, planes, panels, panel_groups, c, c_panel, add] = gemm;
  for (int64_t p = 0; p < panels; ++p) {
    float* out = c + p * c_panel;
    if (!add) std::fill_n(out, rows * kInt8Columns, 0.0F);
    for (int64_t g = 0; g < groups * planes; ++g) {
      const int64_t weights = p * panel_groups + g / planes;
      const uint8_t* a_group = a.numbers + g * kInt8RowGroupBytes;
      const int8_t* b_group = b.numbers + weights * kInt8ColumnGroupBytes;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < kInt8Columns; ++column) {
          const int64_t place = weights * kInt8Columns + column;
          int32_t sum = b.zeros[place];
          for (int64_t k = 0; k < kInt8Group; ++k) {
            sum += a_group[Int8RowPlace(row, k)] * b_group[Int8ColumnPlace(column, k)];
          }
          out[row * kInt8Columns + column] +=
              static_cast<float>(sum) * (a.scales[g * kInt8Rows + row] * b.scales[place]);
        }
      }
    }
  }
}

#if defined(__AVX512VNNI__)
namespace {

// Four numbers of a row, sixteen times.
inline __m512i SpreadQuad(const uint8_t* from) {
  int32_t quad = 0;
  __builtin_memcpy(&quad, from, 4);
  return _mm512_set1_epi32(quad);
}

// sum + a b, four products for each number of the sum. As assembly, because GCC 12 copies every sum
// before and after the intrinsic and reads the weights from memory once for each row: a third
// of the speed.
inline void AddProducts(__m512i& sum, __m512i a, __m512i b) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

// One group of weights, for the panels of a product.
struct PanelGroup {
  const int8_t* numbers;
  const float* scales;
  const int32_t* zeros;
  int64_t next;  // Groups to the next panel.
};

// Four numbers of each column, for kPanels panels; one member each: compilers keep members in
// registers, but not always an array. So do the sums of one row and of kRows rows below.
template <int64_t kPanels>
struct PanelQuads {
  __m512i quads;
  PanelQuads<kPanels - 1> next;

  void Read(const int8_t* b, int64_t panel) {
    quads = _mm512_loadu_si512(b);
    next.Read(b + panel * kInt8ColumnGroupBytes, panel);
  }
};
template <>
struct PanelQuads<0> {
  void Read(const int8_t*, int64_t) {}
};

template <int64_t kPanels>
struct Int8RowSums {
  __m512i sum;
  Int8RowSums<kPanels - 1> next;

  void Start(const int32_t* zeros, int64_t panel) {
    sum = _mm512_loadu_si512(zeros);
    next.Start(zeros + panel * kInt8Columns, panel);
  }
  void Add(__m512i a, const PanelQuads<kPanels>& b) {
    AddProducts(sum, a, b.quads);
    next.Add(a, b.next);
  }
  void Write(float a_scale, const float* b_scales, int64_t panel, bool add, float* c,
             int64_t c_panel) const {
    static_assert(kInt8Columns == kLanes);
    const Lanes numbers = __builtin_convertvector(reinterpret_cast<IntLanes>(sum), Lanes);
    // Rounded once, alike for all numbers of rows.
    Store(c, _mm512_fmadd_ps(numbers, a_scale * Load(b_scales), add ? Load(c) : Lanes{}));
    next.Write(a_scale, b_scales + panel * kInt8Columns, panel, add, c + c_panel, c_panel);
  }
};
template <>
struct Int8RowSums<0> {
  void Start(const int32_t*, int64_t) {}
  void Add(__m512i, const PanelQuads<0>&) {}
  void Write(float, const float*, int64_t, bool, float*, int64_t) const {}
};

template <int64_t kRows, int64_t kPanels>
struct Int8TileSums {
  Int8RowSums<kPanels> row;
  Int8TileSums<kRows - 1, kPanels> next;

  void Start(const PanelGroup& b) {
    row.Start(b.zeros, b.next);
    next.Start(b);
  }
  void Add(const uint8_t* a, const PanelQuads<kPanels>& b) {
    row.Add(SpreadQuad(a), b);
    next.Add(a + 4, b);
  }
  void Write(const float* a_scales, const PanelGroup& b, bool add, float* c,
             int64_t c_panel) const {
    row.Write(*a_scales, b.scales, b.next, add, c, c_panel);
    next.Write(a_scales + 1, b, add, c + kInt8Columns, c_panel);
  }
};
template <int64_t kPanels>
struct Int8TileSums<0, kPanels> {
  void Start(const PanelGroup&) {}
  void Add(const uint8_t*, const PanelQuads<kPanels>&) {}
  void Write(const float*, const PanelGroup&, bool, float*, int64_t) const {}
};

template <int64_t kRows, int64_t kPanels>
void GemmPanels(const Int8Gemm& gemm) {
  for (int64_t g = 0; g < gemm.groups * gemm.planes; ++g) {
    const int64_t weights = g / gemm.planes;
    const PanelGroup b = {.numbers = gemm.b.numbers + weights * kInt8ColumnGroupBytes,
                          .scales = gemm.b.scales + weights * kInt8Columns,
                          .zeros = gemm.b.zeros + weights * kInt8Columns,
                          .next = gemm.panel_groups};
    const uint8_t* a = gemm.a.numbers + g * kInt8RowGroupBytes;
    Int8TileSums<kRows, kPanels> sums;
    sums.Start(b);
    for (int64_t k = 0; k < kInt8Group; k += 4) {
      PanelQuads<kPanels> quads;
      quads.Read(b.numbers + k * kInt8Columns, b.next);
      sums.Add(a + k * kInt8Rows, quads);
    }
    sums.Write(gemm.a.scales + g * kInt8Rows, b, gemm.add || g > 0, gemm.c, gemm.c_panel);
  }
}

template <int64_t kRows>
void GemmRows(const Int8Gemm& gemm) {
  switch (gemm.panels) {
    case 1:
      return GemmPanels<kRows, 1>(gemm);
    case 2:
      return GemmPanels<kRows, 2>(gemm);
    case 3:
      return GemmPanels<kRows, 3>(gemm);
    default:
      return GemmPanels<kRows, 4>(gemm);
  }
}

}  // namespace

void Int8GemmTile(const Int8Gemm& gemm) {
  static_assert(kInt8Rows == 4 && kInt8Columns == 16 && kInt8MaxPanels == 4);
  switch (gemm.rows) {
    case 1:
      return GemmRows<1>(gemm);
    case 2:
      return GemmRows<2>(gemm);
    case 3:
      return GemmRows<3>(gemm);
    default:
      return GemmRows<4>(gemm);
  }
}
#elif defined(__AVXVNNI__)
void Int8GemmTile(const Int8Gemm& gemm) { int8_256::GemmTile<int8_256::AddByDots>(gemm); }
#elif defined(__AVX2__)
void Int8GemmTile(const Int8Gemm& gemm) { int8_256::GemmTile<int8_256::AddByWords>(gemm); }
#else
void Int8GemmTile(const Int8Gemm& gemm) { Int8GemmTilePlain(gemm); }
#endif

}  // namespace kibitz::nn
