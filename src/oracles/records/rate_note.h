// Shows positions a second in a progress bar that counts something else.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/progress.h"

namespace kibitz::oracles {

class RateNote {
 public:
  explicit RateNote(Progress& progress) : progress_(progress) {}

  // Updates the bar, given all positions since the start.
  void Show(int64_t positions);

 private:
  Progress& progress_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace kibitz::oracles
