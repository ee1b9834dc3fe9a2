#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "students/twenty48/data/pack.h"
#include "students/twenty48/data/pack_writer.h"

namespace kibitz::cli {
namespace {

using twenty48::Pack;
using twenty48::PackReport;
using Json = nlohmann::ordered_json;

struct OutputOptions {
  std::string out;
  twenty48::PackOptions pack;
};

void AddOutput(Fields& fields, OutputOptions& options) {
  fields.Add("out", options.out, "folder of the pack", {.required = true, .metavar = "DIR"});
  fields.Add("shard_rows", options.pack.shard_rows, "max rows in a file; 0: one file", {.min = 0});
  fields.Add("overwrite", options.pack.overwrite, "replace an existing pack");
}

struct PackCommandOptions {
  std::string raws;
  OutputOptions output;
};

Fields FieldsOf(PackCommandOptions& options) {
  Fields fields;
  fields.Add("raws", options.raws, "folder with the games, subfolders included",
             {.required = true, .positional = true, .metavar = "DIR"});
  AddOutput(fields, options.output);
  fields.Add("skip_bad", options.output.pack.skip_bad,
             "leave out games with a fault and list them, instead of refusing");
  fields.Add("threads", options.output.pack.threads, "games read at a time; 0: one per core",
             {.min = 0, .max = 1024});
  return fields;
}

struct MergeOptions {
  std::vector<std::string> packs;
  OutputOptions output;
};

Fields FieldsOf(MergeOptions& options) {
  Fields fields;
  fields.Add("packs", options.packs, "packs to join",
             {.required = true, .positional = true, .metavar = "DIR"});
  AddOutput(fields, options.output);
  return fields;
}

struct InspectOptions {
  std::string pack;
  bool check = true;
};

Fields FieldsOf(InspectOptions& options) {
  Fields fields;
  fields.Add("pack", options.pack, "folder of the pack",
             {.required = true, .positional = true, .metavar = "DIR"});
  fields.Add("check", options.check, "validate every row");
  return fields;
}

int Tell(const PackReport& report, const std::string& out, const Context& context) {
  for (const std::string& problem : report.skipped) LogWarn("{}; game left out", problem);
  if (context.json) {
    PrintJson({{"runs", report.runs},
               {"rows", report.rows},
               {"shards", report.shards},
               {"skipped", report.skipped},
               {"folder", out}});
  } else {
    fmt::print("{}: {} games, {} rows, {} file{}", out, report.runs, report.rows, report.shards,
               report.shards == 1 ? "" : "s");
    if (!report.skipped.empty()) fmt::print("; {} games left out", report.skipped.size());
    fmt::print("\n");
  }
  return 0;
}

int RunPack(const PackCommandOptions& options, const Context& context) {
  twenty48::PackOptions pack = options.output.pack;
  if (pack.threads == 0) pack.threads = HardwareThreads();
  return Tell(PackRawGames(options.raws, options.output.out, pack), options.output.out, context);
}

int RunMerge(const MergeOptions& options, const Context& context) {
  return Tell(MergePacks(options.packs, options.output.out, options.output.pack),
              options.output.out, context);
}

// Counts over all rows.
struct Counts {
  std::array<uint64_t, 4> moves{};
  std::map<int, uint64_t> ranks;
  std::map<std::string, uint64_t> types;
};

Counts CountRows(const Pack& pack) {
  Counts counts;
  for (uint64_t i = 0; i < pack.rows(); ++i) {
    const twenty48::StepRow row = pack.Row(i);
    ++counts.moves[row.move_dir];
    ++counts.ranks[row.max_rank];
    ++counts.types[pack.valuation_types()[row.valuation_type]];
  }
  return counts;
}

double MeanScore(const Pack& pack) {
  double sum = 0;
  for (const twenty48::RunInfo& run : pack.runs()) sum += static_cast<double>(run.max_score);
  return pack.runs().empty() ? 0 : sum / static_cast<double>(pack.runs().size());
}

int RunInspect(const InspectOptions& options, const Context& context) {
  const Pack pack = Pack::Open(options.pack);
  Json object = {{"folder", options.pack},        {"runs", pack.runs().size()},
                 {"rows", pack.rows()},           {"shards", pack.shards()},
                 {"row_bytes", pack.row_bytes()}, {"mean_score", MeanScore(pack)}};
  Counts counts;
  if (options.check) {
    pack.CheckRows();
    counts = CountRows(pack);
    for (twenty48::Move move : twenty48::kMoves) {
      object["moves"][std::string(NameOf(move))] = counts.moves[static_cast<size_t>(move)];
    }
    for (const auto& [rank, count] : counts.ranks) {
      object["max_tile"][std::to_string(twenty48::TileOf(rank))] = count;
    }
    for (const auto& [type, count] : counts.types) object["valuation_types"][type] = count;
  }
  if (context.json) {
    PrintJson(object);
    return 0;
  }
  fmt::print("{}: {} games of {:.0f} points on average, {} rows of {} bytes in {} file{}\n",
             options.pack, pack.runs().size(), MeanScore(pack), pack.rows(), pack.row_bytes(),
             pack.shards(), pack.shards() == 1 ? "" : "s");
  for (const char* group : {"moves", "max_tile", "valuation_types"}) {
    if (!object.contains(group)) continue;
    fmt::print("{:16}", group);
    for (const auto& [name, count] : object[group].items()) {
      fmt::print(
          " {} {:.1f}%", name,
          100 * count.get<double>() / static_cast<double>(std::max<uint64_t>(pack.rows(), 1)));
    }
    fmt::print("\n");
  }
  if (options.check) fmt::print("every row is valid\n");
  return 0;
}

}  // namespace

Command Twenty48Pack() {
  return MakeCommand<PackCommandOptions>(
      {.name = "2048 pack",
       .group = "2048",
       .summary = "pack an oracle's games into one table of training rows",
       .details =
           "Reads NAME.meta.json and NAME.jsonl.gz below the folder, in order of their paths, and\n"
           "writes steps.npy, metadata.db and valuation_types.json. Checks every board, move and\n"
           "value; the first fault is an error with file and line, and nothing is written.",
       .example = "kibitz 2048 pack raws --out packs/d2"},
      RunPack);
}

Command Twenty48Merge() {
  return MakeCommand<MergeOptions>(
      {.name = "2048 merge",
       .group = "2048",
       .summary = "join several packs into one",
       .details = "",
       .example = "kibitz 2048 merge packs/d2 tests/golden/twenty48/pack --out packs/both"},
      RunMerge);
}

Command Twenty48Inspect() {
  return MakeCommand<InspectOptions>({.name = "2048 inspect",
                                      .group = "2048",
                                      .summary = "describe a pack and validate its rows",
                                      .details = "",
                                      .example = "kibitz 2048 inspect packs/d2"},
                                     RunInspect);
}

}  // namespace kibitz::cli
