#include "students/twenty48/data/pack_writer.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/thread_pool.h"
#include "base/write_lock.h"
#include "io/tables/npy.h"
#include "io/tables/sqlite.h"
#include "oracles/twenty48/raw_games.h"
#include "students/twenty48/data/pack.h"
#include "students/twenty48/data/step_row.h"

namespace kibitz::twenty48 {
namespace {

namespace fs = std::filesystem;
using oracles::RawGame;
using oracles::RawStep;

// Writes rows to one file or to shards, which get their names when all are complete.
class RowWriter {
 public:
  RowWriter(std::string folder, int64_t shard_rows)
      : folder_(std::move(folder)), shard_rows_(static_cast<uint64_t>(shard_rows)) {}

  void Append(std::span<const StepRow> rows) {
    while (!rows.empty()) {
      if (files_.empty() || (shard_rows_ > 0 && files_.back()->rows() == shard_rows_)) Open();
      size_t count = rows.size();
      if (shard_rows_ > 0) count = std::min(count, shard_rows_ - files_.back()->rows());
      files_.back()->Append(std::as_bytes(rows.first(count)));
      rows = rows.subspan(count);
      total_ += count;
    }
  }
  void Commit() {
    if (files_.empty()) Open();
    for (const auto& file : files_) file->Commit();
  }
  uint64_t rows() const { return total_; }
  uint64_t files() const { return files_.size(); }

 private:
  void Open() {
    const std::string name =
        shard_rows_ == 0 ? "steps.npy" : fmt::format("steps-{:05}.npy", files_.size());
    files_.push_back(std::make_unique<io::NpyWriter>(folder_ + "/" + name, AlignedLayout()));
  }

  std::string folder_;
  uint64_t shard_rows_;
  uint64_t total_ = 0;
  std::vector<std::unique_ptr<io::NpyWriter>> files_;
};

// Valuation types by number. Every pack has the first three.
class TypeNames {
 public:
  uint8_t NumberOf(const std::string& name) {
    const auto found = std::ranges::find(names_, name);
    if (found != names_.end()) return static_cast<uint8_t>(found - names_.begin());
    if (names_.size() == 256) throw Error("more than 256 valuation types, such as '{}'", name);
    names_.push_back(name);
    return static_cast<uint8_t>(names_.size() - 1);
  }
  void Write(const std::string& path) const {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (size_t i = 0; i < names_.size(); ++i) object[names_[i]] = i;
    WriteFileAtomically(path, object.dump(2));
  }

 private:
  std::vector<std::string> names_ = {"search", "tuple11", "tuple10"};
};

void WriteMetadata(const std::string& folder, const std::vector<RunInfo>& runs) {
  const std::string path = folder + "/metadata.db";
  const std::string aside = path + ".tmp";
  fs::remove(aside);
  {
    io::SqliteDb db(aside, io::SqliteDb::Mode::kWrite);
    db.Transact([&] {
      db.Execute(
          "CREATE TABLE runs (id INTEGER PRIMARY KEY, seed BIGINT NOT NULL, steps INT NOT NULL, "
          "max_score INT NOT NULL, highest_tile INT NOT NULL);"
          "CREATE TABLE session (meta_key TEXT PRIMARY KEY, meta_value TEXT NOT NULL)");
      auto insert = db.Prepare("INSERT INTO runs VALUES (?, ?, ?, ?, ?)");
      for (const RunInfo& run : runs) {
        insert.Bind(1, int64_t{run.id});
        insert.Bind(2, run.seed);
        insert.Bind(3, run.steps);
        insert.Bind(4, run.max_score);
        insert.Bind(5, run.highest_tile);
        insert.Run();
      }
    });
  }
  fs::rename(aside, path);
}

// Removes the files of an older pack, or throws.
void PrepareFolder(const std::string& out, bool overwrite) {
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::directory_iterator(out)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("steps") || name == "metadata.db" || name == "valuation_types.json") {
      old.push_back(entry.path());
    }
  }
  if (!old.empty() && !overwrite) {
    throw Error("{}: has a pack already ({}); give --overwrite to replace it", out,
                old.front().filename().string());
  }
  for (const fs::path& path : old) fs::remove(path);
}

std::vector<StepRow> RowsOf(const RawGame& game, const std::string& place, uint32_t run,
                            TypeNames& names) {
  std::vector<StepRow> rows;
  rows.reserve(game.steps.size());
  for (const RawStep& step : game.steps) {
    StepRow row = RowOf(step.board).OrThrow(fmt::format("{}, step {}", place, step.step_index));
    row.run_id = run;
    row.step_index = step.step_index;
    row.move_dir = static_cast<uint8_t>(step.move);
    row.valuation_type = names.NumberOf(step.valuation_type);
    row.seed = step.seed;
    for (size_t i = 0; i < 4; ++i) {
      if (!step.branch_evs[i]) continue;
      row.branch_evs[i] = static_cast<float>(*step.branch_evs[i]);
      row.ev_legal = static_cast<uint8_t>(row.ev_legal | 1U << i);
    }
    rows.push_back(row);
  }
  return rows;
}

