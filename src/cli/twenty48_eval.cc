#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include "arena/page.h"
#include "arena/statistics/intervals.h"
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
  std::string versus;
  std::string versus_oracle;
  std::string html;
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
  fields.Add("versus", options.versus, "a second network that plays the same games",
             {.metavar = "PATH"});
  fields.Add("versus_oracle", options.versus_oracle,
             "an expectimax that plays the same games: " + std::string(kOracleHelp),
             {.metavar = "ORACLE"});
  fields.Add("html", options.html, "write the report as one HTML file", {.metavar = "FILE"});
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

// One player's games and what is known of them.
struct Played {
  std::string name;
  std::vector<Game> games = {};
  double seconds = 0;
  std::optional<Json> agreement = {};

  GameFigures figures() const { return FiguresOf(games); }
  Json ToJson() const {
    const GameFigures all = figures();
    Json object = Json::object();
    if (agreement) object["agreement"] = *agreement;
    object["games"] = all.games;
    object["mean_score"] = all.mean;
    object["mean_error_95"] = all.error;
    object["median_score"] = all.median;
    object["best_score"] = all.best;
    for (const auto& [tile, share] : all.reached) object["reached"][std::to_string(tile)] = share;
    object["moves"] = all.moves;
    object["seconds"] = seconds;
    object["moves_per_second"] = static_cast<double>(all.moves) / seconds;
    return object;
  }
  std::string Text() const {
    const GameFigures all = figures();
    std::string text = fmt::format(
        "{} games: mean {:.0f} ± {:.0f}, median {:.0f}, best {}; {} moves, {} moves/s\n", all.games,
        all.mean, all.error, all.median, all.best, HumanCount(static_cast<double>(all.moves)),
        HumanCount(static_cast<double>(all.moves) / seconds));
    for (const auto& [tile, share] : all.reached) text += fmt::format("{:>8}", tile);
    text += "\n";
    for (const auto& [tile, share] : all.reached) text += fmt::format("{:>7.1f}%", 100 * share);
    text += "\n";
    if (agreement) {
      text += fmt::format("agreement with the oracle: {:.1f}% of {} positions\n",
                          100 * (*agreement)["share"].get<double>(),
                          (*agreement)["positions"].get<int64_t>());
    }
    return text;
  }
};

// A player that is opened and ready: what is missing is told before any game is played.
using PlayAll = std::function<Played()>;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

PlayAll OpenNetwork(const EvalOptions& options, const std::string& path, bool compare) {
  twenty48::PlayerOptions chosen = options.player;
  chosen.network.path = path;
  const auto player = std::make_shared<twenty48::Player>(chosen);
  std::shared_ptr<Agreement> agreement;
  if (compare && !options.oracle.empty() && options.agreement > 0) {
    agreement = std::make_shared<Agreement>(options);
  }
  return [&options, path, player, agreement] {
    const auto start = std::chrono::steady_clock::now();
    Played played{.name = path};
    played.games = PlayGames(*player, options.games, [&](const Board& board, const Choice& choice) {
      if (agreement) agreement->See(board, choice);
    });
    if (agreement) played.agreement = agreement->ToJson();
    played.seconds = SecondsSince(start);
    return played;
  };
}

PlayAll OpenOracle(const EvalOptions& options, const std::string& oracle) {
  const std::shared_ptr<oracles::AfterstateValue> evaluation = OpenEvaluation(oracle);
  return [&options, oracle, evaluation] {
    const auto start = std::chrono::steady_clock::now();
    Played played{.name = fmt::format("{}, depth {}", oracle, options.depth)};
    played.games = PlayGames(*evaluation, {.depth = options.depth}, options.games,
                             options.player.network.threads);
    played.seconds = SecondsSince(start);
    return played;
  };
}

// The same games of two players, game by game.
struct Paired {
  int64_t higher = 0;  // Games in which the first scored more, ...
  int64_t lower = 0;
  double p_value = 1;           // ... and the exact test of that.
  arena::Resampled difference;  // Points of the first beyond the second.

