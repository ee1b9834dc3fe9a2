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
  TeacherInput teacher = {.session = {.multipv = 5}};
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
              .teachers = teacher->Settings(),
              .judge = judge,
              .join = oracles::JoinSearches},
             context);
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
