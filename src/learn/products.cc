#include "learn/products.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "learn/parallel.h"
#include "nn/kernels/aligned.h"
#include "nn/kernels/cached_gemm.h"
#include "nn/kernels/gemm_tile.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {
namespace {

using nn::Gemm;
using nn::GemmRows;
using nn::kLanes;
using nn::kTileColumns;
using nn::Load;
using nn::RoundUp;
using nn::Store;
using torch::Tensor;

// Rows of a register tile.
constexpr int64_t kRows = nn::kCachedRows;

// Depth of the slice of a panel that stays in the second cache while rows pass. A tile reads it
// slowly enough; fewer slices write and read their sums less often.
constexpr int64_t kDepth = 512;

// Sums over rows: the largest piece of the output that one task computes.
constexpr int64_t kSumRows = kLanes == 16 ? 192 : 96;
constexpr int64_t kSumColumns = 8 * kTileColumns;

// In bfloat16: the same, and tiles of depth whose factors stay in the second cache.
constexpr int64_t kTileSumRows = 128;
constexpr int64_t kTileSumColumns = 128;
constexpr int64_t kTileSumDepth = 32;

// Columns of a right factor in bfloat16 that are packed together.
constexpr int64_t kTilePanel = 2 * nn::kAmxRows;
static_assert(kBlockRows % nn::kAmxDepth == 0);

// Copies `count` numbers, kMost at most; a known number of them needs no call.
template <int64_t kMost>
[[gnu::always_inline]] inline void CopyUpTo(const float* from, int64_t count, float* to) {
  if (count >= kMost) {
    std::copy_n(from, kMost, to);
  } else {
    std::copy_n(from, count, to);
  }
}

// Rows (rows, width) to panels (width / kWidth, rows, kWidth), padded with 0.
template <int64_t kWidth>
void KeepPanels(const LeftRows& block, int64_t width, float* to) {
  for (int64_t column = 0; column < width; column += kWidth) {
    const float* from = block.data + column;
    if (width - column >= kWidth) {
      for (int64_t i = 0; i < block.rows; ++i) {
        std::copy_n(from + i * block.row, kWidth, to + i * kWidth);
      }
    } else {
      for (int64_t i = 0; i < block.rows; ++i) {
        std::copy_n(from + i * block.row, width - column, to + i * kWidth);
        std::fill(to + i * kWidth + width - column, to + (i + 1) * kWidth, 0.0F);
      }
    }
    to += block.rows * kWidth;
  }
}

// Of a sum's output, what one task computes: as much as shares its factors well and leaves enough
// tasks for threads to share.
struct PieceSize {
  int64_t rows;
  int64_t columns;
};
PieceSize PieceOf(const Tensor& out, Precision precision) {
  if (precision == Precision::kBfloat16) {
    return {out.size(0) > kTileSumRows ? kTileSumRows : kTileSumRows / 2, kTileSumColumns};
  }
  const bool large = out.numel() >= 16 * kSumRows * kSumColumns;
  const int64_t most = large ? kSumRows : kSumRows / 2;
  const int64_t pieces = std::max<int64_t>(1, (out.size(0) + most - 1) / most);
  return {std::max(kRows, RoundUp((out.size(0) + pieces - 1) / pieces, kRows)),
          large ? kSumColumns : kSumColumns / 2};
}

// One panel's columns of a block of rows; all of the panel's, also behind the last of the matrix.
void MultiplyPanel(const LeftRows& left, const PackedMatrix& right, int64_t panel,
                   const ProductOut& out) {
  const float* const b = right.panel(panel);
  for (int64_t k = 0; k < right.depth(); k += kDepth) {
    const int64_t depth = std::min(kDepth, right.depth() - k);
    for (int64_t row = 0; row < left.rows; row += kRows) {
      nn::GemmUpTo<kRows>({.a = {.data = left.data + row * left.row + k, .row = left.row},
                           .b = b + k * kTileColumns,
                           .b_row = kTileColumns,
                           .c = out.data + row * out.row,
                           .c_row = out.row,
                           .rows = left.rows - row,
                           .depth = depth,
                           .add = out.add || k > 0});
    }
  }
}

// Of a panel that has only `columns` of the matrix: by way of a whole one.
void MultiplyNarrow(const LeftRows& left, const PackedMatrix& right, int64_t panel, int64_t columns,
                    const ProductOut& out) {
  alignas(nn::kCacheLine) float sums[kBlockRows * kTileColumns];
  MultiplyPanel(left, right, panel, {sums, kTileColumns});
  for (int64_t row = 0; row < left.rows; ++row) {
    const float* from = sums + row * kTileColumns;
    float* to = out.data + row * out.row;
    for (int64_t i = 0; i < columns; ++i) to[i] = out.add ? to[i] + from[i] : from[i];
  }
}

// What a thread multiplies at one time: few enough for all threads to share.
constexpr int64_t kPanelsAtOnce = 16;

// Torch's library multiplies by all panels at once.
int64_t PanelsOfTask(const PackedMatrix& right) {
  const bool tiles = kOwnTiles || right.precision() == Precision::kBfloat16;
  return tiles ? kPanelsAtOnce : std::max<int64_t>(1, right.panels());
}

// Panels outside: each comes from memory once, and the rows stay in the second cache.
void MultiplyTiles(const LeftRows& left, const PackedMatrix& right, const Panels& panels,
                   const ProductOut& out) {
  for (int64_t p = panels.begin; p < panels.end; ++p) {
    const int64_t column = p * kTileColumns;
    const int64_t columns = right.columns() - column;
    const ProductOut to = {out.data + column, out.row, out.add};
    columns < kTileColumns ? MultiplyNarrow(left, right, p, columns, to)
                           : MultiplyPanel(left, right, p, to);
  }
}

// A block of memory of others as a tensor.
Tensor View(const float* data, int64_t rows, int64_t columns, int64_t row) {
  return torch::from_blob(const_cast<float*>(data), {rows, columns}, {row, 1}, torch::kFloat32);
}

}  // namespace

