#include "io/bytes/fingerprint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"

namespace kibitz::io {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uint64_t kWholeBytes = uint64_t{256} << 20;
constexpr uint64_t kBlockBytes = uint64_t{1} << 16;
constexpr uint64_t kEndBlocks = 16;  // Hashed at each end of a file, where there is room for them.

// Mixes a word into the state: a multiplication by an odd number, with its high bits folded down.
uint64_t Mixed(uint64_t state, uint64_t word) {
  const auto product =
      static_cast<unsigned __int128>(state ^ word ^ 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^
         std::rotl(state, 23);
}

class File {
 public:
  explicit File(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw Error::System("cannot read " + path);
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Hashes up to a block; less at the end of the file.
  uint64_t Hash(uint64_t offset, uint64_t seed) {
    size_t filled = 0;
    while (filled < block_.size()) {
      const ssize_t got = pread(descriptor_, block_.data() + filled, block_.size() - filled,
                                static_cast<off_t>(offset + filled));
      if (got < 0 && errno == EINTR) {
        ThrowIfInterrupted();
        continue;
      }
      if (got < 0) throw Error::System("cannot read " + path_);
      if (got == 0) break;
      filled += static_cast<size_t>(got);
    }
    return HashBytes({block_.data(), filled}, seed);
  }

 private:
  std::string path_;
  int descriptor_;
  std::string block_ = std::string(kBlockBytes, '\0');
};

// `budget`: bytes to read at most, about.
uint64_t HashFile(const std::string& path, uint64_t bytes, uint64_t budget, uint64_t seed) {
  File file(path);
  uint64_t hash = Mixed(seed, bytes);
  const uint64_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  const uint64_t taken = std::min(blocks, std::max<uint64_t>(budget / kBlockBytes, 4));
  const uint64_t ends = std::min(kEndBlocks, taken / 4);
  for (uint64_t i = 0; i < taken; ++i) {
    uint64_t block = i;
    if (taken < blocks && i >= taken - ends) block = blocks - (taken - i);
    if (taken < blocks && i >= ends && i < taken - ends) {
      block = ends + (i - ends) * (blocks - 2 * ends) / (taken - 2 * ends);
    }
    hash = file.Hash(block * kBlockBytes, hash);
  }
  return hash;
}

std::vector<fs::path> FilesBelow(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool passing = name == "lock" || name.ends_with(".lock") || name.ends_with(".tmp");
    if (!passing && entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::string NameOf(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

}  // namespace

uint64_t HashBytes(std::string_view bytes, uint64_t seed) {
  uint64_t state = Mixed(seed, bytes.size());
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    state = Mixed(state, word);
    bytes.remove_prefix(8);
  }
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return Mixed(Mixed(state, word), ~bytes.size());
}

namespace {

// `whole`: bytes to read at most, about, of all files.
Json Fingerprint(const std::string& path, uint64_t whole) {
  std::error_code error;
  if (!fs::exists(path, error)) throw Error("{}: no such file or folder", path);
  if (!fs::is_directory(path)) {
    if (!fs::is_regular_file(path)) return {{"name", NameOf(path)}};  // A pipe cannot be compared.
    const uint64_t bytes = fs::file_size(path);
    return {{"name", NameOf(path)},
            {"bytes", bytes},
            {"hash", fmt::format("{:016x}", HashFile(path, bytes, whole, 0))}};
  }
  const std::vector<fs::path> files = FilesBelow(path);
  std::vector<uint64_t> sizes;
  uint64_t bytes = 0;
  for (const fs::path& file : files) {
    sizes.push_back(fs::file_size(file));
    bytes += sizes.back();
  }
  const uint64_t budget = bytes <= whole ? whole : whole / files.size();
  uint64_t hash = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    hash = HashBytes(files[i].lexically_relative(path).string(), hash);
    hash = HashFile(files[i].string(), sizes[i], budget, hash);
  }
  return {{"name", NameOf(path)},
          {"files", files.size()},
          {"bytes", bytes},
          {"hash", fmt::format("{:016x}", hash)}};
}

}  // namespace

Json FingerprintOf(const std::string& path) { return Fingerprint(path, kWholeBytes); }

Json FingerprintsOf(std::span<const std::string> paths) {
  Json all = Json::array();
  for (const std::string& path : paths) {
    all.push_back(Fingerprint(path, kWholeBytes / paths.size()));
  }
  return all;
}

std::string FingerprintChange(const Json& before, const Json& now) {
  if (before == now) return "";
  if (before.is_array() && now.is_array()) {
    if (before.size() != now.size()) {
      return fmt::format("{} files before and {} now", before.size(), now.size());
    }
    for (size_t i = 0; i < now.size(); ++i) {
      if (auto change = FingerprintChange(before[i], now[i]); !change.empty()) return change;
    }
    return "";
  }
  const auto text = [](const Json& json, const char* key) {
    return json.is_object() && json.contains(key) ? json[key].dump() : std::string("none");
  };
  const std::string name = now.is_object() ? now.value("name", "") : "";
  if (text(before, "name") != text(now, "name")) {
    return fmt::format("the input was {} and is {} now", text(before, "name"), text(now, "name"));
  }
  if (text(before, "bytes") != text(now, "bytes")) {
    return fmt::format("{}: had {} bytes and has {} now", name, text(before, "bytes"),
                       text(now, "bytes"));
  }
  const std::string hash = text(before, "hash");
  if (hash == "none" || hash == text(now, "hash")) return "";
  return fmt::format("{}: its content changed ({} bytes as before)", name, text(now, "bytes"));
}

}  // namespace kibitz::io
