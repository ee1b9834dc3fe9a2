#include "students/policy/data/shard.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>

#include "base/atomic_file.h"
#include "base/config.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/thread_pool.h"
#include "base/write_lock.h"
#include "io/bytes/fingerprint.h"

namespace kibitz::policy {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 2;
constexpr uint64_t kMaxPartitionBytes = uint64_t{64} << 20;  // About, to keep sorting one quick.
constexpr uint64_t kMaxPartitions = 512;                     // Files open at a time.
constexpr uint64_t kMaxBlockRows = 4096;  // Of a thread's buffer for a partition.
// Partitions of this share of --memory: grouping one takes 2.5 times its size, so that a dozen
// threads have room.
constexpr uint64_t kPartitionsInMemory = 32;

// The files of all partitions, filled by many threads.
class Partitions {
 public:
  Partitions(const ShardState& shard) : mutexes_(shard.partitions.size()) {
    files_.reserve(shard.partitions.size());
    for (size_t i = 0; i < shard.partitions.size(); ++i) {
      files_.emplace_back(shard.PartitionPath(i), shard.partitions[i]);
    }
  }

  size_t size() const { return files_.size(); }
  void Append(size_t partition, std::span<const PackedRow> rows) {
    const std::lock_guard lock(mutexes_[partition]);
    const auto bytes = std::as_bytes(rows);
    files_[partition].Append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void Sync() {
    for (AppendFile& file : files_) file.Sync();
  }
  void SaveStates(ShardState& shard) {
    for (size_t i = 0; i < files_.size(); ++i) {
      shard.partitions[i] = files_[i].state();
    }
  }

 private:
  std::vector<std::mutex> mutexes_;
  std::vector<AppendFile> files_;
};

// One thread's rows, buffered by partition.
class Spreader {
 public:
  Spreader(Partitions& partitions, uint64_t block_rows)
      : partitions_(partitions),
        block_rows_(block_rows),
        rows_(partitions.size() * block_rows),
        used_(partitions.size(), 0) {}

  void Add(const RawRow& raw) {
    PackedRow row;
    const RowFault fault = packer_.Pack(raw, row);
    if (fault != RowFault::kNone) Skip(skipped_, fault);
    if (fault == RowFault::kNoMove || fault == RowFault::kBadFen) return;
    const size_t partition = PartitionOf(HashOf(row.position), partitions_.size());
    rows_[partition * block_rows_ + used_[partition]] = row;
    if (++used_[partition] == block_rows_) Flush(partition);
  }
  void FlushAll() {
    for (size_t i = 0; i < used_.size(); ++i) Flush(i);
  }
  SkipCounter TakeSkipped() { return std::exchange(skipped_, SkipCounter()); }

 private:
  void Flush(size_t partition) {
    if (used_[partition] == 0) return;
    partitions_.Append(partition, {&rows_[partition * block_rows_], used_[partition]});
    used_[partition] = 0;
  }

  Partitions& partitions_;
  uint64_t block_rows_;
  std::vector<PackedRow> rows_;  // A block for each partition.
  std::vector<size_t> used_;
  RowPacker packer_;
  SkipCounter skipped_;
};

// Reads the input in rounds; after each, all rows read are in the files and in the journal.
class ShardMaker {
 public:
  ShardMaker(ShardState& shard, RowSource& source, const ShardOptions& options)
      : shard_(shard),
        source_(source),
        options_(options),
        partitions_(shard),
        pool_(options.threads),
        progress_("rows", source.EstimateRows() / options.shards) {
    const auto threads = static_cast<uint64_t>(options.threads);
    const uint64_t room = options.memory_bytes / 8 / threads / shard.partitions.size();
    const uint64_t block = std::clamp<uint64_t>(room / sizeof(PackedRow), 16, kMaxBlockRows);
    for (uint64_t i = 0; i < threads; ++i) {
      spreaders_.push_back(std::make_unique<Spreader>(partitions_, block));
    }
    progress_.Add(shard.rows);
  }

  void Run() {
    while (!shard_.done) {
      round_end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(options_.flush_seconds));
      pool_.ParallelFor(spreaders_.size(), [this](size_t i) { WorkOneRound(*spreaders_[i]); });
      for (auto& spreader : spreaders_) shard_.skipped.Merge(spreader->TakeSkipped());
      if (ended_ && options_.durable) partitions_.Sync();
      partitions_.SaveStates(shard_);
      shard_.position = source_.position();
      shard_.done = ended_;
      shard_.Write();
      source_.Release();
      ThrowIfInterrupted();
    }
    progress_.Finish();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // A piece is always read to its end, so that the journal need only count pieces.
  void WorkOneRound(Spreader& spreader) {
    while (std::optional<RowPiece> piece = TakePiece()) {
      const uint64_t rows = piece->ForEach([&](const RawRow& row) { spreader.Add(row); });
      progress_.Add(rows);
      const std::lock_guard lock(mutex_);
      shard_.rows += rows;
    }
    spreader.FlushAll();
  }

  std::optional<RowPiece> TakePiece() {
    const std::lock_guard lock(mutex_);
    if (ended_ || Interrupted() || Clock::now() >= round_end_) return std::nullopt;
    std::optional<RowPiece> piece = source_.Next();
    ended_ = !piece.has_value();
    return piece;
  }

