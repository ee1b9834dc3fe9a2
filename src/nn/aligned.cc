#include "nn/aligned.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace kibitz::nn {

void PreferLargePages([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes) {
#if defined(__linux__)
  constexpr uintptr_t kLargePage = 2 << 20;
  const auto beyond = reinterpret_cast<uintptr_t>(block) % kLargePage;
  const size_t before = beyond == 0 ? 0 : kLargePage - beyond;
  if (bytes < before + kLargePage) return;
  const size_t whole = (bytes - before) / kLargePage * kLargePage;
  // A wish: where it is not heard, nothing is lost but speed.
  madvise(static_cast<char*>(block) + before, whole, MADV_HUGEPAGE);
#endif
}

}  // namespace kibitz::nn