PackedMatrix::PackedMatrix(const RightFactor& from, Precision precision)
    : from_{from.matrix.contiguous(), from.layout},
      depth_(from.matrix.size(from.layout == Layout::kAsIs ? 0 : 1)),
      columns_(from.matrix.size(from.layout == Layout::kAsIs ? 1 : 0)),
      precision_(precision) {
  CHECK(from_.matrix.device().is_cpu() && from_.matrix.scalar_type() == torch::kFloat32);
  if (precision_ == Precision::kBfloat16) {
    tiles_ = nn::Bf16Factor(columns_, depth_);
  } else if (kOwnTiles) {
    panels_ = torch::empty({panels(), depth_, kTileColumns});
  }
}

int64_t PackedMatrix::PanelColumns() const {
  return precision_ == Precision::kBfloat16 ? kTilePanel : kTileColumns;
}

int64_t PackedMatrix::panels() const { return RoundUp(columns_, PanelColumns()) / PanelColumns(); }

const float* PackedMatrix::panel(int64_t index) const {
  return panels_.data_ptr<float>() + index * depth_ * kTileColumns;
}

void PackedMatrix::FillTiles(int64_t index) {
  const float* from = from_.matrix.data_ptr<float>();
  const int64_t first = index * kTilePanel;
  const int64_t count = std::min(kTilePanel, columns_ - first);
  const nn::Bf16Tiles to = tiles_.all().At(first / nn::kAmxRows, 0);
  if (from_.layout == Layout::kAsIs) {
    nn::PackByDepth({from + first, columns_, depth_, count}, nn::Bf16Side::kRight, to);
  } else {
    nn::PackByLines({from + first * depth_, depth_, count, depth_}, nn::Bf16Side::kRight, to);
  }
}

