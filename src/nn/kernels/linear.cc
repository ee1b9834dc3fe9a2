#include "nn/kernels/linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "nn/kernels/gemm_tile.h"
#include "nn/kernels/int8_gemm.h"

namespace kibitz::nn {
namespace {

// Depth of the slice of a panel that stays in L1 while rows pass.
constexpr int64_t kDepth = 128;
// Rows of a packed tile of floats: sums for all of them, two vectors of weights and one factor fit
// the registers, of which AVX-512 has 32.
constexpr int64_t kFloatRows = kLanes == 16 ? 14 : kTileRows;
// Rows and panels of one task. A board in both streams is 140 rows.
constexpr int64_t kBlockRows = kLanes == 16 ? 140 : 144;
constexpr int64_t kBlockPanels = 4;
static_assert(kBlockRows % kFloatRows == 0 && kBlockRows % kInt8Rows == 0 && kBlockPanels % 2 == 0);
// Groups of weights that stay in L1 with all panels of a block, and rows whose sums stay there too.
constexpr int64_t kInt8Slice = 2;
constexpr int64_t kInt8SliceRows = 48;
// Columns of a panel.
constexpr int64_t ColumnsOf(Precision precision) {
  return precision == Precision::kF32 ? kTileColumns : kInt8Columns;
}
constexpr int64_t kMaxColumns = std::max(kTileColumns, kInt8Columns);
static_assert(kInt8Columns % kLanes == 0);

// Below this many inputs a product is cheap, and rounding activations to 7 bits is its main error:
// they get a second plane.
constexpr int64_t kOnePlaneFrom = 512;

constexpr int64_t DivideUp(int64_t value, int64_t step) { return (value + step - 1) / step; }

int64_t TileRowsOf(Precision precision) {
  return precision == Precision::kF32 ? kFloatRows : kInt8Rows;
}

// The largest magnitude.
float LargestOf(std::span<const float> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  Lanes max{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Lanes x = Load(numbers.data() + i);
    max = Larger(max, Larger(x, -x));
  }
  float largest = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) largest = std::max(largest, max[lane]);
  for (float x : numbers.subspan(static_cast<size_t>(i))) largest = std::max(largest, std::fabs(x));
  return largest;
}

int Rounded(float x) { return static_cast<int>(std::lrintf(x)); }

// Prefetches the next weights, a part with each tile of rows, so that they arrive while these are
// used. Only a hint: it may point past the end.
inline void Prefetch(const void* next, int64_t bytes, int64_t rows, int64_t row,
                     int64_t tile_rows) {
  if (rows <= tile_rows) return;  // Weights are read once, in order.
  constexpr auto kLine = static_cast<int64_t>(kCacheLine);
  const int64_t part = RoundUp(bytes * tile_rows / rows, kLine);
  const char* from = static_cast<const char*>(next) + row / tile_rows * part;
  for (int64_t i = 0; i < part; i += kLine) __builtin_prefetch(from + i);
}

}  // namespace

// --- Rows ---

void PackedRows::Pack(Team& team, int64_t rows, const Linear& linear,
                      const std::function<void(int64_t, float*)>& make_row) {
  PackTiles(team, rows, linear, [&](int64_t row, float* space) -> const float* {
    make_row(row, space);
    return space;
  });
}

void PackedRows::Pack(Team& team, int64_t rows, const Linear& linear, const float* x,
                      int64_t x_row) {
  PackTiles(team, rows, linear, [&](int64_t row, float*) { return x + row * x_row; });
}

void PackedRows::PackTiles(Team& team, int64_t rows, const Linear& linear,
                           const RowSource& source) {
  rows_ = rows;
  inputs_ = linear.inputs();
  planes_ = linear.planes_;
  groups_ = linear.groups_ * planes_;
  const int64_t tile_rows = TileRowsOf(linear.precision());
  const int64_t tiles = DivideUp(rows, tile_rows);
  const bool floats = linear.precision() == Precision::kF32;
  if (floats) {
    floats_.Reserve(tiles * inputs_ * kFloatRows);
  } else {
    numbers_.Reserve(tiles * groups_ * kInt8RowGroupBytes);
    scales_.Reserve(tiles * groups_ * kInt8Rows);
  }
  const auto pack = [&](int64_t tile) {
    floats ? PackFloats(tile, source) : PackInt8(tile, source);
  };
  if (tiles <= 2) {  // Not worth waking the team.
    for (int64_t tile = 0; tile < tiles; ++tile) pack(tile);
  } else {
    team.Run(tiles, pack);
  }
}

