// The table index of a tuple: the nibbles of a packed board under a mask, packed together.
#pragma once

#include <cstdint>

#ifdef __BMI2__
#include <immintrin.h>
#endif

namespace kibitz::oracles {

// Bit by bit: for machines without BMI2, and to test the other.
constexpr uint64_t GatherBitsPlain(uint64_t value, uint64_t mask) {
  uint64_t gathered = 0;
  for (uint64_t bit = 1; mask != 0; mask &= mask - 1, bit <<= 1) {
    if ((value & mask & (~mask + 1)) != 0) gathered |= bit;
  }
  return gathered;
}

inline uint64_t GatherBits(uint64_t value, uint64_t mask) {
#ifdef __BMI2__
  return _pext_u64(value, mask);
#else
  return GatherBitsPlain(value, mask);
#endif
}

}  // namespace kibitz::oracles
