#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/record_run.h"
#include "oracles/records/lc0_records.h"

namespace kibitz::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Lc0Options {
  std::vector<std::string> files;
  RecordOutput output;
  oracles::Lc0RecordOptions records;
};

Fields FieldsOf(Lc0Options& options) {
  Fields fields;
  fields.Add("files", options.files, "lc0 training data: .gz and .tar files, or folders of them",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.Add("out", options.output.out, "Parquet file for the positions of the games",
             {.required = true, .metavar = "FILE"});
  fields.Add("fresh", options.output.fresh, "replace existing outputs");
  fields.Add("policy_out", options.records.policy,
             "Parquet file for the visits of every move, as 'policy precompute' reads it",
             {.metavar = "FILE"});
  fields.Add("pgn_out", options.records.pgn, "file for the games as PGN", {.metavar = "FILE"});
  fields.AddAll(oracles::FieldsOf(options.records));
  fields.Add("threads", options.records.threads, "threads; 0: one for each core", {.min = 0});
  return fields;
}

void PrintDone(const Lc0Options& options, const Json& report, const SkipCounter& skipped,
               const Context& context) {
  if (context.json) {
    PrintJson(report);
    return;
  }
  const auto count = [&](const char* key) { return report[key].get<int64_t>(); };
  fmt::print("{}: {} positions of {} games\n", options.output.out, count("positions"),
             count("games"));
  if (!options.records.policy.empty()) {
    fmt::print("{}: {} rows; train with --temperature {:.0f}\n", options.records.policy,
               count("policy_rows"), oracles::kVisitTemperature);
  }
  if (!options.records.pgn.empty())
    fmt::print("{}: {} games\n", options.records.pgn, count("games"));
  if (report.contains("kept")) {
    fmt::print("already complete\n");
    return;
  }
  fmt::print("{} rows of {} files in {}, {} rows/s\n", count("rows"), count("files"),
             HumanSeconds(report["seconds"]), HumanCount(report["rows_per_second"]));
  if (!skipped.empty()) fmt::print("skipped: {}\n", skipped.Text());
}

// A file that is there stays: only the one behind --out says how it was made.
void CheckOutputs(const Lc0Options& options, bool finished) {
  for (const std::string& path : {options.records.policy, options.records.pgn}) {
    if (path.empty()) continue;
    const bool there = std::filesystem::exists(path);
    if (finished && !there) {
      throw Error("{}: missing, though {} is complete; give --fresh to make both again", path,
                  options.output.out);
    }
    if (!finished && there && !options.output.fresh) {
      throw Error("{}: the file exists; remove it, choose another name, or give --fresh", path);
    }
  }
}

int RunLc0(const Lc0Options& options, const Context& context) {
  oracles::CheckParquetName(options.output.out);
  if (!options.records.policy.empty()) oracles::CheckParquetName(options.records.policy);
  oracles::Lc0RecordOptions records = options.records;
  records.games = options.output.out;
  records.note = {{"command", "oracle lc0"},
                  {"options", oracles::FieldsOf(records).ToTree()},
                  {"policy_out", records.policy},
                  {"pgn_out", records.pgn},
                  {"inputs", DescribeInputs(options.files)}};
  oracles::PartStore store(options.output.out, records.note, options.output.fresh);
  CheckOutputs(options, store.finished());
  SkipCounter skipped;
  if (store.finished()) {
    Json report = store.summary();
    report["kept"] = true;
    PrintDone(options, report, skipped, context);
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  Progress progress("rows", 0);
  const oracles::Lc0Records made = MakeLc0Records(options.files, records, skipped, progress);
  progress.Finish();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Json report = {{"out", options.output.out}};
  report.update(made.ToJson());
  report["skipped"] = skipped.ToJson();
  store.Finish(report);
  report["seconds"] = seconds;
  report["rows_per_second"] = static_cast<double>(made.rows) / std::max(seconds, 1e-9);
  PrintDone(options, report, skipped, context);
  return 0;
}

}  // namespace

Command OracleLc0() {
  return MakeCommand<Lc0Options>(
      {.name = "oracle lc0",
       .group = "Teachers",
       .summary = "turn lc0's training data into training records",
       .details =
           "Reads rows of version 6 in .gz files, one game each, and in tar archives of "
           "them, as lc0\n"
           "publishes its self-play. Writes a row for each position, as 'oracle games' "
           "does: the move\n"
           "played, the best move, win, draw and loss. --policy-out writes the visits of "
           "every move as\n"
           "soft labels for 'policy precompute', --pgn-out the games. Bad rows are left out "
           "and counted\n"
           "by reason. Files appear when complete; a finished command, given again, does "
           "nothing, an\n"
           "interrupted one starts over: give each archive of a large download its own --out.",
       .example = "kibitz oracle lc0 examples/lc0/game.gz --out lc0.parquet --pgn-out lc0.pgn"},
      RunLc0);
}

}  // namespace kibitz::cli
