#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/record_run.h"
#include "cli/teacher_input.h"
#include "oracles/records/pgn_records.h"

namespace kibitz::cli {
namespace {

struct PgnOptions {
  std::vector<std::string> files;
  RecordOutput output;
  oracles::PgnRecordOptions records;
  TeacherInput teacher = {.engine = ""};
};

Fields FieldsOf(PgnOptions& options) {
  Fields fields;
  fields.Add("files", options.files, "PGN files, also .gz and .zst",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.AddAll(FieldsOf(options.output));
  fields.AddAll(oracles::FieldsOf(options.records));
  fields.AddAll(FieldsOf(options.teacher));
  return fields;
}

int RunPgn(const PgnOptions& options, const Context& context) {
  oracles::CheckParquetName(options.output.out);
  oracles::PgnRecordOptions records = options.records;
  records.wdl_model = options.teacher.wdl_model;
  std::unique_ptr<oracles::Teacher> teacher;
  if (HasTeacher(options.teacher)) teacher = OpenTeacher(options.teacher);
  if (records.ignore_notes && !teacher)
    throw Error::Usage("--ignore-notes needs --engine or --net");
  nlohmann::ordered_json stored_options = {
      {"command", "oracle pgn"},
      {"options", oracles::FieldsOf(records).ToTree()},
      {"wdl_model", oracles::FieldsOf(records.wdl_model).ToTree()},
      {"inputs", DescribeInputs(options.files)}};
  if (teacher) stored_options["teacher"] = teacher->OptionsJson();
  SkipCounter skipped;
  const auto work = [&](const oracles::PartStore& parts) {
    Progress progress("games", 0);
    const int64_t asked =
        MakePgnRecords(options.files, teacher.get(), records, parts, skipped, progress);
    progress.Finish();
    return RecordWork{asked, teacher ? teacher->failures() : 0};
  };
  const auto join = [&](const oracles::PartStore& parts) {
    const oracles::Joined joined = oracles::JoinGames(parts);
    if (joined.rows == 0 && !teacher) {
      LogWarn(
          "no row written: the games have no [%eval] comments; --engine stockfish (or --net) "
          "evaluates "
          "them");
    }
    return joined;
  };
  return Run({.output = options.output,
              .stored_options = stored_options,
              .work = work,
              .join = join,
              .unit = "games"},
             skipped, context);
}

}  // namespace

Command OraclePgn() {
  return MakeCommand<PgnOptions>(
      {.name = "oracle pgn",
       .group = "Teachers",
       .summary = "turn PGN games into training records",
       .details = "Writes a row for each position, as 'oracle games' does. Games with [%eval] "
                  "comments, as\n"
                  "Lichess analyses them, need no engine: win, draw and loss follow from the "
                  "evaluations. The\n"
                  "best move is the variation's where a move is marked ?!, ? or ??, else the move "
                  "played if it\n"
                  "lost at most --tolerance centipawns. --engine or --net evaluates what the file "
                  "leaves out.\n"
                  "After Ctrl-C or a crash, run the same command again: it resumes.",
       .example = "kibitz oracle pgn examples/immortal.pgn --engine stockfish --nodes 2000 --out "
                  "pgn.parquet"},
      RunPgn);
}

}  // namespace kibitz::cli
