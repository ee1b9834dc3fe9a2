// The numbers of the zip format that its reader and writer share.
#pragma once

#include <cstdint>

namespace kibitz::io::zip {

inline constexpr uint32_t kLocalMagic = 0x04034b50;
inline constexpr uint32_t kCentralMagic = 0x02014b50;
inline constexpr uint32_t kEndMagic = 0x06054b50;
inline constexpr uint32_t kZip64EndMagic = 0x06064b50;
inline constexpr uint32_t kZip64LocatorMagic = 0x07064b50;
inline constexpr uint32_t kSaturated = 0xffffffff;  // "See the zip64 field."

}  // namespace kibitz::io::zip
