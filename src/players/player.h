// The interface of everything that plays chess. Input: the game so far. Output: a move, with
// probabilities, win/draw/loss and lines where the player has them.
//
//   std::unique_ptr<Player> player = MakePlayer("search:maia-1500.pb.gz?nodes=400");
//   const Answer answer = player->Play({.game = {.start = board}});
//   if (answer.move) Use(*answer.move);
//
// Networks, searches and engines are players: 'kibitz play', UCI, arena and server ask them through
// this interface. docs/PLAYERS.md shows how to add one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "games/chess/board.h"
#include "oracles/engines/score.h"
#include "oracles/engines/uci_client.h"

namespace kibitz::players {

// What a player is asked.
struct Request {
  oracles::GameSoFar game = {};  // The position is the one after the last move.
  // Networks and searches honour nodes, depth and search_moves; whoever asks them watches the clock
  // and uses `stop`. An engine is told everything and watches its clock itself.
  oracles::Limits limits = {};
  int lines = 1;      // Lines wanted, as UCI's MultiPV.
  uint64_t seed = 0;  // Of random draws. The same request gets the same answer, time apart.
  // Ends the work from another thread. The answer is what was known by then.
  std::stop_token stop = {};
};

// A way the game may go on, best first among its likes.
struct Line {
  std::vector<chess::Move> pv;           // At least one move, legal move by move.
  std::optional<oracles::Wdl> wdl = {};  // For the side to move at the root.
  std::optional<oracles::Mate> mate = {};
  std::optional<int> centipawns = {};  // As the player tells it; nothing: to be derived from wdl.
};

// A root move and what the player gives for it.
struct MoveInfo {
  chess::Move move;
  double probability = 0;                // Of the policy, over the moves that may be played.
  int64_t visits = 0;                    // Of a search.
  std::optional<oracles::Wdl> wdl = {};  // After the move, for the side that makes it.
};

struct Answer {
  // The move to play. Nothing only when there is no legal move, or when stopped before the player
  // had seen the position.
  std::optional<chess::Move> move = {};
  std::vector<MoveInfo> moves = {};       // Those that may be played, the most likely first.
  std::vector<Line> lines = {};           // The first begins with `move`.
  std::optional<oracles::Wdl> wdl = {};   // Of the position, for the side to move.
  int64_t nodes = 0;                      // Positions evaluated.
  int depth = 0;                          // 0: the length of the first line.
  std::vector<std::string> remarks = {};  // For people: what was odd about this answer.
};

// Called on the thread that called Play, with what is known so far; `move` is set.
using OnProgress = std::function<void(const Answer&)>;

class Player {
 public:
  virtual ~Player() = default;

  // One call at a time. Throws Error when the player breaks, such as an engine that crashes.
  virtual Answer Play(const Request& request, const OnProgress& on_progress = {}) = 0;
  // What it is, for people and for PGN: "policy-small", "Stockfish 15.1".
  virtual std::string name() const = 0;
  // Forget the game before, where something is kept from move to move.
  virtual void NewGame() {}
};

// The legal moves at the root, or those of them that `limits.search_moves` names.
std::vector<chess::Move> AllowedMoves(const Request& request);

// Draws by probability^(1/temperature); at 0 the first of the most likely. `moves` is not empty.
size_t ChooseByTemperature(const std::vector<MoveInfo>& moves, double temperature, uint64_t seed);

}  // namespace kibitz::players