void PackedMatrix::FillPanel(int64_t index) {
  if (precision_ == Precision::kBfloat16) return FillTiles(index);
  const float* from = from_.matrix.data_ptr<float>();
  float* to = panels_.data_ptr<float>() + index * depth_ * kTileColumns;
  const int64_t first = index * kTileColumns;
  const int64_t count = std::min(kTileColumns, columns_ - first);
  if (count < kTileColumns) std::fill_n(to, depth_ * kTileColumns, 0.0F);
  if (from_.layout == Layout::kAsIs) {
    for (int64_t k = 0; k < depth_; ++k) {
      CopyUpTo<kTileColumns>(from + k * columns_ + first, count, to + k * kTileColumns);
    }
    return;
  }
  constexpr int64_t kLine = 16;  // Numbers of a cache line: each line of the matrix is read once.
  for (int64_t k = 0; k < depth_; k += kLine) {
    const int64_t end = std::min(depth_, k + kLine);
    for (int64_t j = 0; j < count; ++j) {
      const float* row = from + (first + j) * depth_;
      for (int64_t i = k; i < end; ++i) to[i * kTileColumns + j] = row[i];
    }
  }
}

std::vector<PackedMatrix> Pack(const std::vector<RightFactor>& factors, Precision precision) {
  std::vector<PackedMatrix> matrices;
  std::vector<std::pair<size_t, int64_t>> panels;
  for (const RightFactor& factor : factors) {
    matrices.emplace_back(factor, precision);
    for (int64_t p = 0; p < matrices.back().panels(); ++p) {
      panels.emplace_back(matrices.size() - 1, p);
    }
  }
  if (!kOwnTiles && precision == Precision::kFloat32) return matrices;
  ForEachTask(static_cast<int64_t>(panels.size()), [&](int64_t task) {
    const auto [matrix, panel] = panels[static_cast<size_t>(task)];
    matrices[matrix].FillPanel(panel);
  });
  return matrices;
}

void Multiply(const LeftRows& left, const PackedMatrix& right, const ProductOut& out) {
  CHECK(left.rows <= kBlockRows);
  if (right.precision() == Precision::kBfloat16) {
    return LeftBlock(left, right.depth(), right.precision()).Multiply(right, out);
  }
  if (!kOwnTiles) {
    const bool as_is = right.from().layout == Layout::kAsIs;
    const Tensor matrix = as_is ? right.from().matrix : right.from().matrix.t();
    Tensor c = View(out.data, left.rows, right.columns(), out.row);
    const Tensor a = View(left.data, left.rows, right.depth(), left.row);
    out.add ? c.addmm_(a, matrix) : at::mm_out(c, a, matrix);
    return;
  }
  for (int64_t p = 0; p < right.panels(); p += kPanelsAtOnce) {
    MultiplyTiles(left, right, {p, std::min(right.panels(), p + kPanelsAtOnce)}, out);
  }
}

LeftBlock::LeftBlock(const LeftRows& rows, int64_t depth, Precision precision) : rows_(rows) {
  if (precision == Precision::kFloat32) return;
  tiles_ = nn::Bf16Factor(rows.rows, depth);
  nn::PackByLines({rows.data, rows.row, rows.rows, depth}, nn::Bf16Side::kLeft, tiles_.all());
}

void LeftBlock::Multiply(const PackedMatrix& right, const ProductOut& out) const {
  if (right.precision() == Precision::kFloat32) return learn::Multiply(rows_, right, out);
  Multiply(right, out, {0, right.panels()});
}

void LeftBlock::Multiply(const PackedMatrix& right, const ProductOut& out,
                         const Panels& panels) const {
  const int64_t column = panels.begin * kTilePanel;
  nn::MultiplyBf16({.left = tiles_.all(),
                    .right = right.tiles().At(column / nn::kAmxRows, 0),
                    .depth_tiles = tiles_.depth_tiles(),
                    .rows = rows_.rows,
                    .columns = std::min(right.columns(), panels.end * kTilePanel) - column,
                    .out = out.data + column,
                    .out_row = out.row,
                    .add = out.add});
}

int64_t WholeProduct::tasks() const {
  const int64_t panels = PanelsOfTask(*right);
  const int64_t groups = (right->panels() + panels - 1) / panels;
  return groups * ((x.size(0) + kBlockRows - 1) / kBlockRows);
}

