#include <span>

#include "cli/commands.h"
#include "cli/record_run.h"
#include "cli/teacher_input.h"
#include "oracles/records/judged_positions.h"

namespace kibitz::cli {
namespace {

struct VariationsOptions {
  PositionInput input = {.sampling = {.per_game = 4}};
  RecordOutput output;
  TeacherInput teacher = {.session = {.multipv = 5}, .in_rows = true};
};

Fields FieldsOf(VariationsOptions& options) {
  Fields fields;
  fields.AddAll(FieldsOf(options.input));
  fields.AddAll(FieldsOf(options.output));
  fields.AddAll(FieldsOf(options.teacher));
  return fields;
}

int RunVariations(const VariationsOptions& options, const Context& context) {
  oracles::CheckParquetName(options.output.out);
  const auto teacher = OpenTeacher(options.teacher);
  const auto judge = [&](std::span<const oracles::GameSoFar> positions,
                         const oracles::PartStore& parts, Progress& progress) {
    const int64_t asked =
        JudgeSearches(*teacher, positions, options.input.part_positions, parts, progress);
    return RecordWork{asked, teacher->failures()};
  };
  return Run({.command = "oracle variations",
              .input = options.input,
              .output = options.output,
              .teachers = teacher->OptionsJson(),
              .judge = judge,
              .join = oracles::JoinSearches},
             context);
}

}  // namespace

Command OracleVariations() {
  return MakeCommand<VariationsOptions>(
      {.name = "oracle variations",
       .group = "Teachers",
       .summary = "search positions of games and write the variations as training records",
       .details = "Writes a row for each position, as 'decoder finetune' reads it: the variations "
                  "as JSON with\n"
                  "win, draw and loss at every node, and the final move. With --net the lines and "
                  "visits come\n"
                  "from a tree search. An engine gives its --multipv lines: their fractions of "
                  "visits are a\n"
                  "softmax of the scores (--fraction-temperature), and a node has the value of its "
                  "line unless\n"
                  "--node-evals searches it. Duplicate positions are dropped.\n"
                  "After Ctrl-C or a crash, run the same command again: it resumes.",
       .example = "kibitz oracle variations examples/decoder/games.parquet --per-game 1 --limit 20 "
                  "--nodes 2000 --out searches.parquet"},
      RunVariations);
}

}  // namespace kibitz::cli