void PackedRows::PackFloats(int64_t tile, const RowSource& source) {
  const int64_t first = tile * kFloatRows;
  const int64_t count = std::min(kFloatRows, rows_ - first);
  thread_local AlignedArray<float> space;  // Rows where they are made.
  space.Reserve(kFloatRows * inputs_);
  std::array<const float*, kFloatRows> rows;
  for (int64_t row = 0; row < count; ++row) {
    rows[static_cast<size_t>(row)] = source(first + row, space.data() + row * inputs_);
  }
  float* out = floats_.data() + tile * kFloatRows * inputs_;
  if (count < kFloatRows) {  // Products do not read the other rows.
    for (int64_t row = 0; row < count; ++row) {
      const float* from = rows[static_cast<size_t>(row)];
      for (int64_t k = 0; k < inputs_; ++k) out[k * kFloatRows + row] = from[k];
    }
    return;
  }
  for (int64_t k = 0; k < inputs_; ++k) {
    for (const float* row : rows) *out++ = row[k];
  }
}

namespace {

// Rounds kInt8Group numbers to 7 bits; returns their scale. With `rest`, stores the rounding errors
// there.
float Quantise(const float* numbers, int64_t row, uint8_t* out, float* rest) {
  const float largest = LargestOf({numbers, kInt8Group});
  const float scale = largest / kInt8Max;
  const float factor = largest > 0 ? kInt8Max / largest : 0;
  std::array<float, kInt8Group> rounded;
  std::array<uint8_t, kInt8Group> bytes;
  for (size_t k = 0; k < kInt8Group; ++k) rounded[k] = std::nearbyintf(numbers[k] * factor);
  for (size_t k = 0; k < kInt8Group; ++k) {
    bytes[k] = static_cast<uint8_t>(static_cast<int>(rounded[k]) + kInt8Zero);
  }
  for (size_t k = 0; k < kInt8Group; k += 4) {
    std::memcpy(out + Int8RowPlace(row, static_cast<int64_t>(k)), bytes.data() + k, 4);
  }
  if (rest != nullptr) {
    for (size_t k = 0; k < kInt8Group; ++k) rest[k] = numbers[k] - rounded[k] * scale;
  }
  return scale;
}

}  // namespace

void PackedRows::PackInt8(int64_t tile, const RowSource& source) {
  const int64_t first = tile * kInt8Rows;
  const int64_t count = std::min(kInt8Rows, rows_ - first);
  const int64_t groups = groups_ / planes_;
  const int64_t whole = inputs_ / kInt8Group;  // Groups without padding.
  thread_local AlignedArray<float> space;
  space.Reserve(groups * kInt8Group);
  std::array<float, kInt8Group> padded{};
  std::array<float, kInt8Group> rest;
  uint8_t* out = numbers_.data() + tile * groups_ * kInt8RowGroupBytes;
  float* scales = scales_.data() + tile * groups_ * kInt8Rows;
  for (int64_t row = 0; row < count; ++row) {
    const float* numbers = source(first + row, space.data());
    std::copy(numbers + whole * kInt8Group, numbers + inputs_, padded.data());
    for (int64_t g = 0; g < groups; ++g) {
      const float* from = g < whole ? numbers + g * kInt8Group : padded.data();
      const int64_t at = g * planes_;
      scales[at * kInt8Rows + row] =
          Quantise(from, row, out + at * kInt8RowGroupBytes, planes_ > 1 ? rest.data() : nullptr);
      if (planes_ == 1) continue;
      scales[(at + 1) * kInt8Rows + row] =
          Quantise(rest.data(), row, out + (at + 1) * kInt8RowGroupBytes, nullptr);
    }
  }
}

// --- Weights ---

Linear::Linear(const LinearWeights& weights, Precision precision)
    : precision_(precision),
      inputs_(weights.inputs),
      outputs_(weights.outputs),
      columns_(ColumnsOf(precision)),
      panels_(DivideUp(weights.outputs, columns_)) {
  CHECK(static_cast<int64_t>(weights.weight.size()) == inputs_ * outputs_);
  CHECK(weights.bias.empty() || static_cast<int64_t>(weights.bias.size()) == outputs_);
  if (precision == Precision::kF32) {
    PackFloats(weights);
  } else {
    PackInt8(weights);
  }
  if (!weights.bias.empty()) {
    bias_ = AlignedArray<float>(panels_ * columns_);
    std::copy(weights.bias.begin(), weights.bias.end(), bias_.data());
  }
}

