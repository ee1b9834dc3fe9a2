#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/record_run.h"
#include "cli/teacher_input.h"
#include "oracles/records/played_games.h"

namespace kibitz::cli {
namespace {

struct GamesOptions {
  RecordOutput output;
  oracles::PlayOptions play;
  std::vector<std::string> openings;
  TeacherInput teacher = {.session = {.multipv = 4}};
  std::string engine2;
  std::string net2;
  std::vector<std::string> engine2_option;
  std::optional<int64_t> engine2_nodes;
};

Fields FieldsOf(GamesOptions& options) {
  Fields fields;
  fields.AddAll(FieldsOf(options.output));
  fields.AddAll(oracles::FieldsOf(options.play));
  fields.Add(
      "openings", options.openings,
      "games start from the last positions of these: PGN, FEN or EPD lines, or Parquet games",
      {.metavar = "FILE"});
  fields.AddAll(FieldsOf(options.teacher));
  fields.Add("engine2", options.engine2,
             "opponent: a second engine; each opening is then played with both colours",
             {.metavar = "CMD"});
  fields.Add("net2", options.net2, "opponent: a network instead of a second engine",
             {.metavar = "FILE"});
  fields.Add("engine2_option", options.engine2_option, "UCI option of the second engine",
             {.metavar = "NAME=VALUE"});
  fields.Add("engine2_nodes", options.engine2_nodes,
             "nodes of the opponent's search; default: as the first", {.min = 1});
  return fields;
}

std::unique_ptr<oracles::Teacher> OpenSecond(const GamesOptions& options) {
  if (!options.engine2.empty() && !options.net2.empty()) {
    throw Error::Usage("--engine2 and --net2 exclude each other");
  }
  if (options.engine2.empty() && options.net2.empty()) {
    if (options.engine2_nodes || !options.engine2_option.empty()) {
      throw Error::Usage("--engine2-nodes and --engine2-option need --engine2 or --net2");
    }
    return nullptr;
  }
  TeacherInput input = options.teacher;
  input.search.network.path = options.net2;
  input.engine = options.engine2;
  input.engine_option = options.engine2_option;
  if (options.engine2_nodes) {
    input.session = {.nodes = options.engine2_nodes, .multipv = input.session.multipv};
  }
  return OpenTeacher(input);
}

int RunGames(const GamesOptions& options, const Context& context) {
  oracles::CheckParquetName(options.output.out);
  const auto first = OpenTeacher(options.teacher);
  const auto second = OpenSecond(options);
  oracles::PlayOptions play = options.play;
  if (play.temperature > 0 && options.teacher.session.multipv == 1) {
    LogWarn("--temperature has no effect with --multipv 1: there is only one move to draw");
  }
  nlohmann::ordered_json stored_options = {{"command", "oracle games"},
                                           {"options", oracles::FieldsOf(play).ToTree()},
                                           {"openings", DescribeInputs(options.openings)},
                                           {"teacher", first->OptionsJson()}};
  if (second) stored_options["teacher2"] = second->OptionsJson();
  SkipCounter skipped;
  const auto work = [&](const oracles::PartStore& parts) {
    const auto openings = oracles::ReadOpenings(options.openings, skipped);
    Progress progress("games", static_cast<uint64_t>(play.games));
    const oracles::Players players{
        .first = *first, .second = second.get(), .at_once = 4 * WorkersOf(options.teacher)};
    const int64_t asked = PlayGames(players, play, openings, parts, progress);
    progress.Finish();
    return RecordWork{asked, first->failures() + (second ? second->failures() : 0)};
  };
  return Run({.output = options.output,
              .stored_options = stored_options,
              .work = work,
              .join = oracles::JoinGames,
              .unit = "games"},
             skipped, context);
}

}  // namespace

Command OracleGames() {
  return MakeCommand<GamesOptions>(
      {.name = "oracle games",
       .group = "Teachers",
       .summary = "play games with an engine or a network and write training records",
       .details =
           "Writes a row for each position, as 'decoder pretrain' reads it: the move played, the "
           "best\n"
           "move, and win, draw and loss for the side to move. --openings, --random-plies and\n"
           "--temperature (which draws among the --multipv lines) make games differ. A game "
           "depends on\n"
           "the seed and its number, not on --engines.\n"
           "After Ctrl-C or a crash, run the same command again: it resumes with the missing "
           "games.",
       .example =
           "kibitz oracle games --games 10 --nodes 1000 --random-plies 4 --out games.parquet"},
      RunGames);
}

}  // namespace kibitz::cli
