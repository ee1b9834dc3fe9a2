#include <fmt/format.h>

#include <chrono>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/twenty48_evaluation.h"
#include "students/twenty48/play/games.h"

namespace kibitz::cli {
namespace {

using twenty48::Board;
using twenty48::Choice;
using twenty48::Game;
using twenty48::GameFigures;
using Json = nlohmann::ordered_json;

struct EvalOptions {
  std::string oracle;
  int depth = 2;
  twenty48::GamesOptions games;
  twenty48::PlayerOptions player;
  int64_t agreement = 2000;
};

Fields FieldsOf(EvalOptions& options) {
  Fields fields;
  fields.Add("model", options.player.network.path,
             "network to measure: a checkpoint, or a model's folder", {.metavar = "PATH"});
  fields.Add("oracle", options.oracle,
             kOracleHelp + std::string("; measured itself without --model, else compared with it"),
             {.metavar = "ORACLE"});
  fields.Add("depth", options.depth, "moves the oracle searches", {.min = 1, .max = 8});
  fields.Add("games", options.games.games, "games to play", {.min = 1});
  fields.Add("seed", options.games.seed, "random seed of the tiles");
  fields.Add("temperature", options.games.temperature, "sampling temperature; 0: the best move",
             {.min = 0, .max = 100});
  fields.Add("side_by_side", options.games.side_by_side, "games of the network at a time",
             {.min = 1, .max = 100'000});
  fields.Add("agreement", options.agreement,
             "positions of the network's games to ask the oracle about, roughly", {.min = 0});
  fields.AddAll(FieldsOf(options.player));
  return fields;
}

// How often the network's move is the oracle's, on positions spread over the games.
class Agreement {
 public:
  Agreement(const EvalOptions& options)
      : wanted_(options.agreement),
        evaluation_(OpenEvaluation(options.oracle)),
        search_(*evaluation_, {.depth = options.depth}) {}

  void See(const Board& board, const Choice& choice) {
    // Every n-th position; n doubles with every `wanted_` positions asked about.
    if (seen_++ % stride_ != 0) return;
    if (++asked_ % wanted_ == 0) stride_ *= 2;
    if (search_.Search(board).best == choice.best) ++agreed_;
  }
  Json ToJson() const {
    return {
        {"positions", asked_},
        {"share", asked_ == 0 ? 0 : static_cast<double>(agreed_) / static_cast<double>(asked_)}};
  }

 private:
  int64_t wanted_;
  std::unique_ptr<oracles::AfterstateValue> evaluation_;
  oracles::Expectimax search_;
  int64_t seen_ = 0;
  int64_t stride_ = 50;
  int64_t asked_ = 0;
  int64_t agreed_ = 0;
};

void Print(const GameFigures& figures, const Json& object) {
  fmt::print("{} games: mean {:.0f} ± {:.0f}, median {:.0f}, best {}; {} moves, {} moves/s\n",
             figures.games, figures.mean, figures.error, figures.median, figures.best,
             HumanCount(static_cast<double>(figures.moves)),
             HumanCount(object["moves_per_second"].get<double>()));
  for (const auto& [tile, share] : figures.reached) fmt::print("{:>8}", tile);
  fmt::print("\n");
  for (const auto& [tile, share] : figures.reached) fmt::print("{:>7.1f}%", 100 * share);
  fmt::print("\n");
  if (object.contains("agreement")) {
    fmt::print("agreement with the oracle: {:.1f}% of {} positions\n",
               100 * object["agreement"]["share"].get<double>(),
               object["agreement"]["positions"].get<int64_t>());
  }
}

int Run(const EvalOptions& options, const Context& context) {
  const bool network = !options.player.network.path.empty();
  if (!network && options.oracle.empty()) {
    throw Error::Usage("give --model, or --oracle to measure the expectimax itself");
  }
  std::vector<Game> games;
  Json object = Json::object();
  const auto start = std::chrono::steady_clock::now();
  if (!network) {
    const auto evaluation = OpenEvaluation(options.oracle);
    games = PlayGames(*evaluation, {.depth = options.depth}, options.games,
                      options.player.network.threads);
  } else {
    twenty48::Player player(options.player);
    std::optional<Agreement> agreement;
    if (!options.oracle.empty() && options.agreement > 0) agreement.emplace(options);
    games = PlayGames(player, options.games, [&](const Board& board, const Choice& choice) {
      if (agreement) agreement->See(board, choice);
    });
    if (agreement) object["agreement"] = agreement->ToJson();
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const GameFigures figures = FiguresOf(games);
  object["games"] = figures.games;
  object["mean_score"] = figures.mean;
  object["mean_error_95"] = figures.error;
  object["median_score"] = figures.median;
  object["best_score"] = figures.best;
  for (const auto& [tile, share] : figures.reached) object["reached"][std::to_string(tile)] = share;
  object["moves"] = figures.moves;
  object["seconds"] = seconds;
  object["moves_per_second"] = static_cast<double>(figures.moves) / seconds;
  if (context.json) {
    PrintJson(object);
  } else {
    Print(figures, object);
  }
  return 0;
}

}  // namespace

Command Twenty48Eval() {
  return MakeCommand<EvalOptions>(
      {.name = "2048 eval",
       .group = "2048",
       .summary = "measure a network or the expectimax over many games",
       .details =
           "Plays games side by side: mean score with its 95% interval, how many games reach each\n"
           "tile, moves per second, and how often the network's move is the oracle's. A game "
           "depends\n"
           "on the seed and its number: all players get the same random numbers.\n"
           "A network without attention runs in f32 whatever --precision says.",
       .example = "kibitz 2048 eval --model models/twenty48-small --games 1000"},
      Run);
}

}  // namespace kibitz::cli