void Linear::PackFloats(const LinearWeights& weights) {
  floats_ = AlignedArray<float>::InLargePages(panels_ * inputs_ * columns_);
  for (int64_t n = 0; n < outputs_; ++n) {
    const float* from = weights.weight.data() + n * inputs_;
    float* to = floats_.data() + n / columns_ * inputs_ * columns_ + n % columns_;
    for (int64_t k = 0; k < inputs_; ++k) to[k * columns_] = from[k];
  }
}

void Linear::PackInt8(const LinearWeights& weights) {
  groups_ = DivideUp(inputs_, kInt8Group);
  planes_ = inputs_ < kOnePlaneFrom && !weights.coarse ? 2 : 1;
  numbers_ = AlignedArray<int8_t>::InLargePages(panels_ * groups_ * kInt8ColumnGroupBytes);
  scales_ = AlignedArray<float>(panels_ * groups_ * kInt8Columns);
  zeros_ = AlignedArray<int32_t>(panels_ * groups_ * kInt8Columns);
  for (int64_t n = 0; n < outputs_; ++n) {
    const int64_t column = n % kInt8Columns;
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t first = g * kInt8Group;
      const std::span<const float> from =
          weights.weight.subspan(static_cast<size_t>(n * inputs_ + first),
                                 static_cast<size_t>(std::min(kInt8Group, inputs_ - first)));
      const int64_t group = n / kInt8Columns * groups_ + g;
      const float largest = LargestOf(from);
      const float factor = largest > 0 ? kInt8Max / largest : 0;
      int32_t sum = 0;
      for (size_t k = 0; k < from.size(); ++k) {
        const int number = Rounded(from[k] * factor);
        numbers_[group * kInt8ColumnGroupBytes + Int8ColumnPlace(column, static_cast<int64_t>(k))] =
            static_cast<int8_t>(number);
        sum += number;
      }
      scales_[group * kInt8Columns + column] = largest / kInt8Max;
      zeros_[group * kInt8Columns + column] = -kInt8Zero * sum;
    }
  }
}

size_t Linear::memory_bytes() const {
  return static_cast<size_t>(floats_.size() + scales_.size() + zeros_.size() + bias_.size()) * 4 +
         static_cast<size_t>(numbers_.size());
}

// --- Product ---

struct Linear::Block {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_panel = 0;
  int64_t panels = 0;
};

void Linear::Run(Team& team, const PackedRows& x, const RowsOut& y) const {
  CHECK(x.inputs_ == inputs_);
  CHECK((precision_ == Precision::kF32) == (x.groups_ == 0) && x.planes_ == planes_);
  const int64_t row_blocks = DivideUp(x.rows_, kBlockRows);
  const int64_t panel_blocks = DivideUp(panels_, kBlockPanels);
  team.Run(row_blocks * panel_blocks, x.rows_ * inputs_ * outputs_, [&](int64_t i) {
    // All rows with the same weights, one block after another.
    const int64_t row = i % row_blocks * kBlockRows;
    const int64_t panel = i / row_blocks * kBlockPanels;
    RunBlock(x,
             {.first_row = row,
              .rows = std::min(kBlockRows, x.rows_ - row),
              .first_panel = panel,
              .panels = std::min(kBlockPanels, panels_ - panel)},
             y);
  });
}

// Panels go two at a time where that costs nothing: their sums stay in L1 until they are written.
// In deep float products all panels of a block go together, because they share the rows.
void Linear::RunBlock(const PackedRows& x, const Block& block, const RowsOut& y) const {
  alignas(kCacheLine) std::array<float, kBlockPanels * kBlockRows * kMaxColumns> c;
  const bool floats = precision_ == Precision::kF32;
  const bool together = !floats || inputs_ > kDepth || block.rows <= 2;
  const int64_t step = together ? kBlockPanels : 2;
  for (int64_t p = 0; p < block.panels; p += step) {
    Block part = block;
    part.first_panel += p;
    part.panels = std::min(step, block.panels - p);
    floats ? MultiplyFloats(x, part, c.data()) : MultiplyInt8(x, part, c.data());
    Write(part, c.data(), y);
  }
}

// With few rows, the sums of one panel wait for each other, so several panels go side by side.
template <int64_t kRows, int64_t kPanels>
struct PanelSums {
  TileSums<kRows> own;
  PanelSums<kRows, kPanels - 1> next;

