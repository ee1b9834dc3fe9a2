#include "nn/kernels/amx.h"

#include <array>
#include <cstdlib>
#include <string_view>

#if defined(KIBITZ_HAS_AMX_INTRINSICS)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace kibitz::nn {

#if defined(KIBITZ_HAS_AMX_INTRINSICS)

namespace {

std::string_view Wish() {
  const char* wish = std::getenv("KIBITZ_BF16");
  return wish == nullptr ? "" : wish;
}

// Registers of a leaf of CPUID that has sub-leaves; zeros where it has none.
struct Cpuid {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;

  Cpuid(unsigned leaf, unsigned sub) {
    if (__get_cpuid_count(leaf, sub, &eax, &ebx, &ecx, &edx) == 0) *this = Cpuid();
  }

 private:
  Cpuid() = default;
};

bool ProcessorHasAvx512Bf16() {
  constexpr unsigned kAvx512 = (1U << 16) | (1U << 17) | (1U << 30) | (1U << 31);  // F, DQ, BW, VL.
  constexpr unsigned kAvx512Bf16 = 1U << 5;
  // __builtin_cpu_supports also asks whether the system saves the registers.
  return __builtin_cpu_supports("avx512f") != 0 && (Cpuid(7, 0).ebx & kAvx512) == kAvx512 &&
         (Cpuid(7, 1).eax & kAvx512Bf16) != 0;
}

bool ProcessorHasAmx() {
  constexpr unsigned kAmxBf16 = 1U << 22;
  constexpr unsigned kAmxTile = 1U << 24;
  const unsigned edx = Cpuid(7, 0).edx;
  return (edx & kAmxBf16) != 0 && (edx & kAmxTile) != 0;
}

// Linux gives the tiles' state only to processes that ask for it.
bool SystemAllowsAmx() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool FindAmx() {
  return HasAvx512Bf16() && Wish() != "avx512" && ProcessorHasAmx() && SystemAllowsAmx();
}

// As LDTILECFG reads it.
struct TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  std::array<uint8_t, 14> reserved{};
  std::array<uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

KIBITZ_AMX void LoadTileConfig(const TileConfig& config) { _tile_loadconfig(&config); }
KIBITZ_AMX void ReleaseTiles() { _tile_release(); }

thread_local int tiles_alive = 0;  // AmxTiles of this thread.

}  // namespace

bool HasAvx512Bf16() {
  static const bool has = Wish() != "off" && ProcessorHasAvx512Bf16();
  return has;
}

bool HasAmx() {
  static const bool has = FindAmx();
  return has;
}

AmxTiles::AmxTiles() {
  static constexpr TileConfig kConfig;
  if (tiles_alive++ == 0 && HasAmx()) LoadTileConfig(kConfig);
}
AmxTiles::~AmxTiles() {
  if (--tiles_alive == 0 && HasAmx()) ReleaseTiles();
}

#else

bool HasAvx512Bf16() { return false; }
bool HasAmx() { return false; }
AmxTiles::AmxTiles() = default;
AmxTiles::~AmxTiles() = default;

#endif

}  // namespace kibitz::nn
