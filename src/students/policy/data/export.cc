#include "students/policy/data/export.h"

#include <array>
#include <filesystem>
#include <limits>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/write_lock.h"
#include "students/policy/data/dataset.h"
#include "students/policy/data/packed_writer.h"
#include "students/policy/data/planes.h"
#include "students/policy/data/rows.h"

namespace kibitz::policy {
namespace {

namespace fs = std::filesystem;
using io::DType;
using io::NpyLayout;
using Json = nlohmann::ordered_json;

constexpr uint64_t kChunk = 65536;  // Positions.

template <typename T>
std::span<const std::byte> Bytes(const T& array) {
  return std::as_bytes(std::span(array));
}

// From the numbers of one vocabulary to those of another; kNoMove where it has no such move.
std::vector<uint16_t> MoveMap(const Vocabulary& from, const Vocabulary& to) {
  std::vector<uint16_t> map;
  for (int i = 0; i < from.size(); ++i) map.push_back(to.IndexOf(from[i]));
  return map;
}

// The four arrays of one split.
class PlanesWriter {
 public:
  PlanesWriter(const std::string& folder, Split split, bool wide_offsets)
      : wide_(wide_offsets),
        planes_(File(folder, split, "planes"), NpyLayout::Of(DType::kU8), {kPlanes, 8, 8}),
        meta_(File(folder, split, "meta"), NpyLayout::Of(DType::kI8), {kMeta}),
        data_(File(folder, split, "analysis_data"), NpyLayout::Of(DType::kI32), {5}),
        offsets_(File(folder, split, "analysis_offsets"),
                 NpyLayout::Of(wide_offsets ? DType::kU64 : DType::kU32)) {
    AppendOffset();
  }

  void Add(const Sample& sample, const std::vector<uint16_t>& move_map) {
    planes_.Append(Bytes(PlanesOf(sample.position)));
    meta_.Append(Bytes(MetaOf(sample.position)));
    for (const Analysis& analysis : sample.analyses) {
      const uint16_t move = analysis.move < move_map.size() ? move_map[analysis.move] : kNoMove;
      if (move == kNoMove) continue;
      const std::array<int32_t, 5> row = {move, analysis.depth(),
                                          static_cast<int32_t>(analysis.knodes), analysis.score,
                                          analysis.is_mate() ? 1 : 0};
      data_.Append(Bytes(row));
    }
    AppendOffset();
  }
  SplitCounts Commit() {
    const SplitCounts counts = {planes_.rows(), data_.rows()};
    for (io::NpyWriter* writer : {&planes_, &meta_, &data_, &offsets_}) writer->Commit();
    return counts;
  }
  static std::string Name(Split split, std::string_view part) {
    return fmt::format("{}_{}.npy", NameOf(split), part);
  }

 private:
  static std::string File(const std::string& folder, Split split, std::string_view part) {
    return folder + "/" + Name(split, part);
  }
  void AppendOffset() {
    const uint64_t offset = data_.rows();
    if (wide_) {
      offsets_.Append(Bytes(std::array<uint64_t, 1>{offset}));
    } else {
      offsets_.Append(Bytes(std::array<uint32_t, 1>{static_cast<uint32_t>(offset)}));
    }
  }

