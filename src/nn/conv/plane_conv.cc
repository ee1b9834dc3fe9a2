#include "nn/conv/plane_conv.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "nn/kernels/lanes.h"

namespace kibitz::nn {
namespace {

constexpr int64_t kSide = 8;
constexpr int64_t kBordered = kSide + 2;
constexpr int64_t kSteps = 9;
constexpr uint64_t kAll = ~uint64_t{0};

// First, inner or last row (or column).
constexpr int64_t KindOf(int64_t line) { return line == 0 ? 0 : line < kSide - 1 ? 1 : 2; }
constexpr int64_t KindOfSquare(int64_t square) {
  return 3 * KindOf(square / kSide) + KindOf(square % kSide);
}

// The sum of a window's weights that lie on the board, around a square of some kind.
float FullWindow(const float* window, int64_t kind) {
  double sum = 0;
  for (int64_t i = 0; i < kSteps; ++i) {
    const bool beyond = (kind / 3 == 0 && i / 3 == 0) || (kind / 3 == 2 && i / 3 == 2) ||
                        (kind % 3 == 0 && i % 3 == 0) || (kind % 3 == 2 && i % 3 == 2);
    if (!beyond) sum += static_cast<double>(window[i]);
  }
  return static_cast<float>(sum);
}

// Channels that are summed in registers.
template <int64_t kCount>
struct Strip {
  Lanes own{};
  Strip<kCount - 1> next;

  void Add(const float* from, Lanes factor) {
    own += Load(from) * factor;
    next.Add(from + kLanes, factor);
  }
  void AddTo(float* to) const {
    Store(to, Load(to) + own);
    next.AddTo(to + kLanes);
  }
};
template <>
struct Strip<0> {
  void Add(const float*, Lanes) {}
  void AddTo(float*) const {}
};

using Pieces = std::span<const PlaneConv::Room::Piece>;

template <int64_t kCount>
void AddStrip(Pieces pieces, int64_t place, float* to) {
  Strip<kCount> strip;
  for (const auto& piece : pieces) strip.Add(piece.weights + place, Spread(piece.value));
  strip.AddTo(to);
}

// Adds the pieces of one square to one of its neighbours.
void AddStep(Pieces pieces, int64_t place, int64_t row, float* to) {
  int64_t c = 0;
  for (; c + 8 * kLanes <= row; c += 8 * kLanes) AddStrip<8>(pieces, place + c, to + c);
  for (; c + 2 * kLanes <= row; c += 2 * kLanes) AddStrip<2>(pieces, place + c, to + c);
  if (c < row) AddStrip<1>(pieces, place + c, to + c);
}

// A plane that is more than half full is a full one minus the missing squares: at most 32 pieces.
bool NearlyFull(uint64_t squares) { return std::popcount(squares) > kSquares / 2; }

}  // namespace

PlaneConv::PlaneConv(const ConvWeights& weights, FloatPool& pool)
    : inputs_(weights.inputs),
      outputs_(weights.outputs),
      row_(PaddedChannels(weights.outputs)),
      bias_(row_) {
  CHECK(weights.size == 3);
  CHECK(static_cast<int64_t>(weights.weight.size()) == inputs_ * outputs_ * kSteps);
  CHECK(static_cast<int64_t>(weights.bias.size()) == outputs_);
  std::copy(weights.bias.begin(), weights.bias.end(), bias_.data());
  float* steps = pool.Take(inputs_ * kSteps * row_);
  float* full = pool.Take(inputs_ * kSteps * row_);
  for (int64_t n = 0; n < outputs_; ++n) {
    for (int64_t k = 0; k < inputs_; ++k) {
      const float* window = weights.weight.data() + (n * inputs_ + k) * kSteps;
      for (int64_t i = 0; i < kSteps; ++i) {
        const int64_t place = (k * kSteps + i) * row_ + n;
        // The neighbour one step down sees this square through its window's upper row.
        steps[place] = window[kSteps - 1 - i];
        full[place] = FullWindow(window, i);
      }
    }
  }
  weights_ = steps;
  full_ = full;
}

size_t PlaneConv::memory_bytes() const {
  return static_cast<size_t>((2 * inputs_ * kSteps + 1) * row_) * sizeof(float);
}

void PlaneConv::Run(const PlaneInput& x, float* y, std::optional<Activation> activation,
                    Room& room) const {
  CHECK(static_cast<int64_t>(x.squares.size()) == inputs_ && x.values.size() == x.squares.size());
  room.sums.Reserve(kBordered * kBordered * row_);
  room.full.Reserve(kSteps * row_);
  AddFull(x, room);
  AddPieces(x, room);
  for (int64_t square = 0; square < kSquares; ++square) {
    const int64_t bordered = (square / kSide + 1) * kBordered + square % kSide + 1;
    const float* sums = room.sums.data() + bordered * row_;
    const float* full = room.full.data() + KindOfSquare(square) * row_;
    for (int64_t c = 0; c < row_; c += kLanes) {
      Store(y + square * row_ + c, Apply(activation, Load(sums + c) + Load(full + c)));
    }
  }
}

// The bias and the result of full planes.
void PlaneConv::AddFull(const PlaneInput& x, Room& room) const {
  float* full = room.full.data();
  for (int64_t kind = 0; kind < kSteps; ++kind) {
    std::copy_n(bias_.data(), row_, full + kind * row_);
  }
  for (size_t k = 0; k < x.squares.size(); ++k) {
    if (x.values[k] == 0 || !NearlyFull(x.squares[k])) continue;
    const float* from = full_ + static_cast<int64_t>(k) * kSteps * row_;
    const Lanes value = Spread(x.values[k]);
    for (int64_t i = 0; i < kSteps * row_; i += kLanes) {
      Store(full + i, Load(full + i) + Load(from + i) * value);
    }
  }
}

// Sorts the pieces by square, then adds each square's to the nine squares around it.
void PlaneConv::AddPieces(const PlaneInput& x, Room& room) const {
  std::array<size_t, kSquares + 1> ends{};  // Of each square's pieces; at first their numbers.
  const auto for_each = [&](const auto& visit) {
    for (size_t k = 0; k < x.squares.size(); ++k) {
      if (x.values[k] == 0) continue;
      const bool full = NearlyFull(x.squares[k]);
      const float value = full ? -x.values[k] : x.values[k];
      for (uint64_t left = full ? kAll ^ x.squares[k] : x.squares[k]; left != 0; left &= left - 1) {
        visit(static_cast<size_t>(std::countr_zero(left)), k, value);
      }
    }
  };
  for_each([&](size_t square, size_t, float) { ++ends[square + 1]; });
  for (size_t square = 0; square < kSquares; ++square) ends[square + 1] += ends[square];
  room.pieces.resize(ends[kSquares]);
  for_each([&](size_t square, size_t k, float value) {
    room.pieces[ends[square]++] = {weights_ + static_cast<int64_t>(k) * kSteps * row_, value};
  });
  std::fill_n(room.sums.data(), kBordered * kBordered * row_, 0.0F);
  size_t first = 0;
  for (int64_t square = 0; square < kSquares; ++square) {
    const size_t end = ends[static_cast<size_t>(square)];
    const Pieces pieces(room.pieces.data() + first, end - first);
    first = end;
    if (pieces.empty()) continue;
    for (int64_t step = 0; step < kSteps; ++step) {
      const int64_t bordered = (square / kSide + step / 3) * kBordered + square % kSide + step % 3;
      AddStep(pieces, step * row_, row_, room.sums.data() + bordered * row_);
    }
  }
}

}  // namespace kibitz::nn
