// Which keys of a stream some rows attend to.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kibitz::nn {

// A gap in the keys is made of so many at a time.
inline constexpr int64_t kKeyPanel = 32;

// A stream's first positions, without a gap that no row sees. Key k is position k, or `gap`
// positions further from `gap_begin` on.
struct KeyRange {
  int64_t count = 0;
  int64_t gap_begin = 0;  // Both are multiples of kKeyPanel.
  int64_t gap = 0;

  int64_t PositionOf(int64_t key) const { return key < gap_begin ? key : key + gap; }
  // How many keys from this one on lie side by side, at most `most`.
  int64_t Together(int64_t key, int64_t most) const {
    return std::min(most, (key < gap_begin ? std::min(gap_begin, count) : count) - key);
  }
};

// What one row sees of them: the first `seen` but those hidden.
struct RowKeys {
  int64_t seen = 0;
  int64_t hidden_begin = 0;
  int64_t hidden_end = 0;
};

}  // namespace kibitz::nn
