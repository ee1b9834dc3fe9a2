#include "base/processor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "base/shipped.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kibitz {
namespace {

#if defined(__x86_64__)

struct Registers {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

// Zeros where the processor does not have this leaf.
Registers Leaf(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

constexpr uint32_t Bits(std::initializer_list<int> bits) {
  uint32_t mask = 0;
  for (int bit : bits) mask |= uint32_t{1} << bit;
  return mask;
}
constexpr bool Has(uint32_t value, uint32_t mask) { return (value & mask) == mask; }

// Registers that the system saves when it switches threads.
uint32_t SavedRegisters() {
  if (!Has(Leaf(1).ecx, Bits({27}))) return 0;  // OSXSAVE
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool RunsV3() {
  return Has(SavedRegisters(), Bits({1, 2})) &&       // SSE and AVX.
         Has(Leaf(1).ecx, Bits({12, 22, 28, 29})) &&  // FMA, MOVBE, AVX, F16C.
         Has(Leaf(7).ebx, Bits({3, 5, 8})) &&         // BMI, AVX2, BMI2.
         Has(Leaf(0x80000001).ecx, Bits({5}));        // LZCNT.
}
bool RunsV4() {
  return RunsV3() && Has(SavedRegisters(), Bits({5, 6, 7})) &&
         Has(Leaf(7).ebx, Bits({16, 17, 28, 30, 31}));  // AVX512F, DQ, CD, BW, VL.
}

#endif

std::string_view NameOf(CpuLevel level) {
  return std::ranges::find(kCpuLevels, level, [](const auto& pair) { return pair.second; })->first;
}

}  // namespace

bool Runs(CpuLevel level) {
#if defined(__x86_64__)
  switch (level) {
    case CpuLevel::kV2:
      return true;
    case CpuLevel::kV3:
      return RunsV3();
    case CpuLevel::kV3Vnni:
      return RunsV3() && Has(Leaf(7, 1).eax, Bits({4}));
    case CpuLevel::kV4:
      return RunsV4();
    case CpuLevel::kV4Vnni:
      return RunsV4() && Has(Leaf(7).ecx, Bits({11}));
  }
#endif
  return level == CpuLevel::kV2;
}

CpuLevel ChosenLevel(std::string_view asked) {
  if (asked.empty()) {
    // Not std::views::reverse, which clang 14 cannot compile: the fuzz targets are built with it.
    for (auto each = std::rbegin(kCpuLevels); each != std::rend(kCpuLevels); ++each) {
      if (Runs(each->second)) return each->second;
    }
    return CpuLevel::kV2;
  }
  const auto found =
      std::ranges::find(kCpuLevels, asked, [](const auto& pair) { return pair.first; });
  if (found == std::end(kCpuLevels)) {
    throw Error::Usage("KIBITZ_CPU is '{}'; expected v2, v3, v3-vnni, v4 or v4-vnni", asked);
  }
  if (!Runs(found->second)) {
    throw Error("KIBITZ_CPU is {}: this processor does not run its code; take a lower level",
                asked);
  }
  return found->second;
}

void RunForThisProcessor(const std::string& program, char** argv) {
  const char* asked = std::getenv("KIBITZ_CPU");
  const CpuLevel best = ChosenLevel(asked == nullptr ? "" : asked);
  const std::filesystem::path folder = ProgramFolder();
  for (auto each = std::rbegin(kCpuLevels); each != std::rend(kCpuLevels); ++each) {
    const auto& [name, level] = *each;
    if (level == CpuLevel::kV2 || level > best || !Runs(level)) continue;
    for (const auto& above : {folder, folder.parent_path() / "lib" / "kibitz"}) {
      const std::string path = (above / "cpu" / name / program).string();
      execv(path.c_str(), argv);  // Comes back where there is none.
    }
    if (asked != nullptr) {
      throw Error("KIBITZ_CPU is {}: found no cpu/{}/{} in {} or ../lib/kibitz", asked,
                  NameOf(level), program, folder.string());
    }
  }
}

}  // namespace kibitz