  bool wide_;
  io::NpyWriter planes_;
  io::NpyWriter meta_;
  io::NpyWriter data_;
  io::NpyWriter offsets_;
};

template <typename Use>
void ForEachSample(const SplitData& split, Progress& progress, const Use& use) {
  std::vector<Analysis> scratch;
  for (uint64_t i = 0; i < split.size(); ++i) {
    use(split.At(i, scratch));
    if ((i + 1) % kChunk == 0) {
      ThrowIfInterrupted();
      progress.Add(kChunk);
    }
  }
  progress.Add(split.size() % kChunk);
}

// As the arrays' own stats.json has it.
void WriteStats(const std::string& folder, const Manifest& manifest) {
  const auto rows = static_cast<double>(manifest.rows);
  const auto positions = static_cast<double>(std::max<uint64_t>(manifest.positions(), 1));
  const Json stats = {
      {"raw_samples", manifest.rows},
      {"unique_positions", manifest.positions()},
      {"dedup_ratio", rows / positions},
      {"total_analyses", manifest.analyses()},
      {"avg_analyses_per_position", static_cast<double>(manifest.analyses()) / positions},
      {"num_shards", 1}};
  WriteFileAtomically(folder + "/stats.json", Json{{"stats", stats}}.dump(1) + "\n");
}

// Where the data behind a .npy header begins.
uint64_t DataBegin(const std::string& path) {
  return fs::file_size(path) - io::NpyFile::Open(path).bytes().size();
}

Manifest ToPlanes(const Dataset& data, const std::string& out, const Vocabulary& vocabulary,
                  Manifest manifest) {
  const std::vector<uint16_t> map = MoveMap(data.vocabulary(), vocabulary);
  Progress progress("positions", data.positions());
  for (Split split : kSplits) {
    const SplitData& from = data.split(split);
    PlanesWriter writer(out, split, from.analyses() > std::numeric_limits<uint32_t>::max());
    ForEachSample(from, progress, [&](const Sample& sample) { writer.Add(sample, map); });
    manifest.splits[static_cast<size_t>(split)] = writer.Commit();
    for (const char* part : {"planes", "meta", "analysis_data", "analysis_offsets"}) {
      const std::string name = PlanesWriter::Name(split, part);
      const std::string path = out + "/" + name;
      manifest.files.emplace_back(name, StateOfFile(path, DataBegin(path)));
    }
  }
  progress.Finish();
  vocabulary.Write(out + "/vocab.npy");
  WriteStats(out, manifest);
  manifest.Write(out);
  return manifest;
}

Manifest ToPacked(const Dataset& data, const std::string& out, const Manifest& manifest) {
  const std::vector<uint16_t> map = MoveMap(data.vocabulary(), Vocabulary::Full());
  Progress progress("positions", data.positions());
  const std::string work = out + "/work";
  fs::remove_all(work);
  PackedWriter writer(work, Json::object());
  SkipCounter skipped;
  for (Split split : kSplits) {
    GroupedPartition chunk;
    Grouped& to = chunk.splits[static_cast<size_t>(split)];
    const auto flush = [&] {
      writer.Append(chunk);
      to.positions.clear();
      to.analyses.clear();
    };
    const auto skip = [&](const std::string& reason, const std::string& detail) {
      skipped.AddAndWarn(
          reason, {.file = fmt::format("{}, {}", data.folder(), NameOf(split)), .detail = detail});
    };
    ForEachSample(data.split(split), progress, [&](const Sample& sample) {
      to.positions.push_back(sample.position);
      to.positions.back().analyses = 0;
      for (Analysis analysis : sample.analyses) {
        uint16_t& count = to.positions.back().analyses;
        if (analysis.move >= map.size()) {
          skip("analysis of a move outside the vocabulary",
               fmt::format("move {} of {}", analysis.move, map.size()));
          continue;
        }
        if (count == std::numeric_limits<uint16_t>::max()) {
          skip(std::string(NameOf(RowFault::kTooMany)), "");
          continue;
        }
        analysis.move = map[analysis.move];
        to.analyses.push_back(analysis);
        ++count;
      }
      if (to.positions.size() == kChunk) flush();
    });
    flush();
  }
  progress.Finish();
  if (!skipped.empty()) LogWarn("skipped: {}", skipped.Text());
  writer.Finish(out, manifest);
  fs::remove_all(work);
  return Manifest::Read(out);
}

}  // namespace

Manifest Export(const std::string& from, const std::string& out, const ExportOptions& options) {
  const Dataset data = Dataset::Open(from);
  const WriteLock lock = WriteLock::OfFolder(out);
  if (fs::equivalent(from, out))
    throw Error::Usage("--out is the data set itself; choose another folder");
  if (Manifest::Exists(out))
    throw Error("{}: holds a data set; remove it, or choose another folder", out);
  Manifest manifest;
  if (data.manifest()) {
    manifest = *data.manifest();
    manifest.files.clear();
  } else {
    manifest.input = {{"files", Json::array()}, {"rows", 0}};
    manifest.rows = data.analyses();
    manifest.shares = {0, 0};
  }
  manifest.storage = options.storage;
  if (options.storage == Storage::kPacked) {
    if (!options.vocabulary.empty()) {
      throw Error::Usage("--vocab is for --format planes: packed rows have the full vocabulary");
    }
    return ToPacked(data, out, manifest);
  }
  return ToPlanes(
      data, out,
      options.vocabulary.empty() ? Vocabulary::Full() : Vocabulary::Read(options.vocabulary),
      std::move(manifest));
}

}  // namespace kibitz::policy
