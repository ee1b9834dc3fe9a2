#include <string>
#include <vector>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/record_run.h"
#include "cli/teacher_input.h"
#include "oracles/records/judged_positions.h"
#include "oracles/records/source_games.h"

namespace kibitz::cli {
namespace {

struct VariationsOptions {
  std::vector<std::string> files;
  RecordOutput output;
  oracles::Sampling sampling = {.per_game = 4};
  int64_t part_positions = 256;
  TeacherInput teacher = {.session = {.multipv = 5}};
};

Fields FieldsOf(VariationsOptions& options) {
  Fields fields;
  fields.Add("files", options.files,
             "games or positions: PGN, Parquet rows of games (file or folder), FEN or EPD lines",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.AddAll(FieldsOf(options.output));
  fields.AddAll(oracles::FieldsOf(options.sampling));
  fields.Add("part_positions", options.part_positions, "positions written at a time", {.min = 1});
  fields.AddAll(FieldsOf(options.teacher));
  return fields;
}

int RunVariations(const VariationsOptions& options, const Context& context) {
  oracles::CheckParquetName(options.output.out);
  const auto teacher = OpenTeacher(options.teacher);
  oracles::Sampling sampling = options.sampling;
  const nlohmann::ordered_json settings = {{"command", "oracle variations"},
                                           {"options", oracles::FieldsOf(sampling).ToTree()},
                                           {"part_positions", options.part_positions},
                                           {"inputs", DescribeInputs(options.files)},
                                           {"teacher", teacher->Settings()}};
  oracles::Skipped skipped;
  const auto work = [&](const oracles::PartStore& parts) {
    const auto positions = oracles::SamplePositions(options.files, sampling, skipped);
    Progress progress("positions", positions.size());
    const int64_t asked =
        JudgeSearches(*teacher, positions, options.part_positions, parts, progress);
    progress.Finish();
    return RecordWork{asked, teacher->failures()};
  };
  return Run({.output = options.output,
              .settings = settings,
              .work = work,
              .join = oracles::JoinSearches,
              .unit = "positions"},
             skipped, context);
}

}  // namespace

Command OracleVariations() {
  return MakeCommand<VariationsOptions>(
      {.name = "oracle variations",
       .group = "Teachers",
       .summary = "let an engine or a network write the lines it considers in positions of games",
       .details =
           "A row for each position: the variations as JSON with win, draw and loss at every "
           "node,\n"
           "and the final move, as 'decoder finetune' reads them. With --net the lines are those "
           "of a tree\n"
           "search and its visits; else the engine's --multipv lines: fractions of visits are a "
           "softmax of their scores (--fraction-temperature), a "
           "node's\n"
           "values those of its line unless --node-evals asks for them. A position occurs once. "
           "After\n"
           "Ctrl-C or a kill the same command goes on.",
       .example = "kibitz oracle variations games.parquet --per-game 4 --nodes 20000 --out "
                  "searches.parquet"},
      RunVariations);
}

}  // namespace kibitz::cli
