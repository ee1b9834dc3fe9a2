#include "students/policy/data/precompute.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <future>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/thread_pool.h"
#include "base/write_lock.h"
#include "students/policy/data/append_file.h"
#include "students/policy/data/export.h"
#include "students/policy/data/group.h"
#include "students/policy/data/packed_writer.h"

namespace kibitz::policy {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Unfinished work; removed at the end.
std::string WorkFolder(const std::string& out) { return out + "/work"; }

PrecomputeOptions Completed(PrecomputeOptions options) {
  if (options.threads == 0) options.threads = HardwareThreads();
  if (options.memory_bytes < (uint64_t{128} << 20)) {
    throw Error::Usage("--memory is {} MB; expected 128M or more, which reading takes",
                       options.memory_bytes >> 20);
  }
  const SplitShares& shares = options.shares;
  if (!(shares.val >= 0 && shares.test >= 0 && shares.val + shares.test < 1)) {
    throw Error::Usage(
        "--val-share and --test-share are {} and {}; expected a sum below 1, so that "
        "something is left to train on",
        shares.val, shares.test);
  }
  return options;
}

ShardOptions ForShard(uint64_t shards, uint64_t shard, const PrecomputeOptions& options,
                      bool durable) {
  if (shards == 0 || shard >= shards) {
    throw Error::Usage("--shard is {} of {}; expected 0 to {}", shard, shards,
                       shards == 0 ? 0 : shards - 1);
  }
  return {.shards = shards,
          .shard = shard,
          .rows = options.rows,
          .threads = options.threads,
          .memory_bytes = options.memory_bytes,
          .flush_seconds = options.flush_seconds,
          .durable = durable};
}

// Nothing when the folder has no data set. Throws Error when it has another one.
std::optional<Manifest> AlreadyThere(const std::string& out, const Json& input,
                                     const PrecomputeOptions& options) {
  if (!Manifest::Exists(out)) return std::nullopt;
  const Manifest manifest = Manifest::Read(out);
  const std::string change = Fingerprint::Change(manifest.input, input);
  if (!change.empty()) {
    throw Error("{}: holds a data set of another input: {}; remove it, or choose another folder",
                out, change);
  }
  if (manifest.storage == options.storage && manifest.shares.val == options.shares.val &&
      manifest.shares.test == options.shares.test) {
    LogInfo("{}: already complete", out);
    if (!options.keep_shards && fs::exists(WorkFolder(out))) {  // Of a run killed at its very end.
      const WriteLock lock = WriteLock::OfFolder(WorkFolder(out));
      fs::remove_all(WorkFolder(out));
    }
    return manifest;
  }
  throw Error(
      "{}: holds a data set made with other options; remove it, or choose "
      "another folder",
      out);
}

// The shards below the folders, in order. Throws Error unless they are all of one input.
std::vector<ShardState> FindShards(const std::vector<std::string>& folders) {
  std::vector<ShardState> shards;
  for (const std::string& folder : folders) {
    if (!fs::is_directory(folder)) throw Error("{}: no such folder", folder);
    if (ShardState::Exists(folder)) shards.push_back(ShardState::Read(folder));
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_directory() && ShardState::Exists(entry.path().string())) {
        shards.push_back(ShardState::Read(entry.path().string()));
      }
    }
  }
  if (shards.empty()) {
    throw Error(
        "{}: no shard here; expected what 'kibitz policy precompute --shards N --shard K' made",
        folders.empty() ? "." : folders[0]);
  }
  std::sort(shards.begin(), shards.end(),
            [](const ShardState& a, const ShardState& b) { return a.shard < b.shard; });
  return shards;
}

void CheckShards(const std::vector<ShardState>& shards) {
  const ShardState& first = shards.front();
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardState& shard = shards[i];
    if (!Fingerprint::Change(first.fingerprint, shard.fingerprint).empty() ||
        shard.shards != first.shards) {
      throw Error("{} and {} are shards of different inputs", first.folder, shard.folder);
    }
    if (shard.shard != i) {
      throw Error(
          "shard {} of {} is {}; make it with 'kibitz policy precompute --shards {} --shard {}'",
          std::min<uint64_t>(i, shard.shard), shard.shards,
          shard.shard < i ? "there twice" : "missing", shard.shards, i);
    }
    if (!shard.done) {
      throw Error("{}: is not finished; run its precompute again to resume it", shard.folder);
    }
    if (shard.partitions.size() != first.partitions.size()) {
      throw Error("{} has {} partitions, {} has {}; make all shards with the same --memory",
                  first.folder, first.partitions.size(), shard.folder, shard.partitions.size());
    }
  }
  if (shards.size() != first.shards) {
    throw Error(
        "shard {} of {} is missing; make it with 'kibitz policy precompute --shards {} --shard {}'",
        shards.size(), first.shards, first.shards, shards.size());
  }
}

uint64_t PartitionBytes(const std::vector<ShardState>& shards, size_t partition) {
  uint64_t bytes = 0;
  for (const ShardState& shard : shards) bytes += shard.partitions[partition].bytes;
  return bytes;
}

// Groups partitions on the pool, appends them in order.
class Grouping {
 public:
  Grouping(const std::vector<ShardState>& shards, PackedWriter& writer,
           const PrecomputeOptions& options)
      : shards_(shards), writer_(writer), options_(options), progress_("rows sorted", Rows()) {}

