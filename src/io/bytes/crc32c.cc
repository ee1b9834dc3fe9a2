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

// The product of two polynomials modulo ours. The highest bit is the power 0.
uint32_t Product(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

}  // namespace

// Bytes behind the first piece multiply its checksum by x to the power of their number of bits.
uint32_t Crc32cJoined(uint32_t first, uint32_t second, uint64_t second_bytes) {
  uint32_t power = uint32_t{1} << 23;  // x^8, squared for each bit of the length.
  for (; second_bytes > 0; second_bytes >>= 1) {
    if ((second_bytes & 1) != 0) first = Product(power, first);
    power = Product(power, power);
  }
  return first ^ second;
}

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
