#include "students/policy/data/packed_writer.h"

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/write_lock.h"

namespace kibitz::policy {
namespace {

namespace fs = std::filesystem;
using io::DType;
using Json = nlohmann::ordered_json;

template <typename T>
std::string_view BytesOf(const std::vector<T>& items) {
  return {reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T)};
}

const io::NpyLayout& IndexLayout() {
  static const io::NpyLayout layout = io::NpyLayout::Of(DType::kU64);
  return layout;
}

}  // namespace

std::string PackedFile::Header(uint64_t rows) const {
  return io::NpyHeader(layout, std::vector<int64_t>{static_cast<int64_t>(rows)});
}

std::array<PackedFile, 3> FilesOf(Split split) {
  const auto name = [&](std::string_view part) {
    return fmt::format("{}_{}.npy", NameOf(split), part);
  };
  return {PackedFile{name("positions"), PositionLayout()},
          PackedFile{name("analyses"), AnalysisLayout()}, PackedFile{name("index"), IndexLayout()}};
}

void AddIndex(std::span<const PackedPosition> positions, SplitCounts& counts,
              std::vector<uint64_t>& index) {
  for (const PackedPosition& position : positions) {
    if (counts.positions % kIndexStep == 0) index.push_back(counts.analyses);
    ++counts.positions;
    counts.analyses += position.analyses;
  }
}

void PutInPlace(const std::string& from, const std::string& folder, const Manifest& manifest) {
  for (const auto& [name, state] : manifest.files) {
    fs::rename(from + "/" + name, folder + "/" + name);
  }
  Vocabulary::Full().Write(folder + "/vocab.npy");
  manifest.Write(folder);
}

PackedWriter::PackedWriter(std::string folder, Json identity, double flush_seconds)
    : folder_(std::move(folder)), identity_(std::move(identity)), flush_seconds_(flush_seconds) {
  MakeFolder(folder_);
  if (!Resume()) Begin();
}

uint64_t PackedWriter::analyses() const {
  uint64_t sum = 0;
  for (const SplitCounts& counts : counts_) sum += counts.analyses;
  return sum;
}

void PackedWriter::Begin() {
  files_.clear();
  counts_ = {};
  skipped_ = {};
  next_partition_ = 0;
  const auto open = [&](const PackedFile& file) {
    return AppendFile(File(file.name), FileState(), file.Header(0).size());
  };
  for (Split split : kSplits) {
    const auto parts = FilesOf(split);
    files_.push_back({open(parts[0]), open(parts[1]), open(parts[2])});
  }
}

bool PackedWriter::Resume() {
  const std::string path = File("journal.json");
  if (!fs::exists(path)) return false;
  try {
    const Json json = LoadConfig(path).tree;
    if (json.at("identity") != identity_) return false;
    const auto open = [&](const PackedFile& part) {
      const FileState state = FileStateFrom(json.at("files").at(part.name), path);
      const uint64_t head = part.Header(0).size();
      AppendFile file(File(part.name), state, head);
      if (StateOfFile(File(part.name), head) != state) throw Error("{}: damaged", File(part.name));
      return file;
    };
    for (Split split : kSplits) {
      const auto parts = FilesOf(split);
      files_.push_back({open(parts[0]), open(parts[1]), open(parts[2])});
      const Json& counts = json.at("splits").at(std::string(NameOf(split)));
      counts_[static_cast<size_t>(split)] = {counts.at(0).get<uint64_t>(),
                                             counts.at(1).get<uint64_t>()};
    }
    skipped_ = LeftOutFrom(json.at("left_out"));
    next_partition_ = json.at("next_partition").get<size_t>();
  } catch (const nlohmann::json::exception& error) {
    LogWarn("{}: {}; sorting starts over", path, error.what());
    return false;
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::kInterrupted) throw;
    LogWarn("{}; sorting starts over", error.message());
    return false;
  }
  return true;
}

void PackedWriter::Append(const GroupedPartition& partition) {
  for (size_t s = 0; s < kSplits.size(); ++s) {
    const Grouped& from = partition.splits[s];
    std::vector<uint64_t> index;
    AddIndex(from.positions, counts_[s], index);
    files_[s].positions.Append(BytesOf(from.positions));
    files_[s].analyses.Append(BytesOf(from.analyses));
    files_[s].index.Append(BytesOf(index));
  }
  skipped_.Merge(partition.skipped);
  ++next_partition_;
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - flushed_;
  if (since.count() >= flush_seconds_) Flush();
}

void PackedWriter::Flush() {
  for (SplitFiles& of_split : files_) {
    for (AppendFile* file : {&of_split.positions, &of_split.analyses, &of_split.index}) {
      file->Sync();
    }
  }
  WriteJournal();
  flushed_ = std::chrono::steady_clock::now();
}

void PackedWriter::WriteJournal() {
  Json files = Json::object();
  Json splits = Json::object();
  for (Split split : kSplits) {
    const auto s = static_cast<size_t>(split);
    size_t i = 0;
    for (AppendFile* file : {&files_[s].positions, &files_[s].analyses, &files_[s].index}) {
      files[FilesOf(split)[i++].name] = ToJson(file->state());
    }
    splits[std::string(NameOf(split))] = {counts_[s].positions, counts_[s].analyses};
  }
  const Json json = {{"identity", identity_},
                     {"next_partition", next_partition_},
                     {"left_out", LeftOutToJson(skipped_)},
                     {"splits", splits},
                     {"files", files}};
  WriteFileAtomically(File("journal.json"), json.dump(1) + "\n");
}

void PackedWriter::Finish(const std::string& folder, Manifest manifest) {
  manifest.splits = counts_;
  for (Split split : kSplits) {
    const auto s = static_cast<size_t>(split);
    const std::array<uint64_t, 3> rows = {counts_[s].positions, counts_[s].analyses,
                                          files_[s].index.state().bytes / sizeof(uint64_t)};
    size_t i = 0;
    for (AppendFile* file : {&files_[s].positions, &files_[s].analyses, &files_[s].index}) {
      const PackedFile part = FilesOf(split)[i];
      file->WriteHead(part.Header(rows[i]));
      file->Sync();
      manifest.files.emplace_back(part.name, file->state());
      ++i;
    }
  }
  // A run killed from here on leaves its files in place but no manifest: the next one sorts again,
  // from the shards, which are still there.
  fs::remove(File("journal.json"));
  files_.clear();
  PutInPlace(folder_, folder, manifest);
}

void PackedWriter::Close() {
  WriteJournal();
  files_.clear();
}

}  // namespace kibitz::policy
