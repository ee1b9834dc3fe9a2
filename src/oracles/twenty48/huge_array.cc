#include "oracles/twenty48/huge_array.h"

#include <sys/mman.h>

#include "base/error.h"

namespace kibitz::oracles::internal {

std::shared_ptr<void> AllocateHuge(size_t bytes) {
  constexpr size_t kPage = size_t{2} << 20;
  const size_t size = (bytes + kPage - 1) / kPage * kPage;
  if (size == 0) return nullptr;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error::System(fmt::format("no memory for a table of {} MB", size >> 20));
  }
  madvise(memory, size, MADV_HUGEPAGE);  // Refused where there are none; nothing depends on it.
  return {memory, [size](void* address) { munmap(address, size); }};
}

}  // namespace kibitz::oracles::internal
