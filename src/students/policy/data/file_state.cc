#include "students/policy/data/file_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "io/bytes/crc32c.h"

namespace kibitz::policy {

nlohmann::ordered_json ToJson(const FileState& state) {
  return {{"bytes", state.bytes}, {"crc32c", state.crc}};
}

FileState FileStateFrom(const nlohmann::ordered_json& json, const std::string& place) {
  try {
    return {json.at("bytes").get<uint64_t>(), json.at("crc32c").get<uint32_t>()};
  } catch (const nlohmann::json::exception& error) {
    throw Error("{}: expected bytes and crc32c of a file ({}); remove it and run again", place,
                error.what());
  }
}

FileState StateOfFile(const std::string& path, uint64_t begin) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw Error::System("cannot read " + path);
  std::vector<char> buffer(1 << 20);
  FileState state;
  ssize_t got = 0;
  while ((got = pread(descriptor, buffer.data(), buffer.size(),
                      static_cast<off_t>(begin + state.bytes))) > 0) {
    const auto size = static_cast<size_t>(got);
    state.crc = io::Crc32c({buffer.data(), size}, state.crc);
    state.bytes += size;
    if (Interrupted()) break;
  }
  close(descriptor);
  ThrowIfInterrupted();
  if (got < 0) throw Error::System("cannot read " + path);
  return state;
}

}  // namespace kibitz::policy
