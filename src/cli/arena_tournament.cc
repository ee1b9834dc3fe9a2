#include <string>

#include "arena/tournament.h"
#include "base/error.h"
#include "cli/arena_input.h"
#include "cli/commands.h"
#include "players/player_name.h"

namespace kibitz::cli {
namespace {

struct ArenaTournamentOptions {
  std::vector<std::string> players;
  arena::TournamentOptions tournament;
  GameInput input;
};

Fields FieldsOf(ArenaTournamentOptions& options) {
  Fields fields;
  fields.Add("players", options.players, "two players or more",
             {.required = true, .positional = true, .metavar = "PLAYER"});
  fields.AddChoice("kind", options.tournament.kind, "who meets whom: all, or the first all others",
                   {{"round-robin", arena::TournamentKind::kRoundRobin},
                    {"gauntlet", arena::TournamentKind::kGauntlet}});
  fields.Add("rounds", options.tournament.rounds, "pairs of games between two players",
             {.min = 1, .max = 1e6});
  fields.Add("anchor", options.tournament.anchor,
             "the rating of the first player; else the mean of all is 0");
  fields.AddAll(FieldsOf(options.input));
  return fields;
}

int Measure(const ArenaTournamentOptions& options, const Context& context) {
  if (options.players.size() < 2) {
    throw Error::Usage("found {} players, expected two or more", options.players.size());
  }
  arena::GameSetup setup = SetupOf("tournament", options.players, options.input);
  setup.further = {{"kind", static_cast<int>(options.tournament.kind)},
                   {"rounds", options.tournament.rounds}};
  arena::GameRun run(std::move(setup));
  Progress progress("games", 0);
  const arena::TournamentResult result = arena::RunTournament(run, options.tournament, &progress);
  progress.Finish();
  run.WriteReport(result.Text(), result.ToJson(), result.ToPage());
  return PrintReport(options.input.run, result.Text(), result.ToJson(), context);
}

struct ArenaLadderOptions {
  std::string player;
  std::string engine = "stockfish";
  std::vector<int> steps = {1350, 1450, 1550, 1650, 1750, 1850, 1950, 2050,
                            2150, 2250, 2350, 2450, 2550, 2650, 2750, 2850};
  int64_t engine_time = 100;
  arena::LadderOptions ladder;
  GameInput input;
};

Fields FieldsOf(ArenaLadderOptions& options) {
  Fields fields;
  fields.Add("player", options.player, "whose rating is wanted",
             {.required = true, .positional = true, .metavar = "PLAYER"});
  fields.Add("engine", options.engine, "an engine with UCI_Elo; its name may have options",
             {.metavar = "ENGINE"});
  fields.Add("steps", options.steps, "ratings of the engine", {.metavar = "ELO,ELO"});
  fields.Add("engine_time", options.engine_time,
             "milliseconds of the engine for each move, where no other limit is given",
             {.min = 1, .max = 1e6});
  fields.Add("error", options.ladder.error, "end when half of the 95% interval is this small",
             {.min = 1});
  fields.Add("max_games", options.ladder.max_games, "end after so many games", {.min = 2});
  fields.Add("batch", options.ladder.batch, "pairs of games before the next step is chosen",
             {.min = 1, .max = 1000});
  fields.AddAll(FieldsOf(options.input));
  return fields;
}

int Measure(const ArenaLadderOptions& options, const Context& context) {
  const auto engine = players::ParsePlayerName(options.engine);
  if (!engine) throw Error::Usage("--engine: {}", engine.reason());
  arena::LadderOptions ladder = options.ladder;
  std::vector<std::string> names = {options.player};
  for (int step : options.steps) {
    players::PlayerName name = *engine;
    name.options.emplace_back("elo", std::to_string(step));
    const bool limited =
        std::any_of(name.options.begin(), name.options.end(), [](const auto& item) {
          return item.first == "nodes" || item.first == "depth" || item.first == "movetime";
        });
    if (!limited) name.options.emplace_back("movetime", std::to_string(options.engine_time));
    names.push_back(players::ToText(name));
    ladder.steps.push_back(step);
  }
  if (!std::is_sorted(ladder.steps.begin(), ladder.steps.end()) || ladder.steps.empty()) {
    throw Error::Usage("--steps: expected ratings in rising order");
  }
  arena::GameSetup setup = SetupOf("ladder", names, options.input);
  setup.further = {
      {"batch", ladder.batch}, {"max_games", ladder.max_games}, {"error", ladder.error}};
  setup.ends_early = true;
  arena::GameRun run(std::move(setup));
  Progress progress("games", static_cast<uint64_t>(ladder.max_games));
  const arena::LadderResult result = arena::RunLadder(run, ladder, &progress);
  progress.Finish();
  run.WriteReport(result.Text(), result.ToJson(), result.ToPage());
  return PrintReport(options.input.run, result.Text(), result.ToJson(), context);
}

}  // namespace

Command ArenaTournament() {
  return MakeCommand<ArenaTournamentOptions>(
      {.name = "arena tournament",
       .group = "Arena",
       .summary = "many players, one table of ratings by maximum likelihood",
       .details = PlayersDetails(),
       .example = "kibitz arena tournament random negamax?depth=1 negamax?depth=2 --rounds 10"},
      RunRanked<ArenaTournamentOptions, Measure>);
}

Command ArenaLadder() {
  return MakeCommand<ArenaLadderOptions>(
      {.name = "arena ladder",
       .group = "Arena",
       .summary = "a player's rating against an engine with UCI_Elo, such as Stockfish",
       .details =
           "Plays batches of games against the step of --steps that is nearest to what is known "
           "so\n"
           "far, until the error is small enough. The rating is on the engine's own scale, at the\n"
           "time it is given here.\n\n" +
           PlayersDetails(),
       .example = "kibitz arena ladder policy-small --max-games 8 --engine-time 10"},
      RunRanked<ArenaLadderOptions, Measure>);
}

}  // namespace kibitz::cli
