#include "nn/kernels/aligned.h"

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
  // Only advice: a kernel that ignores it costs speed, nothing else.
  madvise(static_cast<char*>(block) + before, whole, MADV_HUGEPAGE);
#endif
}

float* FloatPool::Take(int64_t size) {
  constexpr int64_t kBlock = 4 << 20;  // 16 MB; unused pages take no memory.
  constexpr int64_t kLine = kCacheLine / sizeof(float);
  const int64_t whole = RoundUp(size, kLine);
  if (blocks_.empty() || used_ + whole > blocks_.back().size()) {
    blocks_.push_back(AlignedArray<float>::InLargePages(whole > kBlock ? whole : kBlock));
    used_ = 0;
  }
  used_ += whole;
  return blocks_.back().data() + used_ - whole;
}

}  // namespace kibitz::nn