  void Run() {
    ThreadPool pool(options_.threads);
    const size_t partitions = shards_[0].partitions.size();
    for (size_t i = 0; i < writer_.next_partition(); ++i) progress_.Add(RowsOf(i));
    try {
      for (size_t i = writer_.next_partition(); i < partitions; ++i) {
        while (!Fits(i)) TakeFirst();
        Start(pool, i);
      }
      while (!running_.empty()) TakeFirst();
    } catch (...) {
      for (Task& task : running_) task.future.wait();  // They borrow the shards.
      throw;
    }
    progress_.Finish();
  }

 private:
  struct Task {
    uint64_t bytes;  // Of memory.
    std::future<GroupedPartition> future;
  };

  uint64_t RowsOf(size_t partition) const {
    return PartitionBytes(shards_, partition) / sizeof(PackedRow);
  }
  uint64_t Rows() const {
    uint64_t rows = 0;
    for (size_t i = 0; i < shards_[0].partitions.size(); ++i) rows += RowsOf(i);
    return rows;
  }
  // Whether there is memory for one more.
  bool Fits(size_t partition) const {
    const uint64_t needed = GroupingBytes(PartitionBytes(shards_, partition));
    if (needed > options_.memory_bytes) {
      throw Error(
          "partition {} takes {} MB to sort, more than --memory; run again with a larger --memory",
          partition, needed >> 20);
    }
    uint64_t used = 0;
    for (const Task& task : running_) used += task.bytes;
    return running_.empty() || (used + needed <= options_.memory_bytes * 9 / 10 &&
                                running_.size() <= static_cast<size_t>(options_.threads));
  }
  void Start(ThreadPool& pool, size_t partition) {
    running_.push_back(
        {GroupingBytes(PartitionBytes(shards_, partition)), pool.Submit([this, partition] {
           GroupedPartition grouped = GroupPartition(shards_, partition, options_.shares);
           progress_.Add(RowsOf(partition));
           return grouped;
         })});
  }
  void TakeFirst() {
    ThrowIfInterrupted();
    Task first = std::move(running_.front());
    running_.pop_front();
    writer_.Append(first.future.get());
  }

  const std::vector<ShardState>& shards_;
  PackedWriter& writer_;
  PrecomputeOptions options_;
  Progress progress_;
  std::deque<Task> running_;
};

// Sorts and groups into out, as packed rows.
Manifest Join(const std::vector<ShardState>& shards, const std::string& work,
              const std::string& out, const PrecomputeOptions& options) {
  Manifest manifest;
  manifest.input = shards[0].fingerprint;
  manifest.shares = options.shares;
  Json identity = {{"input", manifest.input},
                   {"shards", shards.size()},
                   {"partitions", shards[0].partitions.size()},
                   {"val_share", options.shares.val},
                   {"test_share", options.shares.test}};
  PackedWriter writer(work + "/sorted", std::move(identity), options.flush_seconds);
  Grouping(shards, writer, options).Run();
  manifest.skipped = writer.skipped();
  for (const ShardState& shard : shards) {
    manifest.rows += shard.rows;
    manifest.skipped.Merge(shard.skipped);
  }
  if (writer.analyses() == 0) {
    throw Error("{}: the input has no valid row among {}; left out: {}", out, manifest.rows,
                manifest.skipped.empty() ? "nothing" : manifest.skipped.Text());
  }
  writer.Finish(out, std::move(manifest));
  return Manifest::Read(out);
}

Manifest JoinAs(const std::vector<ShardState>& shards, const std::string& out,
                const PrecomputeOptions& options) {
  const std::string work = WorkFolder(out);
  if (options.storage == Storage::kPacked) return Join(shards, work, out, options);
  const std::string packed = work + "/packed";
  MakeFolder(packed);
  if (!Manifest::Exists(packed)) Join(shards, work, packed, options);
  return Export(packed, out, {.storage = Storage::kPlanes});
}

}  // namespace

Manifest Precompute(const std::vector<std::string>& inputs, const std::string& out,
                    const PrecomputeOptions& given) {
  const PrecomputeOptions options = Completed(given);
  const std::vector<InputFile> files = FindInputs(inputs);
  const Json input = Fingerprint{files, options.rows}.ToJson();
  if (const auto there = AlreadyThere(out, input, options)) return *there;
  const WriteLock lock = WriteLock::OfFolder(WorkFolder(out));
  const std::vector<ShardState> shards = {
      MakeShard(WorkFolder(out) + "/shard", files, ForShard(1, 0, options, options.keep_shards))};
  Manifest manifest = JoinAs(shards, out, options);
  if (!options.keep_shards) fs::remove_all(WorkFolder(out));
  return manifest;
}

ShardState PrecomputeShard(const std::vector<std::string>& inputs, const std::string& out,
                           uint64_t shards, uint64_t shard, const PrecomputeOptions& given) {
  const PrecomputeOptions options = Completed(given);
  return MakeShard(fmt::format("{}/shard-{:04}-of-{:04}", out, shard, shards), FindInputs(inputs),
                   ForShard(shards, shard, options, true));
}

Manifest Merge(const std::vector<std::string>& folders, const std::string& out,
               const PrecomputeOptions& given) {
  const PrecomputeOptions options = Completed(given);
  const std::vector<ShardState> shards = FindShards(folders);
  CheckShards(shards);
  if (const auto there = AlreadyThere(out, shards[0].fingerprint, options)) return *there;
  const WriteLock lock = WriteLock::OfFolder(WorkFolder(out));
  Manifest manifest = JoinAs(shards, out, options);
  fs::remove_all(WorkFolder(out));
  return manifest;
}

}  // namespace kibitz::policy
