#include "players/player.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"
#include "games/chess/movegen.h"

namespace kibitz::players {

std::vector<chess::Move> AllowedMoves(const Request& request) {
  const chess::MoveList legal = chess::LegalMoves(request.game.Current());
  const std::vector<chess::Move>& wanted = request.limits.search_moves;
  std::vector<chess::Move> moves;
  for (chess::Move move : legal) {
    if (wanted.empty() || std::ranges::find(wanted, move) != wanted.end()) moves.push_back(move);
  }
  if (moves.empty()) moves.assign(legal.begin(), legal.end());
  return moves;
}

size_t ChooseByTemperature(const std::vector<MoveInfo>& moves, double temperature, uint64_t seed) {
  CHECK(!moves.empty());
  // Gumbel's trick: the largest of log p / T plus noise is a draw from the softmax.
  Rng rng({.seed = seed, .purpose = Purpose("player's move")});
  size_t best = 0;
  double best_score = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < moves.size(); ++i) {
    double score = std::log(std::max(moves[i].probability, 1e-300));
    if (temperature > 0) score = score / temperature + rng.Gumbel();
    if (score > best_score) {
      best = i;
      best_score = score;
    }
  }
  return best;
}

}  // namespace kibitz::players
