// Numbers as files hold them: least significant byte first.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

namespace kibitz::io {

static_assert(std::endian::native == std::endian::little, "files are read as they are");

// The caller has checked that the bytes are there.
template <std::integral T>
T LoadLittle(std::span<const std::byte> bytes, size_t offset = 0) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <std::integral T>
void AppendLittle(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace kibitz::io
