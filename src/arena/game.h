// One game between two players, from an opening to its end, with the clock, the rules of the match,
// and a result for a player that breaks.
//
//   const GameRules rules{.limits = {.nodes = 400}};
//   const auto game = PlayGame(task, rules, table, stop);
//   if (game) Use(game->result, game->reason);
//
// A player loses the game when it crashes, hangs, answers an illegal move, gives no move, or runs
// out of time. It is then made anew; the match goes on.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "arena/player_table.h"
#include "base/options.h"
#include "games/chess/pgn.h"
#include "oracles/engines/uci_client.h"

namespace kibitz::arena {

// What a player may use for a move. Nothing at all: the limits in its own name.
struct TimeControl {
  std::string clock = {};             // "10+0.1": seconds, and seconds added for each move.
  std::optional<int64_t> nodes = {};  // For each move, as those below.
  std::optional<int64_t> depth = {};
  std::optional<int64_t> move_time = {};  // Milliseconds.
  int64_t margin = 100;                   // Milliseconds beyond the clock before the game is lost.
};
Fields FieldsOf(TimeControl& control);

struct ClockTimes {
  int64_t base = 0;       // Milliseconds.
  int64_t increment = 0;  // Milliseconds a move.
};
// "10+0.1" or "10".
Result<ClockTimes> ParseClock(std::string_view text);

// Ends by agreement of the evaluations; off unless a score is given.
struct Adjudication {
  int64_t resign_score = 0;  // Centipawns: both players see one side ahead by so much; 0: off.
  int resign_moves = 3;      // ... for so many moves of each in a row.
  int64_t draw_score = 0;    // Both see less than this; 0: off.
  int draw_moves = 8;        // ... for so many moves of each in a row ...
  int draw_from = 40;        // ... from this move of the game on.
};
Fields FieldsOf(Adjudication& adjudication);

struct GameRules {
  TimeControl limits = {};
  Adjudication adjudication = {};
  int max_plies = 400;         // Moves played by both sides after the opening; then a draw.
  bool draw_claims = false;    // Threefold repetition and fifty moves end the game.
  double stall_seconds = 300;  // A move that takes longer loses, whatever the limits.
  // What to keep besides moves and result.
  bool notes = false;  // Comments for PGN: evaluation, clock, thought.
  bool trace = false;  // The probabilities of every move.
};
Fields FieldsOf(GameRules& rules);

struct GameTask {
  size_t white = 0;  // Numbers in the player table.
  size_t black = 1;
  oracles::GameSoFar opening = {};
  uint64_t seed = 0;  // Of this game.
};

// A move's probabilities as the player told them, the most likely first.
using MoveTrace = std::vector<std::pair<chess::Move, double>>;

struct PlayedGame {
  oracles::GameSoFar game = {};  // With the moves of the opening.
  size_t opening_plies = 0;
  chess::GameResult result = chess::GameResult::kUnknown;
  std::string reason = {};              // "checkmate", "White forfeits on time", ...
  bool failed = false;                  // A player broke: crash, hang, illegal move.
  std::vector<std::string> notes = {};  // One for each move after the opening, where kept.
  std::vector<MoveTrace> trace = {};

  nlohmann::ordered_json ToJson() const;
  // `opening` is that of the game's task. Throws Error for a journal of another version.
  static PlayedGame FromJson(const nlohmann::ordered_json& json, const oracles::GameSoFar& opening);
};

// Nothing when it was abandoned at `stop`. Throws Error when a player cannot be made at all.
std::optional<PlayedGame> PlayGame(const GameTask& task, const GameRules& rules,
                                   PlayerTable& players, const std::stop_token& stop);

// The evaluation of an answer in centipawns for the side to move, as it tells it or from its
// win-draw-loss chances; mates are ±10000 less their moves. Nothing when it has none.
std::optional<int> CentipawnsOf(const players::Answer& answer);

}  // namespace kibitz::arena
