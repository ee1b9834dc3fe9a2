#include "io/bytes/crc32c.h"

#include <array>
#include <cstring>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace kibitz::io {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Bits reversed.

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t Continue(std::string_view bytes, uint32_t before) {
  uint32_t crc = ~before;
  for (char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

}  // namespace

uint32_t Crc32cReference(std::string_view bytes) { return Continue(bytes, 0); }

#ifdef __SSE4_2__
uint32_t Crc32c(std::string_view bytes, uint32_t before) {
  uint64_t crc = ~before;
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    crc = _mm_crc32_u64(crc, word);
    bytes.remove_prefix(8);
  }
  auto rest = static_cast<uint32_t>(crc);
  for (char c : bytes) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(c));
  return ~rest;
}
#else
uint32_t Crc32c(std::string_view bytes, uint32_t before) { return Continue(bytes, before); }
#endif

}  // namespace kibitz::io
