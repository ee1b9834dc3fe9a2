#include "students/policy/data/precompute.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/thread_pool.h"
#include "base/write_lock.h"
#include "students/policy/data/append_file.h"
#include "students/policy/data/export.h"
#include "students/policy/data/group.h"
#include "students/policy/data/packed_parts.h"
#include "students/policy/data/packed_writer.h"

namespace kibitz::policy {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kLateSeconds = 60;  // Until shared storage shows what another machine wrote.

// What becomes the data set; removed at the end.
std::string WorkFolder(const std::string& out) { return out + "/work"; }
// Everything else that is unfinished.
std::string Scratch(const std::string& out, const PrecomputeOptions& options) {
  return options.work.empty() ? WorkFolder(out) : options.work;
}

std::string PartFolder(const std::string& scratch, int rank, int ranks) {
  return fmt::format("{}/sorted-{:04}-of-{:04}", scratch, rank, ranks);
}

// Of --work only what a run makes there; `shards`: those too, as a merge does not make them.
void RemoveWork(const std::string& out, const PrecomputeOptions& options, bool shards = true) {
  fs::remove_all(WorkFolder(out));
  if (options.work.empty() || !fs::exists(options.work)) return;
  for (const auto& entry : fs::directory_iterator(options.work)) {
    const std::string name = entry.path().filename().string();
    const bool of_shards = name.starts_with("shard-") || name.starts_with("lines-");
    if (name.starts_with("sorted-") || (shards && of_shards)) fs::remove_all(entry.path());
  }
}

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

ShardOptions ForShard(uint64_t shards, uint64_t shard, const std::string& scratch,
                      const PrecomputeOptions& options) {
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
          .durable = options.keep_shards,
          .scratch = scratch,
          .piece_bytes = options.piece_bytes};
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
      RemoveWork(out, options);
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

// Groups the partitions from `first` to `last` on the pool, appends them in order.
class Grouping {
 public:
  Grouping(const std::vector<ShardState>& shards, size_t first, size_t last, PackedWriter& writer,
           const PrecomputeOptions& options)
      : shards_(shards),
        first_(first),
        last_(last),
        writer_(writer),
        options_(options),
        progress_("rows sorted", Rows()) {}

  void Run() {
    ThreadPool pool(options_.threads);
    const size_t begin = first_ + writer_.next_partition();
    for (size_t i = first_; i < begin; ++i) progress_.Add(RowsOf(i));
    try {
      for (size_t i = begin; i < last_; ++i) {
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
    for (size_t i = first_; i < last_; ++i) rows += RowsOf(i);
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
           std::unique_ptr<GroupingSpace> space = TakeSpace();
           GroupedPartition grouped = GroupPartition(shards_, partition, options_.shares, *space);
           progress_.Add(RowsOf(partition));
           const std::lock_guard lock(mutex_);
           spaces_.push_back(std::move(space));
           return grouped;
         })});
  }
  std::unique_ptr<GroupingSpace> TakeSpace() {
    const std::lock_guard lock(mutex_);
    if (spaces_.empty()) return std::make_unique<GroupingSpace>();
    std::unique_ptr<GroupingSpace> space = std::move(spaces_.back());
    spaces_.pop_back();
    return space;
  }
  void TakeFirst() {
    ThrowIfInterrupted();
    Task first = std::move(running_.front());
    running_.pop_front();
    writer_.Append(first.future.get());
  }

  const std::vector<ShardState>& shards_;
  size_t first_;
  size_t last_;
  PackedWriter& writer_;
  PrecomputeOptions options_;
  Progress progress_;
  std::deque<Task> running_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<GroupingSpace>> spaces_;  // Not in use; guarded by mutex_.
};

void CheckNotEmpty(const Manifest& manifest, uint64_t analyses, const std::string& out) {
  if (analyses > 0) return;
  throw Error("{}: the input has no valid row among {}; left out: {}", out, manifest.rows,
              manifest.skipped.empty() ? "nothing" : manifest.skipped.Text());
}

// The work of one precompute or merge, shared with the other ranks.
class SharedRun {
 public:
  SharedRun(std::string out, const PrecomputeOptions& options)
      : out_(std::move(out)),
        options_(options),
        job_(options.job != nullptr ? *options.job : alone_),
        scratch_(Scratch(out_, options)) {}

  // What rank 0 finds is the plan of all: "" when everything is there. It has the lock from then
  // on.
  std::string Plan(const std::function<std::string()>& find) {
    std::string plan;
    if (job_.first()) {
      plan = find();
      if (!plan.empty()) lock_.emplace(WriteLock::OfFolder(WorkFolder(out_)));
    }
    return job_.Meet(plan)[0];
  }

  // The number of slices: as in a run before, which may have had other ranks.
  uint64_t Shards(const Json& input) const {
    if (options_.shards > 0) return options_.shards;
    if (fs::is_directory(scratch_)) {
      for (const auto& entry : fs::directory_iterator(scratch_)) {
        const std::string folder = entry.path().string();
        if (!entry.is_directory() || !ShardState::Exists(folder)) continue;
        const ShardState shard = ShardState::Read(folder);
        if (Fingerprint::Change(shard.fingerprint, input).empty()) return shard.shards;
      }
    }
    return static_cast<uint64_t>(job_.ranks());
  }

  // Every rank makes its shards, then waits for the others' and reads them.
  std::vector<ShardState> MakeShards(const std::vector<InputFile>& files, const Json& input,
                                     uint64_t shards) {
    for (auto i = static_cast<uint64_t>(job_.rank()); i < shards;
         i += static_cast<uint64_t>(job_.ranks())) {
      MakeShard(ShardFolder(scratch_, shards, i), files, input,
                ForShard(shards, i, scratch_, options_));
    }
    job_.Meet();
    std::vector<ShardState> made;
    for (uint64_t i = 0; i < shards; ++i)
      made.push_back(ReadSoon(ShardFolder(scratch_, shards, i)));
    return made;
  }

