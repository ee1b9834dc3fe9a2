// Limits on what input may make us allocate or read, so that a small or damaged file cannot take
// the machine. Every command raises them with --allow NAME=SIZE; docs/FORMATS.md lists them.
//
//   if (bytes > Limits().line) throw Error("{}: a line of {} bytes; {}", path, bytes,
//   AllowHint("line", bytes));
//
// Like the log level they are one process-wide state: main() sets them before anything is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kibitz {

struct InputLimits {
  uint64_t line = uint64_t{2} << 20;      // Bytes of a line of JSON.
  uint64_t window = uint64_t{32} << 20;   // Bytes of a zstd frame's window.
  uint64_t network = uint64_t{64} << 20;  // Bytes of an unpacked lc0 network beyond twice its file.
  uint64_t values = uint64_t{1} << 19;    // Values in the pickle of a .pt file.
  uint64_t columns = 4096;                // Columns of a table made from JSON lines; keys shown.
  uint64_t game = uint64_t{64} << 20;     // Bytes of one game of a PGN file.
};

const InputLimits& Limits();
// "line=8M": sets one of them. Throws Error::Usage.
void AllowInput(std::string_view text);
// For messages: "give --allow line=8M if it is right"; the size is rounded up.
std::string AllowHint(std::string_view name, uint64_t needed);

}  // namespace kibitz
