#include "players/thought_lines.h"

#include <algorithm>

#include "games/chess/rules.h"

namespace kibitz::players {
namespace {

using chess::Move;
using decoder::Candidate;
using decoder::NodeValue;
using decoder::Thought;

bool Contains(const std::vector<Move>& allowed, Move move) {
  return std::ranges::find(allowed, move) != allowed.end();
}

// The first legal candidate that is allowed; they come the most likely first.
std::optional<Move> MostLikely(const std::vector<Candidate>& candidates,
                               const std::vector<Move>& allowed) {
  for (const Candidate& candidate : candidates) {
    if (candidate.move && Contains(allowed, *candidate.move)) return candidate.move;
  }
  return std::nullopt;
}

// The value of the variation's first move, for the side that makes it.
template <typename Variation>
std::optional<NodeValue> ValueOf(const Variation& variation) {
  if (variation.nodes.empty() || !variation.nodes[0].value) return std::nullopt;
  return decoder::RootView(*variation.nodes[0].value, 0);
}

// Lines without a value come last.
double Rank(const Line& line) { return line.wdl ? line.wdl->win - line.wdl->loss : -2.0; }

}  // namespace

oracles::Wdl WdlFrom(NodeValue value) {
  const auto wdl = decoder::WdlOf(value);
  return {wdl.win, wdl.draw, wdl.loss};
}

std::optional<Move> BestFinished(const Thought& thought, const std::vector<Move>& allowed) {
  const auto instinct = MostLikely(thought.instinct, allowed);
  std::optional<Move> best;
  float best_value = 0;
  bool compared = false;
  for (const auto& variation : thought.variations) {
    const auto value = ValueOf(variation);
    if (!variation.ended || !value || !variation.nodes[0].move) continue;
    const Move move = *variation.nodes[0].move;
    if (!Contains(allowed, move)) continue;
    compared = compared || move == instinct;
    if (best && best_value >= value->wl) continue;
    best = move;
    best_value = value->wl;
  }
  return compared ? best : std::nullopt;
}

std::optional<Move> MoveOf(const Thought& thought, const std::vector<Move>& allowed) {
  if (thought.final_move || thought.end != decoder::ThoughtEnd::kCancelled) {
    if (thought.move && Contains(allowed, *thought.move)) return thought.move;
    return MostLikely(thought.candidates, allowed);
  }
  if (const auto best = BestFinished(thought, allowed)) return best;
  return MostLikely(thought.instinct, allowed);
}

std::vector<Line> LinesOf(const Thought& thought, const std::vector<Move>& allowed,
                          std::optional<Move> best) {
  std::vector<Line> lines;
  for (const auto& variation : thought.variations) {
    const decoder::LegalLine legal = LegalPart(variation);
    if (legal.moves.empty() || !Contains(allowed, legal.moves.front())) continue;
    Line line{.pv = legal.moves};
    if (const auto value = ValueOf(variation)) line.wdl = WdlFrom(*value);
    const auto same = std::ranges::find_if(
        lines, [&](const Line& other) { return other.pv.front() == line.pv.front(); });
    if (same == lines.end()) {
      lines.push_back(std::move(line));
    } else if (same->pv.size() < line.pv.size()) {
      *same = std::move(line);
    }
  }
  std::ranges::stable_sort(lines, std::greater(), Rank);
  if (best) {
    const auto found =
        std::ranges::find_if(lines, [&](const Line& line) { return line.pv.front() == *best; });
    if (found == lines.end()) {
      lines.insert(lines.begin(), Line{.pv = {*best}});
    } else {
      std::rotate(lines.begin(), found, found + 1);
    }
    const bool its_own = thought.final_move && thought.final_move->move == best;
    if (its_own && thought.final_value) lines.front().wdl = WdlFrom(*thought.final_value);
  }
  for (Line& line : lines) MarkMate(thought.root, line);
  return lines;
}

int64_t NodesOf(const Thought& thought) {
  int64_t nodes = 0;
  for (const auto& variation : thought.variations) {
    nodes += std::ranges::count_if(variation.nodes,
                                   [](const auto& node) { return node.value.has_value(); });
  }
  return nodes;
}

void MarkMate(const chess::Board& root, Line& line) {
  chess::Board board = root;
  for (Move move : line.pv) board = board.After(move);
  if (!chess::IsCheckmate(board)) return;
  const bool wins = line.pv.size() % 2 == 1;
  line.mate = oracles::Mate{.wins = wins, .moves = static_cast<int>(line.pv.size() + 1) / 2};
  line.wdl = wins ? oracles::Wdl{.win = 1} : oracles::Wdl{.loss = 1};
}

}  // namespace kibitz::players