  void Add(const float* a, const float* b, int64_t panel) {
    own.Add(a, 1, Load(b), Load(b + kLanes));
    next.Add(a, b + panel, panel);
  }
  void Write(float* c) const {
    own.Write(c, kTileColumns);
    next.Write(c + kBlockRows * kTileColumns);
  }
};
template <int64_t kRows>
struct PanelSums<kRows, 0> {
  void Add(const float*, const float*, int64_t) {}
  void Write(float*) const {}
};

template <int64_t kRows, int64_t kPanels>
void FewRows(const float* a, const float* b, int64_t panel, int64_t depth, float* c) {
  PanelSums<kRows, kPanels> sums;
  for (int64_t k = 0; k < depth; ++k, a += kFloatRows, b += kTileColumns) sums.Add(a, b, panel);
  sums.Write(c);
}

// c: (panels, kBlockRows, columns).
void Linear::MultiplyFloats(const PackedRows& x, const Block& block, float* c) const {
  if (block.rows <= 2 && block.panels == kBlockPanels) return MultiplyFewFloats(x, block, c);
  for (int64_t k = 0; k < inputs_; k += kDepth) {
    const int64_t depth = std::min(kDepth, inputs_ - k);
    for (int64_t p = 0; p < block.panels; ++p) {
      const float* b = floats_.data() + ((block.first_panel + p) * inputs_ + k) * kTileColumns;
      const bool last = p + 1 == block.panels;  // The first panel's next slice follows.
      const float* next =
          last ? b + (kDepth - p * inputs_) * kTileColumns : b + inputs_ * kTileColumns;
      for (int64_t row = 0; row < block.rows; row += kFloatRows) {
        const float* a = x.floats_.data() + (block.first_row + row) * inputs_ + k * kFloatRows;
        Prefetch(next, depth * kTileColumns * 4, block.rows, row, kFloatRows);
        GemmUpTo<kFloatRows>({.a = {.data = a, .row = 1, .column = kFloatRows},
                              .b = b,
                              .b_row = kTileColumns,
                              .c = c + (p * kBlockRows + row) * kTileColumns,
                              .c_row = kTileColumns,
                              .rows = std::min(kFloatRows, block.rows - row),
                              .depth = depth,
                              .add = k > 0});
      }
    }
  }
}

void Linear::MultiplyFewFloats(const PackedRows& x, const Block& block, float* c) const {
  static_assert(kBlockPanels == 4);
  const int64_t panel = inputs_ * kTileColumns;
  const float* a = x.floats_.data() + block.first_row * inputs_;
  const float* b = floats_.data() + block.first_panel * panel;
  if (block.rows == 1) return FewRows<1, 4>(a, b, panel, inputs_, c);
  FewRows<2, 2>(a, b, panel, inputs_, c);
  FewRows<2, 2>(a, b + 2 * panel, panel, inputs_, c + 2 * kBlockRows * kTileColumns);
}

// Some rows at a time, and slices of groups: the sums and the weights of a slice stay in L1 while
// rows pass.
void Linear::MultiplyInt8(const PackedRows& x, const Block& block, float* c) const {
  for (int64_t row = 0; row < block.rows; row += kInt8SliceRows) {
    Block part = block;
    part.first_row += row;
    part.rows = std::min(kInt8SliceRows, block.rows - row);
    for (int64_t g = 0; g < groups_; g += kInt8Slice) {
      MultiplyInt8Slice(x, part, g, c + row * kInt8Columns);
    }
  }
}

void Linear::MultiplyInt8Slice(const PackedRows& x, const Block& block, int64_t group,
                               float* c) const {
  static_assert(kBlockPanels <= kInt8MaxPanels);
  const int64_t panel_bytes = groups_ * kInt8ColumnGroupBytes;
  const int64_t first = block.first_panel * groups_ + group;
  const int64_t slice = std::min(kInt8Slice, groups_ - group);
  const Int8Panel b = {.numbers = numbers_.data() + first * kInt8ColumnGroupBytes,
                       .scales = scales_.data() + first * kInt8Columns,
                       .zeros = zeros_.data() + first * kInt8Columns};
  for (int64_t row = 0; row < block.rows; row += kInt8Rows) {
    for (int64_t p = 0; p < block.panels; ++p) {
      Prefetch(b.numbers + p * panel_bytes + slice * kInt8ColumnGroupBytes,
               slice * kInt8ColumnGroupBytes, block.rows, row, kInt8Rows);
    }
    const int64_t tile_groups = (block.first_row + row) / kInt8Rows * x.groups_ + group * x.planes_;
    Int8GemmTile({.a = {.numbers = x.numbers_.data() + tile_groups * kInt8RowGroupBytes,
                        .scales = x.scales_.data() + tile_groups * kInt8Rows},
                  .b = b,
                  .rows = std::min(kInt8Rows, block.rows - row),
                  .groups = slice,
                  .planes = planes_,
                  .panels = block.panels,
                  .panel_groups = groups_,
                  .c = c + row * kInt8Columns,
                  .c_panel = kBlockRows * kInt8Columns,
                  .add = group > 0});
  }
}