  ShardState& shard_;
  RowSource& source_;
  ShardOptions options_;
  Partitions partitions_;
  ThreadPool pool_;
  Progress progress_;
  std::vector<std::unique_ptr<Spreader>> spreaders_;
  std::mutex mutex_;
  Clock::time_point round_end_;  // Guarded by mutex_, as is ended_.
  bool ended_ = false;
};

void CheckSame(const ShardState& shard, const Json& fingerprint, const ShardOptions& options) {
  const std::string change = Fingerprint::Change(shard.fingerprint, fingerprint);
  if (!change.empty()) {
    throw Error(
        "{}: was made from another input: {}; give the same input to resume, remove the folder, or "
        "choose another",
        shard.folder, change);
  }
  if (shard.shards != options.shards || shard.shard != options.shard) {
    throw Error("{}: holds shard {} of {}; remove the folder, or choose another", shard.folder,
                shard.shard, shard.shards);
  }
}

}  // namespace

Json Fingerprint::ToJson() const {
  std::vector<std::string> paths;
  for (const InputFile& file : files) paths.push_back(file.path);
  return {{"files", io::FingerprintsOf(paths)}, {"rows", rows}};
}

std::string Fingerprint::Change(const Json& before, const Json& now) {
  const std::string files = io::FingerprintChange(before.at("files"), now.at("files"));
  if (!files.empty() || before.at("rows") == now.at("rows")) return files;
  return fmt::format("--rows was {} and is {} now", before.at("rows").dump(),
                     now.at("rows").dump());
}

uint64_t PartitionsFor(uint64_t rows, uint64_t memory_bytes) {
  const uint64_t bytes =
      std::clamp<uint64_t>(memory_bytes / kPartitionsInMemory, 1 << 16, kMaxPartitionBytes);
  return std::min(kMaxPartitions, std::bit_ceil(rows * sizeof(PackedRow) / bytes + 1));
}

bool ShardState::Exists(const std::string& folder) { return fs::exists(folder + "/shard.json"); }

std::string ShardState::PartitionPath(size_t partition) const {
  return fmt::format("{}/part-{:04}.rows", folder, partition);
}

ShardState ShardState::Read(const std::string& folder) {
  const std::string path = folder + "/shard.json";
  const Json json = LoadConfig(path).tree;
  ShardState shard;
  shard.folder = folder;
  try {
    if (json.at("format").get<int>() != kFormat) {
      throw Error("{}: format {}, expected {}; make the shard again", path,
                  json.at("format").dump(), kFormat);
    }
    shard.fingerprint = json.at("input");
    shard.shards = json.at("shards").get<uint64_t>();
    shard.shard = json.at("shard").get<uint64_t>();
    shard.done = json.at("done").get<bool>();
    shard.position = json.at("position").get<uint64_t>();
    shard.rows = json.at("rows").get<uint64_t>();
    shard.skipped = LeftOutFrom(json.at("left_out"));
    for (const Json& file : json.at("partitions")) {
      shard.partitions.push_back(FileStateFrom(file, path));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error("{}: {}; remove the folder and make the shard again", path, error.what());
  }
  if (!std::has_single_bit(shard.partitions.size())) {
    throw Error("{}: {} partitions, expected a power of two; make the shard again", path,
                shard.partitions.size());
  }
  return shard;
}

void ShardState::Write() const {
  Json files = Json::array();
  for (const FileState& state : partitions) files.push_back(policy::ToJson(state));
  const Json json = {{"format", kFormat},  {"input", fingerprint},
                     {"shards", shards},   {"shard", shard},
                     {"done", done},       {"position", position},
                     {"rows", rows},       {"left_out", LeftOutToJson(skipped)},
                     {"partitions", files}};
  WriteFileAtomically(folder + "/shard.json", json.dump(1) + "\n");
}

std::string ShardFolder(const std::string& folder, uint64_t shards, uint64_t shard) {
  return fmt::format("{}/shard-{:04}-of-{:04}", folder, shard, shards);
}

ShardState MakeShard(const std::string& folder, const std::vector<InputFile>& files,
                     const Json& fingerprint, const ShardOptions& options) {
  const WriteLock lock = WriteLock::OfFolder(folder);
  RowSource source(files, {.rows = options.rows,
                           .shards = options.shards,
                           .shard = options.shard,
                           .threads = options.threads,
                           .memory_bytes = options.memory_bytes / 2,
                           .piece_bytes = options.piece_bytes,
                           .scratch = options.scratch});
  ShardState shard;
  if (ShardState::Exists(folder)) {
    shard = ShardState::Read(folder);
    CheckSame(shard, fingerprint, options);
    if (shard.done) return shard;
    LogInfo("{}: resumes after {} rows", folder, shard.rows);
    source.SkipTo(shard.position);
  } else {
    shard.folder = folder;
    shard.fingerprint = fingerprint;
    shard.shards = options.shards;
    shard.shard = options.shard;
    shard.partitions.resize(PartitionsFor(source.EstimateRows(), options.memory_bytes));
  }
  ShardMaker(shard, source, options).Run();
  return shard;
}

}  // namespace kibitz::policy
