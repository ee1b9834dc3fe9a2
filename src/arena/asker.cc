#include "arena/asker.h"

#include <chrono>

#include "arena/game_run.h"
#include "arena/watchdog.h"
#include "base/error.h"
#include "base/log.h"
#include "base/random.h"

namespace kibitz::arena {

Fields FieldsOf(AskOptions& options) {
  Fields fields;
  fields.Add("player", options.player, "who answers", {.required = true, .metavar = "PLAYER"});
  fields.Add("nodes", options.nodes, "nodes for each move", {.min = 1});
  fields.Add("depth", options.depth, "depth of each move", {.min = 1, .max = 1000});
  fields.Add("move_time", options.move_time, "milliseconds for each move", {.min = 1});
  fields.Add(
      "one_ply", options.one_ply,
      "take a mate in one and do not draw a won game by one move, as in play; else a network is "
      "measured bare");
  return fields;
}

Asker::Asker(const AskOptions& options, int threads) : options_(options) {
  const std::vector<Contender> contenders = {{.name = options.player, .one_ply = options.one_ply}};
  CheckContenders(contenders);
  one_ply_ = OnePlyOf(contenders[0]);
  for (int i = 0; i < threads; ++i) tables_.push_back(std::make_unique<PlayerTable>(contenders));
}

Json Asker::Describe() const {
  AskOptions copy = options_;
  return {{"player", DescribeContenders({{.name = options_.player}})},
          {"limits", FieldsOf(copy).ToTree()},
          {"seed", options_.seed}};
}

players::Answer Asker::Ask(const Piece& piece, const oracles::GameSoFar& game, int lines) {
  PlayerTable& table = *tables_[static_cast<size_t>(piece.worker)];
  players::Request request{.game = game, .lines = lines, .stop = piece.stop};
  request.limits.nodes = options_.nodes;
  if (options_.depth) request.limits.depth = static_cast<int>(*options_.depth);
  request.limits.move_milliseconds = options_.move_time;
  request.seed = Rng({.seed = options_.seed,
                      .epoch = game.moves.size(),
                      .sample = static_cast<uint64_t>(piece.number),
                      .purpose = Purpose("position")})
                     .Next();
  std::optional<Watchdog> watchdog;
  if (options_.move_time && !table.IsEngine(0)) {
    watchdog.emplace(piece.stop);
    request.stop = watchdog->Arm(std::chrono::steady_clock::now() +
                                 std::chrono::milliseconds(*options_.move_time));
  }
  try {
    players::Player& player = table.At(0);
    player.NewGame();
    return player.Play(request);
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::kInterrupted) throw;
    LogWarn("no answer on position {}: {}", piece.number, error.message());
    table.Drop(0);
    return {};
  }
}

}  // namespace kibitz::arena
