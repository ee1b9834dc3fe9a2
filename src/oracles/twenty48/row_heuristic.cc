#include "oracles/twenty48/row_heuristic.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "games/twenty48/symmetry.h"

namespace kibitz::oracles {
namespace {

using twenty48::Board;

constexpr float kAlive = 200'000;  // Keeps every board better than a lost game.
constexpr float kPerEmpty = 270;
constexpr float kPerPair = 700;
constexpr float kDisorder = 47;  // Times rank^4.
constexpr float kTiles = 11;     // Times rank^3.5: many medium tiles are worse than one large tile.

float RowValue(const std::array<int, 4>& ranks) {
  float value = kAlive;
  float rising = 0;
  float falling = 0;
  for (size_t i = 0; i < 4; ++i) {
    const auto rank = static_cast<float>(ranks[i]);
    if (ranks[i] == 0) value += kPerEmpty;
    value -= kTiles * std::pow(rank, 3.5F);
    if (i == 0) continue;
    const auto before = static_cast<float>(ranks[i - 1]);
    if (ranks[i] != 0 && ranks[i] == ranks[i - 1]) value += kPerPair;
    const float step = std::pow(rank, 4.0F) - std::pow(before, 4.0F);
    (step > 0 ? rising : falling) += std::abs(step);
  }
  return value - kDisorder * std::min(rising, falling);
}

}  // namespace

RowHeuristic::RowHeuristic() : rows_(65536) {
  for (size_t row = 0; row < rows_.size(); ++row) {
    rows_[row] = RowValue({static_cast<int>(row >> 12), static_cast<int>(row >> 8 & 15),
                           static_cast<int>(row >> 4 & 15), static_cast<int>(row & 15)});
  }
}

void RowHeuristic::Evaluate(std::span<const Board> afterstates, std::span<float> values) const {
  const auto sum = [this](uint64_t packed) {
    return rows_[packed >> 48] + rows_[packed >> 32 & 0xFFFF] + rows_[packed >> 16 & 0xFFFF] +
           rows_[packed & 0xFFFF];
  };
  for (size_t i = 0; i < afterstates.size(); ++i) {
    const uint64_t packed = afterstates[i].packed();
    values[i] = sum(packed) + sum(twenty48::Transpose(packed));
  }
}

}  // namespace kibitz::oracles
