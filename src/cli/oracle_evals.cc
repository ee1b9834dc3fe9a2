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
  TeacherInput teacher = {.by_sessions = true, .in_rows = true};
};

Fields FieldsOf(EvalsOptions& options) {
  Fields fields;
  fields.AddAll(FieldsOf(options.input));
  fields.AddAll(FieldsOf(options.output));
  fields.Add(
      "sessions", options.sessions,
      "searches of each position: nodes, depth or movetime, and multipv; semicolons separate "
      "them",
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
  nlohmann::ordered_json teacher_options;
  for (const auto& teacher : teachers) teacher_options.push_back(teacher->OptionsJson());
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
              .teachers = teacher_options,
              .judge = judge,
              .join = oracles::JoinEvals},
             context);
}

}  // namespace

Command OracleEvals() {
  return MakeCommand<EvalsOptions>(
      {.name = "oracle evals",
       .group = "Teachers",
       .summary = "evaluate positions as in the Lichess evaluation database",
       .details = "A UCI engine or a network searches each position once, or once for each of "
                  "--sessions.\n"
                  "FILE.parquet gets a row for each line: fen, line, depth, knodes, cp, mate. "
                  "FILE.jsonl.zst gets\n"
                  "an object for each position, in the format of database.lichess.org. Scores are "
                  "from White's\n"
                  "view; castling is written e1h1. Duplicate positions are dropped.\n"
                  "After Ctrl-C or a crash, run the same command again: it resumes.",
       .example = "kibitz oracle evals examples/immortal.pgn --sessions "
                  "'nodes=1000;nodes=5000,multipv=3' --out evals.parquet"},
      RunEvals);
}

}  // namespace kibitz::cli
