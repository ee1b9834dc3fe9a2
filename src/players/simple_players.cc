#include "players/simple_players.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "games/chess/movegen.h"

namespace kibitz::players {
namespace {

constexpr double kSoftmaxScale = 200;  // Centipawns.

Line LineOf(const oracles::ScoredMove& scored) {
  Line line{.pv = scored.pv};
  const int plies = oracles::kMateScore - std::abs(scored.score);
  if (plies < 1000) {
    line.mate = oracles::Mate{.wins = scored.score > 0, .moves = (plies + 1) / 2};
    line.wdl = scored.score > 0 ? oracles::Wdl{.win = 1} : oracles::Wdl{.loss = 1};
  } else {
    line.centipawns = scored.score;
    const double expected = oracles::ExpectedResult(scored.score);
    line.wdl = oracles::Wdl{.win = (1 + expected) / 2, .loss = (1 - expected) / 2};
  }
  return line;
}

void SoftmaxOfScores(const std::vector<oracles::ScoredMove>& scored, std::vector<MoveInfo>& moves) {
  double sum = 0;
  for (const oracles::ScoredMove& item : scored) {
    const double weight = std::exp((item.score - scored.front().score) / kSoftmaxScale);
    moves.push_back({.move = item.move, .probability = weight, .wdl = LineOf(item).wdl});
    sum += weight;
  }
  for (MoveInfo& info : moves) info.probability /= sum;
}

}  // namespace

Answer RandomPlayer::Play(const Request& request, const OnProgress& on_progress) {
  Answer answer;
  const std::vector<chess::Move> allowed = AllowedMoves(request);
  if (allowed.empty()) return answer;
  for (chess::Move move : allowed) {
    answer.moves.push_back(
        {.move = move, .probability = 1.0 / static_cast<double>(allowed.size())});
  }
  Rng rng({.seed = request.seed, .purpose = Purpose("random player")});
  answer.move = allowed[rng.Below(allowed.size())];
  answer.wdl = oracles::Wdl{.draw = 1};
  answer.lines.push_back({.pv = {*answer.move}, .wdl = answer.wdl, .centipawns = 0});
  for (chess::Move move : allowed) {
    if (static_cast<int>(answer.lines.size()) >= request.lines) break;
    if (move == *answer.move) continue;
    answer.lines.push_back({.pv = {move}, .wdl = answer.wdl, .centipawns = 0});
  }
  if (on_progress) on_progress(answer);
  return answer;
}

std::string NegamaxPlayer::name() const {
  return fmt::format("negamax depth {} ({})", options_.depth,
                     options_.material == oracles::Material::kTables ? "tables" : "pieces");
}

Answer NegamaxPlayer::Play(const Request& request, const OnProgress& on_progress) {
  Answer answer;
  const std::vector<chess::Move> allowed = AllowedMoves(request);
  if (allowed.empty()) return answer;
  const int depth = std::min(options_.depth, request.limits.depth.value_or(options_.depth));
  oracles::NegamaxResult result = oracles::Negamax(
      request.game, {.depth = depth, .material = options_.material, .stop = request.stop});
  std::erase_if(result.moves, [&](const oracles::ScoredMove& scored) {
    return std::ranges::find(allowed, scored.move) == allowed.end();
  });
  SoftmaxOfScores(result.moves, answer.moves);
  const size_t chosen = ChooseByTemperature(answer.moves, options_.temperature, request.seed);
  std::rotate(result.moves.begin(), result.moves.begin() + static_cast<std::ptrdiff_t>(chosen),
              result.moves.begin() + static_cast<std::ptrdiff_t>(chosen) + 1);
  answer.move = result.moves.front().move;
  answer.wdl = LineOf(result.moves.front()).wdl;
  answer.nodes = result.nodes;
  answer.depth = result.depth;
  for (const oracles::ScoredMove& scored : result.moves) {
    if (static_cast<int>(answer.lines.size()) == std::max(1, request.lines)) break;
    answer.lines.push_back(LineOf(scored));
  }
  if (on_progress) on_progress(answer);
  return answer;
}

}  // namespace kibitz::players
