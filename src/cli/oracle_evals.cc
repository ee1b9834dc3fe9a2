#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/record_run.h"
#include "cli/teacher_input.h"
#include "oracles/records/judged_positions.h"

namespace kibitz::cli {
namespace {

struct EvalsOptions {
  PositionInput input;
  RecordOutput output;
  std::string sessions = "nodes=10000";
  TeacherInput teacher = {.by_sessions = true};
};

Fields FieldsOf(EvalsOptions& options) {
  Fields fields;
  fields.AddAll(FieldsOf(options.input));
  fields.AddAll(FieldsOf(options.output));
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
  nlohmann::ordered_json settings;
  for (const auto& teacher : teachers) settings.push_back(teacher->Settings());
  const auto judge = [&](std::span<const oracles::GameSoFar> positions,
                         const oracles::PartStore& parts, Progress& progress) {
    RecordWork work;
    work.positions = JudgeEvals(teachers, positions, options.input.part_positions, parts, progress);
    for (const auto& teacher : teachers) work.failures += teacher->failures();
    return work;
  };
  return Run({.command = "oracle evals",
              .input = options.input,
              .output = options.output,
              .teachers = settings,
              .judge = judge,
              .join = oracles::JoinEvals},
             context);
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
