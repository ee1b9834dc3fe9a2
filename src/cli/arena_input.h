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

// The text for people, or with --json the object; nothing on ranks above 0.
int PrintReport(const arena::RunOptions& run, const std::string& text,
                const nlohmann::ordered_json& json, const Context& context);

}  // namespace kibitz::cli
