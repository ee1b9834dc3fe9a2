// Length and checksum of a file, as manifests and journals keep them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kibitz::policy {

struct FileState {
  uint64_t bytes = 0;
  uint32_t crc = 0;  // CRC-32C.

  bool operator==(const FileState&) const = default;
};
nlohmann::ordered_json ToJson(const FileState& state);
// Throws Error, naming `place`, for anything that ToJson does not make.
FileState FileStateFrom(const nlohmann::ordered_json& json, const std::string& place);

// The state of a file's bytes from `begin` on, read from end to end. Throws Error.
FileState StateOfFile(const std::string& path, uint64_t begin = 0);

}  // namespace kibitz::policy
