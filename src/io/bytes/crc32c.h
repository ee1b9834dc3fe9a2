// CRC-32C (Castagnoli): the checksum of TensorBoard's records and of data sets.
#pragma once

#include <cstdint>
#include <string_view>

namespace kibitz::io {

// With the processor's instruction where the build has it. `before` is the checksum of the bytes
// before these, to go on with; 0 of none.
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);

// The plain version, byte by byte.
uint32_t Crc32cReference(std::string_view bytes);

// As TFRecord files store it: rotated and offset, so that a checksum of data with checksums in it
// stays good.
constexpr uint32_t MaskedCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

}  // namespace kibitz::io
