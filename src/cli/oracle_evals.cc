#include <memory>
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

struct EvalsOptions {
  std::vector<std::string> files;
  RecordOutput output;
  oracles::Sampling sampling = {};
  int64_t part_positions = 256;
  std::string sessions = "nodes=10000";
  TeacherInput teacher = {.by_sessions = true};
};

Fields FieldsOf(EvalsOptions& options) {
  Fields fields;
  fields.Add("files", options.files,
             "games or positions: PGN, Parquet rows of games (file or folder), FEN or EPD lines",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.AddAll(FieldsOf(options.output));
  fields.AddAll(oracles::FieldsOf(options.sampling));
  fields.Add("part_positions", options.part_positions, "positions written at a time", {.min = 1});
  fields.Add("sessions", options.sessions,
             "how each position is analysed, one after the other: nodes, depth or movetime, and "
             "multipv",
             {.metavar = "LIST"});
  fields.AddAll(FieldsOf(options.teacher));
  return fields;
}

using Teachers = std::vector<std::unique_ptr<oracles::Teacher>>;

Teachers OpenSessions(const EvalsOptions& options) {
  Teachers teachers;
  for (const Session& session : ParseSessions(options.sessions)) {
    TeacherInput input = options.teacher;
    input.session = session;
    teachers.push_back(OpenTeacher(input));
  }
  return teachers;
}

int RunEvals(const EvalsOptions& options, const Context& context) {
  oracles::CheckEvalsName(options.output.out);
  const Teachers teachers = OpenSessions(options);
  oracles::Sampling sampling = options.sampling;
  nlohmann::ordered_json settings = {{"command", "oracle evals"},
                                     {"options", oracles::FieldsOf(sampling).ToTree()},
                                     {"part_positions", options.part_positions},
                                     {"inputs", DescribeInputs(options.files)}};
  for (const auto& teacher : teachers) settings["sessions"].push_back(teacher->Settings());
  oracles::Skipped skipped;
  const auto work = [&](const oracles::PartStore& parts) {
    const auto positions = oracles::SamplePositions(options.files, sampling, skipped);
    Progress progress("positions", positions.size());
    const int64_t asked = JudgeEvals(teachers, positions, options.part_positions, parts, progress);
    progress.Finish();
    int failures = 0;
    for (const auto& teacher : teachers) failures += teacher->failures();
    return RecordWork{asked, failures};
  };
  return Run({.output = options.output,
              .settings = settings,
              .work = work,
              .join = oracles::JoinEvals,
              .unit = "positions"},
             skipped, context);
}

}  // namespace

Command OracleEvals() {
  return MakeCommand<EvalsOptions>(
      {.name = "oracle evals",
       .group = "Teachers",
       .summary =
           "let an engine or a network evaluate positions, as in the Lichess evaluation database",
       .details =
           "With --out FILE.parquet a row for each line: fen, line, depth, knodes, cp, mate; with\n"
           "FILE.jsonl.zst an object for each position, as database.lichess.org has them. Scores "
           "are\n"
           "from White's view, castling is written e1h1. Several --sessions give several "
           "evaluations of\n"
           "a position. A position occurs once. After Ctrl-C or a kill the same command goes on.",
       .example = "kibitz oracle evals games.pgn --sessions "
                  "'nodes=2000;nodes=20000,multipv=3' --out evals.parquet"},
      RunEvals);
}

}  // namespace kibitz::cli
