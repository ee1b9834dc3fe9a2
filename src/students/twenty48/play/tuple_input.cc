#include "students/twenty48/play/tuple_input.h"

#include <algorithm>

#include "students/twenty48/data/tuples.h"

namespace kibitz::twenty48 {
namespace {

// (D, P E) as (P, E, D).
std::vector<float> Transposed(const std::vector<float>& matrix, int64_t rows) {
  const int64_t columns = std::ssize(matrix) / rows;
  std::vector<float> result(matrix.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      result[static_cast<size_t>(column * rows + row)] =
          matrix[static_cast<size_t>(row * columns + column)];
    }
  }
  return result;
}

}  // namespace

TupleInput::TupleInput(const io::StateDict& weights, const NetConfig& config)
    : width_(config.hidden_size),
      tuple_width_(config.tuple_width),
      ranks_(config.input_vocab_size) {
  const int64_t d = width_;
  const int64_t e = tuple_width_;
  tuples_ = weights.Floats("tuples.weight", {kTuples * kTupleEntries, e});
  tiles_ = weights.Floats("tiles.weight", {kCells * ranks_, d});
  to_board_ = Transposed(weights.Floats("board_proj.weight", {d, kTuples * e}), d);
  if (!HasAttention(weights)) return;
  rows_ = kTupleRows;
  to_rows_ = weights.Floats("tuple_proj", {kTuples, e, d});
  positions_ = weights.Floats("positions.weight", {kTupleRows - 1, d});
}

size_t TupleInput::memory_bytes() const {
  return sizeof(float) *
         (tuples_.size() + tiles_.size() + to_board_.size() + to_rows_.size() + positions_.size());
}

void TupleInput::AddProjected(const float* vector, const std::vector<float>& projection, int tuple,
                              float* row) const {
  const float* from = projection.data() + tuple * tuple_width_ * width_;
  for (int64_t i = 0; i < tuple_width_; ++i) {
    for (int64_t j = 0; j < width_; ++j) row[j] += vector[i] * from[i * width_ + j];
  }
}

void TupleInput::Fill(const Board& board, float* x) const {
  std::fill_n(x, width_, 0.0F);
  for (int cell = 0; cell < kCells; ++cell) {
    const int64_t rank = std::min<int64_t>(board.Rank(cell), ranks_ - 1);
    const float* tile = tiles_.data() + (cell * ranks_ + rank) * width_;
    for (int64_t j = 0; j < width_; ++j) x[j] += tile[j];
  }
  std::copy(positions_.begin(), positions_.end(), x + width_);
  for (int tuple = 0; tuple < kTuples; ++tuple) {
    const float* vector = tuples_.data() + TupleEntry(board, tuple) * tuple_width_;
    AddProjected(vector, to_board_, tuple, x);
    if (rows_ > 1) AddProjected(vector, to_rows_, tuple, x + RowOfTuple(tuple) * width_);
  }
}

}  // namespace kibitz::twenty48