  Paired(const std::vector<Game>& first, const std::vector<Game>& second) {
    std::vector<double> differences;
    for (size_t i = 0; i < first.size(); ++i) {
      differences.push_back(static_cast<double>(first[i].score - second[i].score));
      higher += differences.back() > 0 ? 1 : 0;
      lower += differences.back() < 0 ? 1 : 0;
    }
    p_value = arena::McNemarExact(higher, lower);
    difference = arena::PairedBootstrap(differences);
  }
  Json ToJson() const {
    return {{"mean", difference.mean},          {"low", difference.interval.low},
            {"high", difference.interval.high}, {"p_value", difference.p_value},
            {"games_higher", higher},           {"games_lower", lower},
            {"games_p_value", p_value}};
  }
  std::string Text() const {
    return fmt::format(
        "first beyond second, same seeds: {:+.0f} points (95%: {:+.0f} to {:+.0f}, p = {:.3g}); "
        "more in {} games, less in {} (p = {:.3g})\n",
        difference.mean, difference.interval.low, difference.interval.high, difference.p_value,
        higher, lower, p_value);
  }
};

void WritePage(const std::string& path, const std::vector<Played>& players,
               const std::string& text) {
  arena::Page page("2048: " + players[0].name);
  page.Verbatim(text);
  std::vector<arena::PlotBar> scores;
  for (const Played& played : players) {
    const GameFigures figures = played.figures();
    scores.push_back(
        {played.name, figures.mean, figures.mean - figures.error, figures.mean + figures.error});
  }
  page.Plot(arena::BarPlot("Mean score with its 95% interval", scores));
  for (const Played& played : players) {
    std::vector<arena::PlotBar> tiles;
    const GameFigures figures = played.figures();
    for (const auto& [tile, share] : figures.reached) {
      const arena::Interval interval = arena::WilsonInterval(
          std::llround(share * static_cast<double>(figures.games)), figures.games);
      tiles.push_back({std::to_string(tile), share, interval.low, interval.high});
    }
    page.Plot(arena::BarPlot("Games that reach a tile: " + played.name, tiles));
  }
  page.Write(path);
}

int Run(const EvalOptions& options, const Context& context) {
  const std::string& model = options.player.network.path;
  if (model.empty() && options.oracle.empty()) {
    throw Error::Usage("give --model, or --oracle to measure the expectimax itself");
  }
  if (!options.versus.empty() && !options.versus_oracle.empty()) {
    throw Error::Usage("give --versus or --versus-oracle, not both");
  }
  std::vector<PlayAll> ready;
  ready.push_back(model.empty() ? OpenOracle(options, options.oracle)
                                : OpenNetwork(options, model, true));
  if (!options.versus.empty()) ready.push_back(OpenNetwork(options, options.versus, false));
  if (!options.versus_oracle.empty()) ready.push_back(OpenOracle(options, options.versus_oracle));
  std::vector<Played> players;
  for (const PlayAll& play : ready) players.push_back(play());
  Json object = players[0].ToJson();
  std::string text = players[0].Text();
  if (players.size() == 2) {
    const Paired paired(players[0].games, players[1].games);
    object["versus"] = players[1].ToJson();
    object["difference"] = paired.ToJson();
    text = fmt::format("{}\n{}{}\n{}{}", players[0].name, text, players[1].name, players[1].Text(),
                       paired.Text());
  }
  if (!options.html.empty()) WritePage(options.html, players, text);
  if (context.json) {
    PrintJson(object);
  } else {
    fmt::print("{}", text);
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
           "on the seed and its number: all players get the same random numbers. With --versus a\n"
           "second player plays the same games, and a paired test compares the two.\n"
           "A network without attention runs in f32 whatever --precision says.",
       .example = "kibitz 2048 eval --model models/twenty48-small --games 1000"},
      Run);
}

}  // namespace kibitz::cli
