#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/job_group.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "students/policy/data/precompute.h"

namespace kibitz::cli {
namespace {

using policy::Manifest;
using Json = nlohmann::ordered_json;

// What precompute and merge share.
struct OutputOptions {
  std::string out;
  std::string memory = "2G";
  policy::PrecomputeOptions precompute;
};

void AddOutput(Fields& fields, OutputOptions& options) {
  fields.Add("out", options.out, "folder of the data set", {.required = true, .metavar = "DIR"});
  fields.Add("memory", options.memory, "max memory, such as 512M or 2G; the same for all shards",
             {.metavar = "SIZE"});
  fields.Add("work", options.precompute.work,
             "folder for unfinished work, on storage that all ranks share; default: out/work",
             {.metavar = "DIR"});
  fields.Add("flush_seconds", options.precompute.flush_seconds,
             "seconds between flushes: a kill loses no more work than that",
             {.min = 0, .max = 86400});
  fields.Add("threads", options.precompute.threads, "threads; 0: one for each core",
             {.min = 0, .max = 1024});
  fields.Add("val_share", options.precompute.shares.val,
             "share of the positions held out for validation", {.min = 0, .max = 0.9});
  fields.Add("test_share", options.precompute.shares.test,
             "share of the positions held out for tests", {.min = 0, .max = 0.9});
  fields.AddChoice("format", options.precompute.storage,
                   "packed: 28 bytes a position; planes: .npy arrays of 0 and 1",
                   {{"packed", policy::Storage::kPacked}, {"planes", policy::Storage::kPlanes}});
}

policy::PrecomputeOptions Completed(const OutputOptions& options) {
  policy::PrecomputeOptions precompute = options.precompute;
  const auto bytes = ParseBytes(options.memory);
  if (!bytes)
    throw Error::Usage("--memory is {}, expected a size such as 512M or 2G", options.memory);
  precompute.memory_bytes = *bytes;
  return precompute;
}

struct PrecomputeCommandOptions {
  std::vector<std::string> input;
  std::string rows = "0";
  uint64_t shards = 0;
  uint64_t shard = 0;
  OutputOptions output;
};

Fields FieldsOf(PrecomputeCommandOptions& options) {
  Fields fields;
  fields.Add("input", options.input,
             "evaluations: .parquet, .jsonl, .jsonl.zst, or folders of them",
             {.required = true, .positional = true, .metavar = "PATH"});
  fields.Add("rows", options.rows, "max rows to read, such as 1M; 0: all", {.metavar = "N"});
  fields.Add("shards", options.shards,
             "cut the input into N slices and read one of them; the ranks of a job read all",
             {.min = 0, .max = 1'000'000, .metavar = "N"});
  fields.Add("shard", options.shard, "which slice, from 0", {.min = 0, .metavar = "K"});
  fields.Add("keep", options.output.precompute.keep_shards,
             "keep the packed input rows (out/work)");
  AddOutput(fields, options.output);
  return fields;
}

struct MergeOptions {
  std::vector<std::string> shards;
  OutputOptions output;
};

Fields FieldsOf(MergeOptions& options) {
  Fields fields;
  fields.Add("shards", options.shards, "folders of shards, or folders that hold them",
             {.required = true, .positional = true, .metavar = "DIR"});
  AddOutput(fields, options.output);
  return fields;
}

void PrintSkipped(const SkipCounter& skipped) {
  if (!skipped.empty()) fmt::print("skipped: {}\n", skipped.Text());
}

int Report(const Manifest& manifest, const std::string& out, const Context& context) {
  if (context.json) {
    Json splits = Json::object();
    for (policy::Split split : policy::kSplits) {
      const policy::SplitCounts& counts = manifest.splits[static_cast<size_t>(split)];
      splits[std::string(NameOf(split))] = {{"positions", counts.positions},
                                            {"analyses", counts.analyses}};
    }
    PrintJson({{"rows", manifest.rows},
               {"positions", manifest.positions()},
               {"analyses", manifest.analyses()},
               {"splits", splits},
               {"skipped", manifest.skipped.ToJson()},
               {"folder", out}});
    return 0;
  }
  fmt::print("{}: {} rows, {} positions, {} analyses", out, manifest.rows, manifest.positions(),
             manifest.analyses());
  for (policy::Split split : policy::kSplits) {
    fmt::print("; {} {}", NameOf(split), manifest.splits[static_cast<size_t>(split)].positions);
  }
  fmt::print("\n");
  PrintSkipped(manifest.skipped);
  return 0;
}

int ReportShard(const policy::ShardState& shard, const Context& context) {
  if (context.json) {
    PrintJson({{"rows", shard.rows},
               {"shard", shard.shard},
               {"shards", shard.shards},
               {"skipped", shard.skipped.ToJson()},
               {"folder", shard.folder}});
    return 0;
  }
  fmt::print("{}: {} rows; join all {} with 'kibitz policy merge'\n", shard.folder, shard.rows,
             shard.shards);
  PrintSkipped(shard.skipped);
  return 0;
}

int RunPrecompute(const PrecomputeCommandOptions& options, const Context& context) {
  policy::PrecomputeOptions precompute = Completed(options.output);
  const auto rows = ParseCount(options.rows);
  if (!rows)
    throw Error::Usage("--rows is {}, expected a number such as 100000 or 1M", options.rows);
  precompute.rows = *rows;
  if (options.shard > 0 && options.shards == 0)
    throw Error::Usage("--shard is {}, but --shards is missing; give the number of slices",
                       options.shard);
  return RunInJob([&](JobGroup& job) {
    if (options.shards > 0 && job.ranks() == 1) {
      return ReportShard(PrecomputeShard(options.input, options.output.out, options.shards,
                                         options.shard, precompute),
                         context);
    }
    if (options.shard > 0)
      throw Error::Usage("--shard is {}, but {} ranks read all slices; leave it out", options.shard,
                         job.ranks());
    precompute.shards = options.shards;
    precompute.job = &job;
    const Manifest manifest = Precompute(options.input, options.output.out, precompute);
    return job.first() ? Report(manifest, options.output.out, context) : 0;
  });
}

int RunMerge(const MergeOptions& options, const Context& context) {
  return RunInJob([&](JobGroup& job) {
    policy::PrecomputeOptions precompute = Completed(options.output);
    precompute.job = &job;
    const Manifest manifest = Merge(options.shards, options.output.out, precompute);
    return job.first() ? Report(manifest, options.output.out, context) : 0;
  });
}

}  // namespace

Command PolicyPrecompute() {
  return MakeCommand<PrecomputeCommandOptions>(
      {.name = "policy precompute",
       .group = "Policy",
       .summary = "make a data set from the Lichess evaluation database",
       .details =
           "Writes every position once, with all analyses of it in the input, in shuffled order,\n"
           "split into train, val and test by the hash of the position. A run that was stopped or\n"
           "killed resumes when it is started again and gives the same bytes. With --shards and\n"
           "--shard it reads one slice of the input, on any machine, with any number of threads;\n"
           "'kibitz policy merge' joins the shards. Under mpirun or srun the ranks share the work\n"
           "and give the same bytes.",
       .example = "kibitz policy precompute evals.parquet --out data --test-share 0.2"},
      RunPrecompute);
}

Command PolicyMerge() {
  return MakeCommand<MergeOptions>(
      {.name = "policy merge",
       .group = "Policy",
       .summary = "join the shards of a precompute into a data set",
       .details =
           "Gives the same bytes as one precompute of the whole input. The shards stay. Under\n"
           "mpirun or srun the ranks share the work.",
       .example = "kibitz policy precompute evals.parquet --out shards --shards 2 --shard 0\n"
                  "  kibitz policy precompute evals.parquet --out shards --shards 2 --shard 1\n"
                  "  kibitz policy merge shards --out merged"},
      RunMerge);
}

}  // namespace kibitz::cli
