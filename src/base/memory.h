// Memory: available to this process, and its peak use.
#pragma once

#include <cstdint>

namespace kibitz {

// Bytes that the machine has free or our control group still allows, whichever is less; 0 when the
// system does not tell.
uint64_t AvailableMemory();

// The peak resident memory of this process so far, in bytes.
uint64_t PeakMemory();

}  // namespace kibitz
