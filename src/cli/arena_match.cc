#include <string>

#include "arena/match.h"
#include "base/error.h"
#include "cli/arena_input.h"
#include "cli/commands.h"

namespace kibitz::cli {
namespace {

struct ArenaMatchOptions {
  std::vector<std::string> players;
  std::optional<int64_t> games;
  std::string sprt;
  double alpha = 0.05;
  double beta = 0.05;
  arena::EloModel model = arena::EloModel::kNormalized;
  std::optional<double> white_temp;
  std::optional<double> black_temp;
  GameInput input;
};

Fields FieldsOf(ArenaMatchOptions& options) {
  Fields fields;
  fields.Add("players", options.players, "two players",
             {.required = true, .positional = true, .metavar = "PLAYER"});
  fields.Add("games", options.games, "games to play; default 200, with --sprt at most 40000",
             {.min = 1, .max = 1e8});
  fields.Add("sprt", options.sprt,
             "end as soon as the results tell an advantage of ELO1 from ELO0 for the first player",
             {.metavar = "ELO0,ELO1"});
  fields.Add("alpha", options.alpha, "chance that --sprt accepts ELO1 wrongly",
             {.min = 0, .max = 1});
  fields.Add("beta", options.beta, "chance that --sprt accepts ELO0 wrongly", {.min = 0, .max = 1});
  fields.AddChoice(
      "elo_model", options.model, "the scale of ELO0 and ELO1",
      {{"normalized", arena::EloModel::kNormalized}, {"logistic", arena::EloModel::kLogistic}});
  fields.Add("white_temp", options.white_temp, "temperature of whoever has White; else its own",
             {.min = 0, .max = 10});
  fields.Add("black_temp", options.black_temp, "temperature of whoever has Black; else its own",
             {.min = 0, .max = 10});
  fields.AddAll(FieldsOf(options.input));
  return fields;
}

std::optional<arena::SprtOptions> SprtOf(const ArenaMatchOptions& options) {
  if (options.sprt.empty()) return std::nullopt;
  const auto parsed = arena::ParseSprt(options.sprt);
  if (!parsed) throw Error::Usage("--sprt: {}", parsed.reason());
  arena::SprtOptions sprt = *parsed;
  sprt.alpha = options.alpha;
  sprt.beta = options.beta;
  sprt.model = options.model;
  if (const std::string reason = arena::WhyNoSprt(sprt); !reason.empty()) {
    throw Error::Usage("--sprt: {}", reason);
  }
  return sprt;
}

int Measure(const ArenaMatchOptions& options, const Context& context) {
  if (options.players.size() != 2) {
    throw Error::Usage("found {} players, expected two; 'arena tournament' takes more",
                       options.players.size());
  }
  arena::MatchOptions match{.games = 200, .sprt = SprtOf(options)};
  if (match.sprt) match.games = 40000;
  if (options.games) match.games = *options.games;
  arena::GameSetup setup = SetupOf("match", options.players, options.input);
  for (arena::Contender& contender : setup.contenders) {
    contender.temperature = {options.white_temp, options.black_temp};
  }
  setup.further = {{"games", match.games}};
  if (match.sprt) {
    setup.further["sprt"] = {options.sprt, options.alpha, options.beta,
                             static_cast<int>(options.model)};
  }
  setup.ends_early = match.sprt.has_value();
  arena::GameRun run(std::move(setup));
  Progress progress("games", static_cast<uint64_t>(match.games));
  const arena::MatchResult result = arena::RunMatch(run, match, &progress);
  progress.Finish();
  run.WriteReport(result.Text(), result.ToJson(), result.ToPage());
  return PrintReport(options.input.run, result.Text(), result.ToJson(), context);
}

}  // namespace

Command ArenaMatch() {
  return MakeCommand<ArenaMatchOptions>(
      {.name = "arena match",
       .group = "Arena",
       .summary = "two players over many games: Elo, LOS, pentanomial, SPRT",
       .details =
           "Every opening is played twice with colours swapped. A player that crashes, hangs,\n"
           "answers an illegal move or runs out of time loses the game and is started again.\n"
           "With --out, a killed match goes on with the same command and ends with the same "
           "report.\n\n" +
           PlayersDetails(),
       .example = "kibitz arena match negamax?depth=2 random --games 20 --openings named"},
      RunRanked<ArenaMatchOptions, Measure>);
}

}  // namespace kibitz::cli
