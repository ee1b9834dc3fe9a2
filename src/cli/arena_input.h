// What the arena commands share: the options of games, and how a report is given.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "arena/game_run.h"
#include "cli/command.h"

namespace kibitz::cli {

// Options of every command that plays games.
struct GameInput {
  arena::OpeningOptions openings = {};
  arena::GameRules rules = {};
  arena::RunOptions run = {};
  bool one_ply = true;  // As arena::Contender.
  std::string pgn = {};
};
Fields FieldsOf(GameInput& input);

arena::GameSetup SetupOf(const std::string& command, const std::vector<std::string>& names,
                         const GameInput& input);

// For the help of commands that take players.
std::string PlayersDetails();

// Runs a command with the ranks of its job; says so where only a shard was played.
int RunShared(const arena::RunOptions& run, const Context& context,
              const std::function<int(const arena::RunOptions& run)>& command);

// RunShared for a command whose options have `run`, or `input` with it: as the function of
// MakeCommand.
template <typename Options, int (*kMeasure)(const Options&, const Context&)>
int RunRanked(const Options& options, const Context& context) {
  Options shared = options;
  const auto run_of = [](Options& all) -> arena::RunOptions& {
    if constexpr (requires { all.input.run; }) {
      return all.input.run;
    } else {
      return all.run;
    }
  };
  return RunShared(run_of(shared), context, [&](const arena::RunOptions& run) {
    run_of(shared) = run;
    return kMeasure(shared, context);
  });
}

// The text for people, or with --json the object; nothing on ranks above 0.
int PrintReport(const arena::RunOptions& run, const std::string& text,
                const nlohmann::ordered_json& json, const Context& context);

}  // namespace kibitz::cli
