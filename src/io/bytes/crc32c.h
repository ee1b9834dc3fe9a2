// CRC-32C (Castagnoli): the checksum of TensorBoard's records and of data sets.
#pragma once

#include <cstdint>
#include <string_view>

namespace kibitz::io {

// Uses the processor's instruction where the build has it. `before` is the checksum of the bytes
// before these, 0 at the start.
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);

// The checksum of two pieces in a row from that of each; `second_bytes` is the length of the
// second.
uint32_t Crc32cJoined(uint32_t first, uint32_t second, uint64_t second_bytes);

// The plain version, byte by byte.
uint32_t Crc32cReference(std::string_view bytes);

// The masked form in TFRecord files: rotated and offset, since a CRC of data that contains CRCs is
// weak.
constexpr uint32_t MaskedCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

}  // namespace kibitz::io