// Blocks of rows one after another, so that threads share the panels in their common cache.
void WholeProduct::Run(int64_t task) const {
  const int64_t blocks = (x.size(0) + kBlockRows - 1) / kBlockRows;
  const int64_t row = task % blocks * kBlockRows;
  const int64_t panel = task / blocks * PanelsOfTask(*right);
  const LeftRows left = {x.data_ptr<float>() + row * x.size(1), x.size(1),
                         std::min(kBlockRows, x.size(0) - row)};
  const ProductOut to = {out.data_ptr<float>() + row * out.size(1), out.size(1), onto.defined()};
  const Panels panels = {panel, std::min(right->panels(), panel + PanelsOfTask(*right))};
  if (onto.defined()) CopyColumns(row, left.rows, panels);
  if (right->precision() == Precision::kBfloat16) {
    return LeftBlock(left, x.size(1), right->precision()).Multiply(*right, to, panels);
  }
  if (!kOwnTiles) return Multiply(left, *right, to);
  MultiplyTiles(left, *right, panels, to);
}

// A task's part of `onto` to `out`.
void WholeProduct::CopyColumns(int64_t row, int64_t rows, const Panels& panels) const {
  const int64_t width = out.size(1);
  const int64_t begin = panels.begin * right->PanelColumns();
  const int64_t end = std::min(width, panels.end * right->PanelColumns());
  for (int64_t i = row; i < row + rows; ++i) {
    std::copy_n(onto.data_ptr<float>() + i * width + begin, end - begin,
                out.data_ptr<float>() + i * width + begin);
  }
}

Scratch::Scratch(int64_t columns) : columns_(columns) {
  if (columns == 0) return;
  const int64_t bytes = kBlockRows * columns * int64_t{sizeof(float)};
  data_.reset(static_cast<float*>(
      std::aligned_alloc(nn::kCacheLine, static_cast<size_t>(RoundUp(bytes, nn::kCacheLine)))));
  CHECK(data_ != nullptr);
}

SumFactor::SumFactor(const Tensor& rows, Side side, Precision precision)
    : side_(side), precision_(precision), rows_(rows.size(0)), width_(rows.size(1)), floats_(rows) {
  CHECK(rows.is_contiguous());
  Allocate();
}

SumFactor::SumFactor(int64_t rows, int64_t width, Side side, Precision precision)
    : side_(side), precision_(precision), rows_(rows), width_(width) {
  if (precision == Precision::kFloat32 && !kOwnTiles) floats_ = torch::empty({rows, width});
  Allocate();
}

void SumFactor::Allocate() {
  if (precision_ == Precision::kBfloat16) {
    tiles_ = nn::Bf16Factor(width_, rows_);
  } else if (kOwnTiles) {
    padded_ = RoundUp(width_, PanelWidth());
    packed_ = torch::empty({rows_, padded_});
  }
}

int64_t SumFactor::PanelWidth() const { return side_ == Side::kA ? kRows : kTileColumns; }

void SumFactor::Keep(const LeftRows& block, int64_t begin) const {
  if (precision_ == Precision::kBfloat16) {
    nn::PackByDepth({block.data, block.row, block.rows, width_},
                    side_ == Side::kA ? nn::Bf16Side::kLeft : nn::Bf16Side::kRight,
                    tiles_.all().At(0, begin / nn::kAmxDepth));
  } else if (kOwnTiles) {
    float* to = packed_.data_ptr<float>() + begin * padded_;
    side_ == Side::kA ? KeepPanels<kRows>(block, width_, to)
                      : KeepPanels<kTileColumns>(block, width_, to);
  } else {
    std::copy_n(block.data, block.rows * width_, floats_.data_ptr<float>() + begin * width_);
  }
}

void SumFactor::Keep(int64_t begin, int64_t end) const {
  if (precision_ == Precision::kFloat32 && !kOwnTiles) return;  // They are in floats().
  Keep({floats_.data_ptr<float>() + begin * width_, width_, end - begin}, begin);
}

SumBlock::SumBlock(const SumFactor& factor, int64_t begin, int64_t end)
    : factor_(factor), begin_(begin), rows_(end - begin), own_(factor.width()) {}

