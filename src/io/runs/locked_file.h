// Opens a file for one process alone: two runs that write the same file would mix their lines.
//
//   const int descriptor = OpenLocked("runs/a/metrics.jsonl");
#pragma once

#include <string>
#include <string_view>

namespace kibitz::io {

// For appending; made when missing. The lock lasts until the descriptor is closed. Throws Error
// when another process has the file open this way.
int OpenLocked(const std::string& path);

// All of the bytes, whatever the system takes at a time. `path` is for messages.
void WriteWhole(int descriptor, std::string_view bytes, const std::string& path);

}  // namespace kibitz::io
