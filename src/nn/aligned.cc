#include "nn/aligned.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace kibitz::nn {

void PreferLargePages([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes) {
#if defined(__linux__)
  constexpr uintptr_t kLargePage = 2 << 20;
  const auto begin = (reinterpret_cast<uintptr_t>(block) + kLargePage - 1) / kLargePage * kLargePage;
  const auto end = (reinterpret_cast<uintptr_t>(block) + bytes) / kLargePage * kLargePage;
  // A wish: where it is not heard, nothing is lost but speed.
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace kibitz::nn
