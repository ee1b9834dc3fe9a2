// The number format of matrix products in training on the CPU. Autocast sets it for the thread that
// runs forward; backward runs outside of it, so functions keep what they read in forward.
#pragma once

#include <cstdint>

namespace kibitz::learn {

enum class Precision : uint8_t {
  kFloat32,
  kBfloat16,  // With sums in float32; on processors with AMX (nn/kernels/amx.h).
};

// Of the calling thread.
Precision CurrentPrecision();
void SetCurrentPrecision(Precision precision);

}  // namespace kibitz::learn