// Reads games on the threads of a pool and returns them in order.
class GameReader {
 public:
  GameReader(const std::vector<std::string>& paths, int threads) : paths_(paths), pool_(threads) {}

  RawGame Next() {
    while (started_ < paths_.size() && running_.size() < 2 * static_cast<size_t>(pool_.size())) {
      running_.push_back(
          pool_.Submit([path = paths_[started_]] { return oracles::ReadRawGame(path); }));
      ++started_;
    }
    std::future<RawGame> first = std::move(running_.front());
    running_.pop_front();
    return first.get();
  }

 private:
  const std::vector<std::string>& paths_;
  size_t started_ = 0;
  ThreadPool pool_;
  std::deque<std::future<RawGame>> running_;
};

}  // namespace

PackReport PackRawGames(const std::string& raws, const std::string& out,
                        const PackOptions& options) {
  PackReport report;
  std::vector<std::string> orphans;
  const std::vector<std::string> paths =
      oracles::FindRawGames(raws, options.skip_bad ? &orphans : nullptr);
  for (const std::string& path : orphans) {
    report.skipped.push_back(path + ": its .meta.json is missing");
  }
  if (paths.empty()) throw Error("{}: no *.meta.json there; expected games of an oracle", raws);
  const WriteLock lock = WriteLock::OfFolder(out);
  PrepareFolder(out, options.overwrite);
  RowWriter writer(out, options.shard_rows);
  TypeNames names;
  std::vector<RunInfo> runs;
  GameReader reader(paths, options.threads);
  Progress progress("games", paths.size());
  for (const std::string& path : paths) {
    ThrowIfInterrupted();
    progress.Add(1);
    try {
      const RawGame game = reader.Next();
      const auto id = static_cast<uint32_t>(runs.size());
      writer.Append(RowsOf(game, path, id, names));
      runs.push_back({.id = id,
                      .seed = game.meta.seed,
                      .steps = static_cast<int64_t>(game.steps.size()),
                      .max_score = game.meta.score,
                      .highest_tile = game.meta.max_tile});
    } catch (const Error& error) {
      if (!options.skip_bad) throw;
      report.skipped.push_back(error.message());
    }
  }
  progress.Finish();
  if (runs.empty())
    throw Error("{}: every game has a fault; the first: {}", raws, report.skipped[0]);
  writer.Commit();
  WriteMetadata(out, runs);
  names.Write(out + "/valuation_types.json");
  report.runs = runs.size();
  report.rows = writer.rows();
  report.shards = writer.files();
  return report;
}

PackReport MergePacks(const std::vector<std::string>& packs, const std::string& out,
                      const PackOptions& options) {
  std::vector<Pack> inputs;
  uint64_t total = 0;
  for (const std::string& folder : packs) {
    if (fs::exists(out) && fs::equivalent(folder, out)) {
      throw Error::Usage("{} is both read and written", out);
    }
    inputs.push_back(Pack::Open(folder));
    total += inputs.back().rows();
  }
  const WriteLock lock = WriteLock::OfFolder(out);
  PrepareFolder(out, options.overwrite);
  RowWriter writer(out, options.shard_rows);
  TypeNames names;
  std::vector<RunInfo> runs;
  Progress progress("rows", total);
  for (const Pack& pack : inputs) {
    pack.CheckRows();
    std::map<uint32_t, uint32_t> renumbered;
    for (RunInfo run : pack.runs()) {
      const auto id = static_cast<uint32_t>(runs.size());
      renumbered[run.id] = id;
      run.id = id;
      runs.push_back(run);
    }
    for (uint64_t i = 0; i < pack.rows(); ++i) {
      if (i % 65536 == 0) ThrowIfInterrupted();
      StepRow row = pack.Row(i);
      row.run_id = renumbered.at(row.run_id);
      row.valuation_type = names.NumberOf(pack.valuation_types()[row.valuation_type]);
      writer.Append({&row, 1});
      progress.Add(1);
    }
  }
  progress.Finish();
  writer.Commit();
  WriteMetadata(out, runs);
  names.Write(out + "/valuation_types.json");
  return {.runs = runs.size(), .rows = writer.rows(), .shards = writer.files(), .skipped = {}};
}

}  // namespace kibitz::twenty48
