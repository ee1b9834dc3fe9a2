// How much memory this process could still take.
#pragma once

#include <cstdint>

namespace kibitz {

// What the machine has free, or the limit of our control group leaves, whichever is less. In bytes;
// 0 when the system does not tell.
uint64_t AvailableMemory();

// The most memory this process has held so far, in bytes.
uint64_t PeakMemory();

}  // namespace kibitz
