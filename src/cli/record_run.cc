#include "cli/record_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
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
  return fields;
}

Json DescribeInputs(const std::vector<std::string>& paths) {
  Json inputs = io::FingerprintsOf(paths);
  for (size_t i = 0; i < paths.size(); ++i) inputs[i]["path"] = paths[i];
  for (Json& input : inputs) input.erase("name");
  return inputs;
}

int Run(const RecordRun& run, const SkipCounter& skipped, const Context& context) {
  oracles::PartStore parts(run.output.out, run.stored_options, run.output.fresh);
  if (parts.finished()) {
    Json report = parts.summary();
    report["kept"] = true;
    PrintDone(run, report, skipped, context);
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  const RecordWork work = run.work(parts);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
  report["asked"] = work.positions;
  report["seconds"] = seconds;
  report["positions_per_second"] = static_cast<double>(work.positions) / std::max(seconds, 1e-9);
  report["parts_kept"] = parts.kept();
  report["engine_failures"] = work.failures;
  PrintDone(run, report, skipped, context);
  return 0;
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
