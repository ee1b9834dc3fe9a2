#include "oracles/records/rate_note.h"

#include <algorithm>

#include "base/text.h"

namespace kibitz::oracles {

void RateNote::Show(int64_t positions) {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
  const double rate = static_cast<double>(positions) / std::max(seconds.count(), 1e-3);
  progress_.SetNote(HumanCount(rate) + " positions/s");
}

}  // namespace kibitz::oracles
