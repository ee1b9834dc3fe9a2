#include "cli/record_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/job_group.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "io/bytes/fingerprint.h"

namespace kibitz::cli {
namespace {

using Json = nlohmann::ordered_json;

void PrintDone(const RecordRun& run, const Json& report, const SkipCounter& skipped,
               const Context& context) {
  if (context.json) {
    PrintJson(report);
    return;
  }
  fmt::print("{}: {} rows of {} {}", run.output.out, report.value("rows", int64_t{0}),
             report.value(run.unit, int64_t{0}), run.unit);
  if (report.value("duplicates", int64_t{0}) > 0) {
    fmt::print(", {} duplicates dropped", report["duplicates"].get<int64_t>());
  }
  if (report.contains("kept")) {
    fmt::print("; already complete\n");
    return;
  }
  fmt::print("\n{} positions searched in {}, {} positions/s", report["asked"].get<int64_t>(),
             HumanSeconds(report["seconds"]), HumanCount(report["positions_per_second"]));
  if (report["parts_kept"] > 0) {
    fmt::print("; resumed with {} parts", report["parts_kept"].get<int64_t>());
  }
  fmt::print("\n");
  if (report["engine_failures"] > 0) {
    fmt::print("engines that failed and were restarted: {}\n",
               report["engine_failures"].get<int>());
  }
  if (!skipped.empty()) fmt::print("skipped: {}\n", skipped.Text());
}

}  // namespace

Fields FieldsOf(RecordOutput& output) {
  Fields fields;
  fields.Add("out", output.out,
             "file for the records; an unfinished run keeps its parts in FILE.parts",
             {.required = true, .metavar = "FILE"});
  fields.Add("fresh", output.fresh, "discard an existing output and its parts, and start over");
  fields.AddAll(FieldsOf(output.slice));
  return fields;
}

Json DescribeInputs(const std::vector<std::string>& paths) {
  Json inputs = io::FingerprintsOf(paths);
  for (size_t i = 0; i < paths.size(); ++i) inputs[i]["path"] = paths[i];
  for (Json& input : inputs) input.erase("name");
  return inputs;
}

namespace {

using Clock = std::chrono::steady_clock;

struct SliceWork {
  RecordWork work;
  int64_t kept = 0;    // Parts found at the start.
  double seconds = 0;  // Of all work.
};

// Makes this process's slice of the parts.
SliceWork MakeSlice(const RecordRun& run, const Slice& slice) {
  const oracles::PartStore parts(run.output.out, run.stored_options, false, slice);
  return {.work = parts.finished() ? RecordWork() : run.work(parts), .kept = parts.kept()};
}

// The sum over all ranks.
RecordWork SumOf(JobGroup& job, const RecordWork& own) {
  RecordWork sum;
  for (const std::string& text : job.Meet(fmt::format("{} {}", own.positions, own.failures))) {
    const auto words = SplitWords(text);
    sum.positions += ParseInt(words[0]).value_or(0);
    sum.failures += static_cast<int>(ParseInt(words[1]).value_or(0));
  }
  return sum;
}

int PrintSlice(const RecordRun& run, const SliceWork& made, const Context& context) {
  const SliceOptions& slice = run.output.slice;
  if (context.json) {
    PrintJson({{"out", run.output.out},
               {"shards", slice.shards},
               {"shard", slice.shard},
               {"asked", made.work.positions},
               {"engine_failures", made.work.failures}});
  } else {
    fmt::print(
        "{}: shard {} of {} is complete, {} positions searched; after the last one, the same "
        "command without --shards joins them\n",
        run.output.out, slice.shard, slice.shards, made.work.positions);
  }
  return 0;
}

int Finish(const RecordRun& run, const SkipCounter& skipped, const Context& context,
           const std::function<SliceWork(const oracles::PartStore&)>& work) {
  oracles::PartStore parts(run.output.out, run.stored_options, run.output.fresh);
  if (parts.finished()) {
    Json report = parts.summary();
    report["kept"] = true;
    PrintDone(run, report, skipped, context);
    return 0;
  }
  const SliceWork done = work(parts);
  const oracles::Joined joined = run.join(parts);
  Json summary = {
      {"out", run.output.out},
      {"rows", joined.rows},
      {run.unit, joined.units},
      {"duplicates",
       joined.duplicates + static_cast<int64_t>(skipped.CountOf(oracles::kDuplicateReason))}};
  if (!joined.results.empty()) summary["results"] = joined.results;
  summary["skipped"] = skipped.ToJson();
  parts.Finish(summary);
  Json report = summary;
  report["asked"] = done.work.positions;
  report["seconds"] = done.seconds;
  report["positions_per_second"] =
      static_cast<double>(done.work.positions) / std::max(done.seconds, 1e-9);
  report["parts_kept"] = done.kept;
  report["engine_failures"] = done.work.failures;
  PrintDone(run, report, skipped, context);
  return 0;
}

// The ranks of a job.
int RunRanks(RecordRun run, const SkipCounter& skipped, const Context& context, JobGroup& job) {
  if (job.first()) {  // Makes or clears the folder.
    const oracles::PartStore parts(run.output.out, run.stored_options, run.output.fresh);
  }
  run.output.fresh = false;
  job.Meet();
  const auto start = Clock::now();
  SliceWork made = MakeSlice(run, run.output.slice.In(job));
  made.work = SumOf(job, made.work);
  made.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  int code = 0;
  if (job.first()) code = Finish(run, skipped, context, [&](const auto&) { return made; });
  job.Meet();
  return code;
}

}  // namespace

int Run(const RecordRun& run, const SkipCounter& skipped, const Context& context) {
  return RunInJob([&](JobGroup& job) {
    const Slice slice = run.output.slice.In(job);
    if (job.ranks() > 1) return RunRanks(run, skipped, context, job);
    if (slice.whole()) {
      return Finish(run, skipped, context, [&](const oracles::PartStore& parts) {
        const auto start = Clock::now();
        const RecordWork work = run.work(parts);
        return SliceWork{work, parts.kept(),
                         std::chrono::duration<double>(Clock::now() - start).count()};
      });
    }
    if (run.output.fresh) {
      throw Error::Usage("--fresh would discard the other shards too; remove {} and {}.parts first",
                         run.output.out, run.output.out);
    }
    return PrintSlice(run, MakeSlice(run, slice), context);
  });
}

Fields FieldsOf(PositionInput& input) {
  Fields fields;
  fields.Add("files", input.files,
             "games or positions: PGN, Parquet games (file or folder), FEN or EPD lines",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.AddAll(oracles::FieldsOf(input.sampling));
  fields.Add("part_positions", input.part_positions, "positions in a part, the unit of resuming",
             {.min = 1});
  return fields;
}

int Run(const PositionRun& run, const Context& context) {
  oracles::Sampling sampling = run.input.sampling;
  const Json stored_options = {{"command", run.command},
                               {"options", oracles::FieldsOf(sampling).ToTree()},
                               {"part_positions", run.input.part_positions},
                               {"inputs", DescribeInputs(run.input.files)},
                               {"teacher", run.teachers}};
  SkipCounter skipped;
  const auto work = [&](const oracles::PartStore& parts) {
    const auto positions = oracles::SamplePositions(run.input.files, sampling, skipped);
    Progress progress("positions", positions.size());
    const RecordWork done = run.judge(positions, parts, progress);
    progress.Finish();
    return done;
  };
  return Run({.output = run.output,
              .stored_options = stored_options,
              .work = work,
              .join = run.join,
              .unit = "positions"},
             skipped, context);
}

}  // namespace kibitz::cli