  // Sorts and groups into out.
  Manifest Join(const std::vector<ShardState>& shards) {
    if (options_.storage == Storage::kPacked) {
      JoinPacked(shards, out_);
    } else {
      const std::string packed = WorkFolder(out_) + "/packed";
      MakeFolder(packed);
      if (!Manifest::Exists(packed)) JoinPacked(shards, packed);
      if (job_.first()) Export(packed, out_, {.storage = Storage::kPlanes});
    }
    job_.Meet();
    return Manifest::Read(out_);
  }

  void Remove(bool shards) {
    if (job_.first()) RemoveWork(out_, options_, shards);
    job_.Meet();
  }

 private:
  static ShardState ReadSoon(const std::string& folder) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kLateSeconds);
    while (true) {
      if (ShardState::Exists(folder)) {
        ShardState shard = ShardState::Read(folder);
        if (shard.done) return shard;
      }
      if (std::chrono::steady_clock::now() > end) {
        throw Error(
            "{}: another rank made this shard, but it is not here; put --work or --out on "
            "storage that all machines share",
            folder);
      }
      ThrowIfInterrupted();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  void JoinPacked(const std::vector<ShardState>& shards, const std::string& to) {
    const auto rank = static_cast<size_t>(job_.rank());
    const auto ranks = static_cast<size_t>(job_.ranks());
    const size_t partitions = shards[0].partitions.size();
    Manifest manifest;
    manifest.input = shards[0].fingerprint;
    manifest.shares = options_.shares;
    for (const ShardState& shard : shards) {
      manifest.rows += shard.rows;
      manifest.skipped.Merge(shard.skipped);
    }
    Json identity = {{"input", manifest.input},
                     {"shards", shards.size()},
                     {"partitions", partitions},
                     {"val_share", options_.shares.val},
                     {"test_share", options_.shares.test},
                     {"rank", rank},
                     {"ranks", ranks}};
    // A single rank's files become the data set.
    const std::string folder =
        ranks == 1 ? WorkFolder(out_) + "/sorted" : PartFolder(scratch_, job_.rank(), job_.ranks());
    PackedWriter writer(folder, std::move(identity), options_.flush_seconds);
    Grouping(shards, partitions * rank / ranks, partitions * (rank + 1) / ranks, writer, options_)
        .Run();
    if (ranks == 1) {
      manifest.skipped.Merge(writer.skipped());
      CheckNotEmpty(manifest, writer.analyses(), out_);
      writer.Finish(to, std::move(manifest));
    } else {
      writer.Close();
      JoinRanks(to, std::move(manifest));
    }
  }

  void JoinRanks(const std::string& to, Manifest manifest) {
    const std::string joined = WorkFolder(out_) + "/joined";
    if (job_.first()) {
      fs::remove_all(joined);
      MakeFolder(joined);
    }
    job_.Meet();
    std::vector<PackedPart> parts;
    uint64_t analyses = 0;
    for (int i = 0; i < job_.ranks(); ++i) {
      parts.push_back(ReadPart(PartFolder(scratch_, i, job_.ranks())));
      manifest.skipped.Merge(parts.back().skipped);
      for (const SplitCounts& counts : parts.back().counts) analyses += counts.analyses;
    }
    CheckNotEmpty(manifest, analyses, out_);
    JoinParts(parts, joined, to, std::move(manifest), job_);
  }

  std::string out_;
  PrecomputeOptions options_;
  JobGroup alone_;
  JobGroup& job_;
  std::string scratch_;
  std::optional<WriteLock> lock_;
};

}  // namespace

Manifest Precompute(const std::vector<std::string>& inputs, const std::string& out,
                    const PrecomputeOptions& given) {
  const PrecomputeOptions options = Completed(given);
  const std::vector<InputFile> files = FindInputs(inputs);
  const Json input = Fingerprint{files, options.rows}.ToJson();
  SharedRun run(out, options);
  const std::string shards = run.Plan([&] {
    return AlreadyThere(out, input, options) ? std::string() : std::to_string(run.Shards(input));
  });
  if (shards.empty()) return Manifest::Read(out);
  Manifest manifest = run.Join(run.MakeShards(files, input, std::stoull(shards)));
  if (!options.keep_shards) run.Remove(true);
  return manifest;
}

ShardState PrecomputeShard(const std::vector<std::string>& inputs, const std::string& out,
                           uint64_t shards, uint64_t shard, const PrecomputeOptions& given) {
  PrecomputeOptions options = Completed(given);
  options.keep_shards = true;
  const std::vector<InputFile> files = FindInputs(inputs);
  const Json input = Fingerprint{files, options.rows}.ToJson();
  return MakeShard(ShardFolder(out, shards, shard), files, input,
                   ForShard(shards, shard, options.work.empty() ? out : options.work, options));
}

Manifest Merge(const std::vector<std::string>& folders, const std::string& out,
               const PrecomputeOptions& given) {
  const PrecomputeOptions options = Completed(given);
  const std::vector<ShardState> shards = FindShards(folders);
  CheckShards(shards);
  SharedRun run(out, options);
  const std::string plan = run.Plan([&] {
    return AlreadyThere(out, shards[0].fingerprint, options) ? std::string() : std::string("join");
  });
  if (plan.empty()) return Manifest::Read(out);
  Manifest manifest = run.Join(shards);
  run.Remove(false);
  return manifest;
}

}  // namespace kibitz::policy
