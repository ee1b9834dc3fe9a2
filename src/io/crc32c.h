// CRC-32C (Castagnoli): the checksum of TensorBoard's records.
#pragma once

#include <cstdint>
#include <string_view>

namespace kibitz::io {

// With the processor's instruction where the build has it.
uint32_t Crc32c(std::string_view bytes);

// The plain version, byte by byte.
uint32_t Crc32cReference(std::string_view bytes);

// As TFRecord files store it: rotated and offset, so that a checksum of data with checksums in it
// stays good.
constexpr uint32_t MaskedCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

}  // namespace kibitz::io
