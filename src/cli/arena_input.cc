#include "cli/arena_input.h"

#include <fmt/format.h>

#include "cli/json_output.h"
#include "players/make_player.h"

namespace kibitz::cli {

Fields FieldsOf(GameInput& input) {
  Fields fields = arena::FieldsOf(input.openings);
  fields.AddAll(arena::FieldsOf(input.rules));
  fields.Add(
      "one_ply", input.one_ply,
      "networks take a mate in one and do not draw a won game by one move; a name with one_ply "
      "decides for itself");
  fields.Add("pgn", input.pgn, "write the games here, with evaluations, clocks and thoughts",
             {.metavar = "FILE"});
  fields.AddAll(arena::FieldsOf(input.run));
  return fields;
}

arena::GameSetup SetupOf(const std::string& command, const std::vector<std::string>& names,
                         const GameInput& input) {
  arena::GameSetup setup{.command = command,
                         .contenders = {},
                         .openings = input.openings,
                         .rules = input.rules,
                         .run = input.run,
                         .pgn = input.pgn};
  for (const std::string& name : names) {
    setup.contenders.push_back({.name = name, .one_ply = input.one_ply});
  }
  return setup;
}

std::string PlayersDetails() {
  std::string details = players::PlayersHelp();
  while (details.ends_with('\n')) details.pop_back();
  return details;
}

int RunShared(const arena::RunOptions& run, const Context& context,
              const std::function<int(const arena::RunOptions& run)>& command) {
  return RunInJob([&](JobGroup& job) {
    arena::RunOptions shared = run;
    shared.job = &job;
    try {
      return command(shared);
    } catch (const arena::ShardPlayed& played) {
      return PrintReport(
          run,
          fmt::format("{}: {}; after the last one, the same command without --shards "
                      "makes the report\n",
                      run.out, played.message()),
          {{"out", run.out}, {"shards", run.slice.shards}, {"shard", run.slice.shard}}, context);
    }
  });
}

int PrintReport(const arena::RunOptions& run, const std::string& text,
                const nlohmann::ordered_json& json, const Context& context) {
  if (!run.reports()) return 0;
  if (context.json) {
    PrintJson(json);
  } else {
    fmt::print("{}", text);
  }
  return 0;
}

}  // namespace kibitz::cli
