#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/interrupt.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/twenty48_evaluation.h"
#include "games/twenty48/diagram.h"
#include "oracles/twenty48/self_play.h"
#include "students/twenty48/play/player.h"

namespace kibitz::cli {
namespace {

using twenty48::Board;
using twenty48::Choice;
using twenty48::Game;
using twenty48::Move;
using Json = nlohmann::ordered_json;

struct PlayOptions {
  std::string oracle;
  int depth = 2;
  twenty48::PlayerOptions player;
  uint64_t seed = 1;
  int64_t game = 0;
  double temperature = 0;
  int64_t max_moves = 0;
  double delay = 0.05;
};

Fields FieldsOf(PlayOptions& options) {
  Fields fields;
  fields.Add("model", options.player.network.path,
             "network that plays: a checkpoint, or a model's folder", {.metavar = "PATH"});
  fields.Add("oracle", options.oracle, kOracleHelp + std::string("; plays in place of a network"),
             {.metavar = "ORACLE"});
  fields.Add("depth", options.depth, "moves the oracle searches", {.min = 1, .max = 8});
  fields.Add("seed", options.seed, "random seed of the tiles");
  fields.Add("game", options.game, "number of the game", {.min = 0});
  fields.Add("temperature", options.temperature, "sampling temperature; 0: the best move",
             {.min = 0, .max = 100});
  fields.Add("max_moves", options.max_moves, "stop after this many; 0: play to the end",
             {.min = 0});
  fields.Add("delay", options.delay, "seconds between moves on a terminal", {.min = 0, .max = 60});
  fields.AddAll(FieldsOf(options.player));
  return fields;
}

// The network or the expectimax: board in, choice out.
class Chooser {
 public:
  explicit Chooser(const PlayOptions& options) {
    const bool network = !options.player.network.path.empty();
    if (network != options.oracle.empty()) {
      throw Error::Usage("give either --model or --oracle");
    }
    if (network) {
      player_.emplace(options.player);
    } else {
      evaluation_ = OpenEvaluation(options.oracle);
      search_.emplace(*evaluation_, oracles::ExpectimaxOptions{.depth = options.depth});
    }
  }

  Choice Choose(const Board& board) {
    if (player_) return player_->Choose({&board, 1})[0];
    const oracles::SearchResult result = search_->Search(board);
    Choice choice;
    for (size_t i = 0; i < 4; ++i) {
      if (!result.values[i]) continue;
      choice.legal |= 1U << i;
      choice.scores[i] = static_cast<float>(*result.values[i]);
    }
    if (result.best) choice.best = *result.best;
    return choice;
  }

 private:
  std::optional<twenty48::Player> player_;
  std::unique_ptr<oracles::AfterstateValue> evaluation_;
  std::optional<oracles::Expectimax> search_;
};

Json StepJson(const Game& game, const Choice& choice, Move move) {
  Json scores = Json::object();
  for (Move each : twenty48::kMoves) {
    const bool legal = (choice.legal >> IndexOf(each) & 1) != 0;
    scores[std::string(NameOf(each))] =
        legal ? Json(choice.scores[static_cast<size_t>(each)]) : Json();
  }
  return {{"step", game.moves},
          {"score", game.score},
          {"board", game.board.Ranks()},
          {"move", NameOf(move)},
          {"scores", scores}};
}

void Show(const Game& game, const Choice* choice, Move move, bool color) {
  if (color) fmt::print("\x1b[H");  // To the upper left corner: the board stays in its place.
  fmt::print("score {:<10} moves {:<8}\n\n{}\n", game.score, game.moves,
             twenty48::Diagram(game.board, {.color = color}));
  if (choice != nullptr) {
    for (Move each : twenty48::kMoves) {
      const bool legal = (choice->legal >> IndexOf(each) & 1) != 0;
      fmt::print("{}{:<6}{:<12}", each == move ? '>' : ' ', NameOf(each),
                 legal ? fmt::format("{:.4g}", choice->scores[static_cast<size_t>(each)]) : "-");
    }
    fmt::print("\n");
  }
  std::fflush(stdout);
}

int Run(const PlayOptions& options, const Context& context) {
  Chooser chooser(options);
  const uint64_t seed = oracles::GameSeed(options.seed, options.game);
  Rng spawn({.seed = seed, .purpose = Purpose("2048 spawn")});
  Rng draw({.seed = seed, .purpose = Purpose("2048 choice")});
  Game game = Game::Start(spawn);
  if (context.color && !context.json) fmt::print("\x1b[2J");
  while (!Interrupted() && (options.max_moves == 0 || game.moves < options.max_moves)) {
    const Choice choice = chooser.Choose(game.board);
    if (choice.legal == 0) break;
    const Move move = Drawn(choice, options.temperature, draw.Uniform());
    if (context.json) {
      PrintJson(StepJson(game, choice, move));
    } else if (context.color) {
      Show(game, &choice, move, true);
      std::this_thread::sleep_for(std::chrono::duration<double>(options.delay));
    }
    game.Play(move, spawn);
  }
  if (context.json) {
    PrintJson({{"score", game.score},
               {"moves", game.moves},
               {"max_tile", twenty48::TileOf(game.board.MaxRank())},
               {"over", twenty48::LegalMoves(game.board) == 0}});
  } else {
    Show(game, nullptr, Move::kUp, context.color);
  }
  return Interrupted() ? kExitInterrupted : 0;
}

}  // namespace

Command Twenty48Play() {
  return MakeCommand<PlayOptions>(
      {.name = "2048 play",
       .group = "2048",
       .summary = "watch a network or the expectimax play a game",
       .details =
           "On a terminal the board is drawn move by move; elsewhere only the end of the game is\n"
           "printed. With --json a line for each move, and one for the result.\n"
           "A network without attention runs in f32 whatever --precision says.",
       .example = "kibitz 2048 play --model models/twenty48-small"},
      Run);
}

}  // namespace kibitz::cli
