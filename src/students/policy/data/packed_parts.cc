#include "students/policy/data/packed_parts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/atomic_file.h"
#include "base/config.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "io/bytes/crc32c.h"
#include "students/policy/data/append_file.h"
#include "students/policy/data/packed_writer.h"

namespace kibitz::policy {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kAlignment = 1 << 20;
constexpr size_t kBufferBytes = 4 << 20;

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : path_(path) {
    descriptor_ = open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw Error::System("cannot open " + path);
  }
  ~Descriptor() { close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void ReadAt(uint64_t offset, char* to, size_t bytes) const {
    while (bytes > 0) {
      const ssize_t count = pread(descriptor_, to, bytes, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw Error::System("cannot read " + path_);
      if (count == 0) throw Error("{}: is shorter than its journal says; run again", path_);
      to += count;
      offset += static_cast<uint64_t>(count);
      bytes -= static_cast<size_t>(count);
    }
  }
  void WriteAt(uint64_t offset, const char* from, size_t bytes) const {
    while (bytes > 0) {
      const ssize_t count = pwrite(descriptor_, from, bytes, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw Error::System("cannot write " + path_);
      from += count;
      offset += static_cast<uint64_t>(count);
      bytes -= static_cast<size_t>(count);
    }
  }
  void Sync() const {
    if (fdatasync(descriptor_) != 0) throw Error::System("cannot write " + path_);
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

// A file of the data set.
class Joined {
 public:
  Joined(const std::vector<PackedPart>& parts, const PackedFile& file, uint64_t rows)
      : parts_(parts), file_(file), header_(file.Header(rows)) {}

  uint64_t bytes() const {
    uint64_t bytes = header_.size();
    for (const PackedPart& part : parts_) bytes += part.files.at(file_.name).bytes;
    return bytes;
  }
  FileState state() const {
    FileState state;
    for (const PackedPart& part : parts_) {
      const FileState& next = part.files.at(file_.name);
      state.crc = io::Crc32cJoined(state.crc, next.crc, next.bytes);
      state.bytes += next.bytes;
    }
    return state;
  }
  // The bytes from `begin` to `end`, at the same place of another file.
  void Copy(const std::string& to, uint64_t begin, uint64_t end) const {
    const Descriptor out(to, O_WRONLY | O_CREAT);
    if (begin < header_.size()) {
      const uint64_t last = std::min<uint64_t>(end, header_.size());
      out.WriteAt(begin, header_.data() + begin, last - begin);
    }
    std::vector<char> buffer(kBufferBytes);
    uint64_t start = header_.size();  // Of the part.
    for (const PackedPart& part : parts_) {
      const uint64_t bytes = part.files.at(file_.name).bytes;
      const uint64_t last = std::min(end, start + bytes);
      if (std::max(begin, start) < last) {
        const Descriptor in(part.folder + "/" + file_.name, O_RDONLY);
        for (uint64_t at = std::max(begin, start); at < last;) {
          ThrowIfInterrupted();
          const size_t count = std::min<uint64_t>(buffer.size(), last - at);
          in.ReadAt(header_.size() + at - start, buffer.data(), count);
          out.WriteAt(at, buffer.data(), count);
          at += count;
        }
      }
      start += bytes;
    }
    out.Sync();
  }

 private:
  const std::vector<PackedPart>& parts_;
  const PackedFile& file_;
  std::string header_;
};

// The index of a part's positions, whose numbers go on from `before`.
std::string IndexOf(const PackedPart& part, const PackedFile& positions, SplitCounts before) {
  std::vector<uint64_t> index;
  const Descriptor in(part.folder + "/" + positions.name, O_RDONLY);
  const uint64_t head = positions.Header(0).size();
  const uint64_t bytes = part.files.at(positions.name).bytes;
  std::vector<PackedPosition> some(kBufferBytes / sizeof(PackedPosition));
  for (uint64_t at = 0; at < bytes;) {
    ThrowIfInterrupted();
    const size_t count = std::min<uint64_t>(some.size() * sizeof(PackedPosition), bytes - at);
    in.ReadAt(head + at, reinterpret_cast<char*>(some.data()), count);
    AddIndex({some.data(), count / sizeof(PackedPosition)}, before, index);
    at += count;
  }
  return {reinterpret_cast<const char*>(index.data()), index.size() * sizeof(uint64_t)};
}

std::string OfRank(const std::string& path, int rank) { return fmt::format("{}.{}", path, rank); }

// What all ranks have written of an index, with the header.
FileState JoinIndex(const PackedFile& file, const std::string& path, int ranks) {
  std::string index;
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream in(OfRank(path, rank), std::ios::binary);
    index.append(std::istreambuf_iterator<char>(in), {});
    if (in.bad() || !in.is_open()) throw Error::System("cannot read " + OfRank(path, rank));
  }
  const std::string header = file.Header(index.size() / sizeof(uint64_t));
  AppendFile out(path, FileState(), header.size());
  out.Append(index);
  out.WriteHead(header);
  out.Sync();
  return out.state();
}

}  // namespace

PackedPart ReadPart(const std::string& folder) {
  const std::string path = folder + "/journal.json";
  const Json json = LoadConfig(path).tree;
  PackedPart part{.folder = folder, .counts = {}, .skipped = {}, .files = {}};
  try {
    part.skipped = LeftOutFrom(json.at("left_out"));
    for (Split split : kSplits) {
      const Json& counts = json.at("splits").at(std::string(NameOf(split)));
      part.counts[static_cast<size_t>(split)] = {counts.at(0).get<uint64_t>(),
                                                 counts.at(1).get<uint64_t>()};
    }
    for (const auto& [name, state] : json.at("files").items()) {
      part.files[name] = FileStateFrom(state, path);
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error("{}: {}; remove the folder and run again", path, error.what());
  }
  return part;
}

void JoinParts(const std::vector<PackedPart>& parts, const std::string& work,
               const std::string& out, Manifest manifest, JobGroup& job) {
  CHECK(parts.size() == static_cast<size_t>(job.ranks()));
  const auto rank = static_cast<size_t>(job.rank());
  for (Split split : kSplits) {
    const auto s = static_cast<size_t>(split);
    SplitCounts before;
    SplitCounts& all = manifest.splits[s] = {};
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i == rank) before = all;
      all.positions += parts[i].counts[s].positions;
      all.analyses += parts[i].counts[s].analyses;
    }
    const auto files = FilesOf(split);
    const std::array<uint64_t, 2> rows = {all.positions, all.analyses};
    for (size_t i = 0; i < rows.size(); ++i) {
      const Joined joined(parts, files[i], rows[i]);
      const auto bound = [&](size_t of) {
        return of == parts.size() ? joined.bytes()
                                  : joined.bytes() * of / parts.size() / kAlignment * kAlignment;
      };
      joined.Copy(work + "/" + files[i].name, bound(rank), bound(rank + 1));
      manifest.files.emplace_back(files[i].name, joined.state());
    }
    WriteFileAtomically(OfRank(work + "/" + files[2].name, job.rank()),
                        IndexOf(parts[rank], files[0], before));
    manifest.files.emplace_back(files[2].name, FileState());
  }
  job.Meet();
  if (job.first()) {
    for (size_t s = 0; s < kSplits.size(); ++s) {
      const PackedFile index = FilesOf(kSplits[s])[2];
      manifest.files[3 * s + 2].second = JoinIndex(index, work + "/" + index.name, job.ranks());
    }
    PutInPlace(work, out, manifest);
  }
  job.Meet();
}

}  // namespace kibitz::policy
