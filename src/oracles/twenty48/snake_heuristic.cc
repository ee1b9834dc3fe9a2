#include "oracles/twenty48/snake_heuristic.h"

#include <algorithm>
#include <cmath>

#include "games/twenty48/symmetry.h"

namespace kibitz::oracles {

using twenty48::Board;

SnakeHeuristic::SnakeHeuristic() {
  constexpr float kFall = 0.5F;
  for (size_t row = 0; row < 4; ++row) {
    rows_[row].resize(65536);
    for (size_t tiles = 0; tiles < 65536; ++tiles) {
      float value = 0;
      for (size_t column = 0; column < 4; ++column) {
        const auto rank = static_cast<int>(tiles >> (12 - 4 * column) & 15);
        // Every other row runs backward.
        const size_t place = 4 * row + (row % 2 == 0 ? column : 3 - column);
        value +=
            static_cast<float>(twenty48::TileOf(rank)) * std::pow(kFall, static_cast<float>(place));
      }
      rows_[row][tiles] = value;
    }
  }
}

void SnakeHeuristic::Evaluate(std::span<const Board> afterstates, std::span<float> values) const {
  for (size_t i = 0; i < afterstates.size(); ++i) {
    float best = 0;
    for (uint64_t view : twenty48::Views(afterstates[i].packed())) {
      best = std::max(best, rows_[0][view >> 48] + rows_[1][view >> 32 & 0xFFFF] +
                                rows_[2][view >> 16 & 0xFFFF] + rows_[3][view & 0xFFFF]);
    }
    values[i] = best;
  }
}

}  // namespace kibitz::oracles