void RowSums::Add(const Tensor& out, const SumFactor& a, const SumFactor& b) {
  CHECK(out.is_contiguous());
  const PieceSize piece = PieceOf(out, a.precision());
  for (int64_t row = 0; row < out.size(0); row += piece.rows) {
    for (int64_t column = 0; column < out.size(1); column += piece.columns) {
      tasks_.push_back({.out = out,
                        .a = &a,
                        .b = &b,
                        .row = row,
                        .rows = std::min(piece.rows, out.size(0) - row),
                        .column = column,
                        .columns = std::min(piece.columns, out.size(1) - column)});
    }
  }
}

void RowSums::MultiplyTiles(const Task& task) {
  const nn::Bf16Tiles a = task.a->tiles().At(task.row / nn::kAmxRows, 0);
  const nn::Bf16Tiles b = task.b->tiles().At(task.column / nn::kAmxRows, 0);
  float* out = task.out.data_ptr<float>() + task.row * task.out.size(1) + task.column;
  // At least once: no rows sum to 0.
  for (int64_t k = 0; k == 0 || k < a.depth_tiles; k += kTileSumDepth) {
    nn::MultiplyBf16({.left = a.At(0, k),
                      .right = b.At(0, k),
                      .depth_tiles = std::min(kTileSumDepth, a.depth_tiles - k),
                      .rows = task.rows,
                      .columns = task.columns,
                      .out = out,
                      .out_row = task.out.size(1),
                      .add = k > 0});
  }
}

void RowSums::Run(const Task& task) {
  if (task.a->precision() == Precision::kBfloat16) return MultiplyTiles(task);
  if (kOwnTiles) return MultiplyPanels(task);
  auto out = task.out.narrow(0, task.row, task.rows).narrow(1, task.column, task.columns);
  out.copy_(task.a->floats()
                .narrow(1, task.row, task.rows)
                .t()
                .mm(task.b->floats().narrow(1, task.column, task.columns)));
}

// A block of rows at a time: its panels come from memory once for all tiles of the piece.
void RowSums::MultiplyPanels(const Task& task) {
  const int64_t row_tiles = RoundUp(task.rows, kRows) / kRows;
  const int64_t panels = RoundUp(task.columns, kTileColumns) / kTileColumns;
  alignas(nn::kCacheLine) float c[kSumRows * kSumColumns];  // (panels, row_tiles) tiles.
  const int64_t depth = task.a->rows();
  if (depth == 0) std::fill_n(c, row_tiles * kRows * panels * kTileColumns, 0.0F);
  for (int64_t k = 0; k < depth; k += kBlockRows) {
    const int64_t slice = std::min(kBlockRows, depth - k);
    const float* a = task.a->Block(k) + task.row * slice;
    const float* b = task.b->Block(k) + task.column * slice;
    for (int64_t p = 0; p < panels; ++p) {
      for (int64_t tile = 0; tile < row_tiles; ++tile) {
        GemmRows<kRows>({.a = {.data = a + tile * slice * kRows, .row = 1, .column = kRows},
                         .b = b + p * slice * kTileColumns,
                         .b_row = kTileColumns,
                         .c = c + (p * row_tiles + tile) * kRows * kTileColumns,
                         .c_row = kTileColumns,
                         .depth = slice,
                         .add = k > 0});
      }
    }
  }
  for (int64_t row = 0; row < task.rows; ++row) {
    float* to = task.out.data_ptr<float>() + (task.row + row) * task.out.size(1) + task.column;
    for (int64_t p = 0; p < panels; ++p) {
      CopyUpTo<kTileColumns>(c + (p * row_tiles * kRows + row) * kTileColumns,
                             task.columns - p * kTileColumns, to + p * kTileColumns);
    }
  }
}

void RowSums::Compute() const {
  ForEachTask(static_cast<int64_t>(tasks_.size()),
              [this](int64_t task) { Run(tasks_[static_cast<size_t>(task)]); });
}

}  // namespace kibitz::learn
