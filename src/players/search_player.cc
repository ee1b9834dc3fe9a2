#include "players/search_player.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "games/chess/movegen.h"
#include "oracles/search/search.h"
#include "players/instinct_player.h"

namespace kibitz::players {
namespace {

using chess::Move;
using Clock = std::chrono::steady_clock;

constexpr auto kBetweenReports = std::chrono::milliseconds(100);

Line LineOf(const oracles::RootMove& move) {
  Line line{.pv = {}, .wdl = move.wdl, .mate = move.mate};
  if (!line.wdl) line.wdl = oracles::WdlFrom(move.q, 0);  // What it counted as in the search.
  for (const oracles::LineNode& node : move.line) line.pv.push_back(node.move);
  if (line.pv.empty()) line.pv = {move.move};
  return line;
}

}  // namespace

SearchPlayer::SearchPlayer(std::shared_ptr<oracles::Evaluator> network,
                           const SearchOptions& options)
    : network_(std::move(network)), options_(options) {}

void SearchPlayer::Follow(const oracles::GameSoFar& game, int leaves) {
  const bool follows = tree_ != nullptr && leaves_ == leaves && game_.start == game.start &&
                       game_.moves.size() <= game.moves.size() &&
                       std::equal(game_.moves.begin(), game_.moves.end(), game.moves.begin());
  if (follows) {
    for (size_t i = game_.moves.size(); i < game.moves.size(); ++i) tree_->Play(game.moves[i]);
  } else {
    oracles::TreeOptions options = options_.tree;
    options.leaves = leaves;
    tree_ = std::make_unique<oracles::SearchTree>(game, options);
  }
  game_ = game;
  leaves_ = leaves;
}

Answer SearchPlayer::AnswerOf(const Request& request, const oracles::SearchReport& report) const {
  Answer answer;
  answer.nodes = report.visits;
  answer.depth = report.depth;
  answer.wdl = report.wdl;
  const std::vector<Move> allowed = AllowedMoves(request);
  std::vector<MoveInfo> by_visits;  // In the report's order, the chances those of the visits.
  for (const oracles::RootMove& move : report.moves) {
    if (std::ranges::find(allowed, move.move) == allowed.end()) continue;
    answer.moves.push_back(
        {.move = move.move, .probability = move.prior, .visits = move.visits, .wdl = move.wdl});
    by_visits.push_back({.move = move.move, .probability = static_cast<double>(move.visits)});
    if (static_cast<int>(answer.lines.size()) < request.lines) answer.lines.push_back(LineOf(move));
  }
  if (by_visits.empty()) return answer;
  const double temperature = TemperatureAt(options_.temperature, options_.temperature_moves,
                                           tree_->root().fullmove_number());
  const size_t chosen =
      temperature > 0 ? ChooseByTemperature(by_visits, temperature, request.seed) : 0;
  answer.move = by_visits[chosen].move;
  const auto line = std::ranges::find_if(
      answer.lines, [&](const Line& candidate) { return candidate.pv.front() == *answer.move; });
  if (line != answer.lines.end()) {
    std::rotate(answer.lines.begin(), line, line + 1);
  } else {
    const auto& all = report.moves;
    const auto found = std::ranges::find(all, *answer.move, &oracles::RootMove::move);
    answer.lines.insert(answer.lines.begin(), LineOf(*found));
  }
  std::ranges::stable_sort(answer.moves, std::greater(), &MoveInfo::probability);
  return answer;
}

Answer SearchPlayer::Play(const Request& request, const OnProgress& on_progress) {
  if (!chess::HasLegalMove(request.game.Current())) return {};
  const bool timed = request.limits.move_milliseconds || request.limits.clocks ||
                     request.limits.infinite || request.limits.ponder;
  int64_t nodes =
      request.limits.nodes.value_or(timed ? std::numeric_limits<int32_t>::max() : options_.nodes);
  const int leaves = options_.tree.leaves > 0
                         ? options_.tree.leaves
                         : oracles::LeavesFor(std::min<int64_t>(nodes, 1600), network_->batch());
  Follow(request.game, leaves);
  if (tree_->over()) {  // Drawn by the rules, and asked all the same: the network's own word.
    tree_.reset();
    return InstinctPlayer(network_, {}).Play(request, on_progress);
  }
  nodes = std::max<int64_t>(nodes, 2);  // One for the root, so that it has moves to tell of.
  Clock::time_point reported = Clock::now() - kBetweenReports;
  oracles::Search(*network_, *tree_, {.visits = nodes, .stop = request.stop}, [&] {
    if (!on_progress || Clock::now() - reported < kBetweenReports) return;
    Answer answer = AnswerOf(request, tree_->Report());
    if (!answer.move) return;
    on_progress(answer);
    reported = Clock::now();
  });
  if (tree_->visits() == 0) return {};
  return AnswerOf(request, tree_->Report());
}

}  // namespace kibitz::players