namespace {

// What `finish` makes of a sum; `up` is the same column of the next panel, `old` what y has.
template <Finish kFinish>
inline Lanes Finished(Lanes sum, const float* up, const float* old) {
  if constexpr (kFinish == Finish::kSwiGlu) return sum * Sigmoid(sum) * Load(up);
  if constexpr (kFinish == Finish::kAdd) return sum + Load(old);
  return sum;
}

// kColumns sums of each row, from `c` to `to`, whose rows are `row` apart.
template <Finish kFinish, int64_t kColumns>
void WriteColumns(const float* c, const float* bias, int64_t rows, float* to, int64_t row) {
  for (int64_t i = 0; i < rows; ++i, c += kColumns, to += row) {
    for (int64_t j = 0; j < kColumns; j += kLanes) {
      Lanes sum = Load(c + j);
      if (bias != nullptr) sum += Load(bias + j);
      Store(to + j, Finished<kFinish>(sum, c + kBlockRows * kColumns + j, to + j));
    }
  }
}

template <Finish kFinish>
void WritePanel(const float* c, const float* bias, int64_t rows, Precision precision, float* to,
                int64_t row) {
  precision == Precision::kF32 ? WriteColumns<kFinish, kTileColumns>(c, bias, rows, to, row)
                               : WriteColumns<kFinish, kInt8Columns>(c, bias, rows, to, row);
}

}  // namespace

// The sums of one panel, (block.rows, columns), of which the first `width` columns exist.
void Linear::WriteSums(const float* c, int64_t panel, int64_t width, int64_t rows,
                       const RowsOut& y) const {
  const float* bias = bias_.size() > 0 ? bias_.data() + panel * columns_ : nullptr;
  if (width == columns_) {
    switch (y.finish) {
      case Finish::kStore:
        return WritePanel<Finish::kStore>(c, bias, rows, precision_, y.to, y.row);
      case Finish::kAdd:
        return WritePanel<Finish::kAdd>(c, bias, rows, precision_, y.to, y.row);
      case Finish::kSwiGlu:
        return WritePanel<Finish::kSwiGlu>(c, bias, rows, precision_, y.to, y.row);
    }
  }
  // The last panel by way of a whole one.
  std::array<float, kMaxColumns> line;
  for (int64_t row = 0; row < rows; ++row) {
    float* to = y.to + row * y.row;
    std::copy_n(to, width, line.data());
    WriteSums(c + row * columns_, panel, columns_, 1,
              {.to = line.data(), .row = columns_, .finish = y.finish});
    std::copy_n(line.data(), width, to);
  }
}

void Linear::Write(const Block& block, const float* c, const RowsOut& y) const {
  const bool swiglu = y.finish == Finish::kSwiGlu;
  const int64_t outputs = swiglu ? outputs_ / 2 : outputs_;
  for (int64_t p = 0; p < block.panels; p += swiglu ? 2 : 1) {
    const int64_t panel = block.first_panel + p;
    const int64_t column = (swiglu ? panel / 2 : panel) * columns_;
    WriteSums(c + p * kBlockRows * columns_, panel, std::min(columns_, outputs - column),
              block.rows,
              {.to = y.to + block.first_row * y.row + column, .row = y.row, .finish = y.finish});
  }
}

AlignedArray<float> InterleaveSwiGlu(std::span<const float> gate, std::span<const float> up,
                                     int64_t hidden, int64_t inputs, Precision precision) {
  const int64_t columns = ColumnsOf(precision);
  AlignedArray<float> both(SwiGluOutputs(hidden, precision) * inputs);
  for (int64_t n = 0; n < hidden; ++n) {
    float* to = both.data() + (n / columns * 2 * columns + n % columns) * inputs;
    std::copy_n(gate.data() + n * inputs, inputs, to);
    std::copy_n(up.data() + n * inputs, inputs, to + columns * inputs);
  }
  return both;
}

int64_t SwiGluOutputs(int64_t hidden, Precision precision) {
  return 2 * RoundUp(hidden, ColumnsOf(precision));
}

}  // namespace kibitz::nn
