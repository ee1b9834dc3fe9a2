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
  nlohmann::ordered_json settings = {{"command", "oracle pgn"},
                                     {"options", oracles::FieldsOf(records).ToTree()},
                                     {"wdl_model", oracles::FieldsOf(records.wdl_model).ToTree()},
                                     {"inputs", DescribeInputs(options.files)}};
  if (teacher) settings["teacher"] = teacher->Settings();
  oracles::Skipped skipped;
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
          "no row: the games have no [%eval] comments; give --engine stockfish (or --net) to judge "
          "them");
    }
    return joined;
  };
  return Run(
      {.output = options.output, .settings = settings, .work = work, .join = join, .unit = "games"},
      skipped, context);
}

}  // namespace

Command OraclePgn() {
  return MakeCommand<PgnOptions>(
      {.name = "oracle pgn",
       .group = "Teachers",
       .summary = "make records to learn from out of PGN games",
       .details =
           "A row for each position, as 'oracle games' writes them. Games with [%eval] comments "
           "(Lichess\n"
           "analysis) need no engine: chances follow from the evaluations, and the best move is "
           "the "
           "one\n"
           "that a variation gives instead of a ?!, ? or ?? move, or the move played where it lost "
           "at\n"
           "most --tolerance centipawns. With --engine or --net, what the file does not say is "
           "asked for.",
       .example =
           "kibitz oracle pgn games.pgn --engine stockfish --nodes 5000 --out games.parquet"},
      RunPgn);
}

}  // namespace kibitz::cli
