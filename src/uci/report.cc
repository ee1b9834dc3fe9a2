#include "uci/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "games/chess/move_text.h"

namespace kibitz::uci {
namespace {

using chess::Board;
using chess::Move;
using decoder::Candidate;
using decoder::NodeValue;
using decoder::Thought;
using decoder::Variation;

// The first legal candidate that is allowed; they come the most likely first.
std::optional<Move> MostLikely(std::span<const Candidate> candidates, Allowed allowed) {
  for (const Candidate& candidate : candidates) {
    if (candidate.move && IsAllowed(allowed, *candidate.move)) return candidate.move;
  }
  return std::nullopt;
}

// The value of the variation's first move, for the side that makes it.
std::optional<NodeValue> ValueOf(const Variation& variation) {
  if (variation.nodes.empty() || !variation.nodes[0].value) return std::nullopt;
  return decoder::RootView(*variation.nodes[0].value, 0);
}

// Lines without a value come last.
double Rank(const std::optional<NodeValue>& value) {
  return value ? static_cast<double>(value->wl) : -2.0;
}

void PutOnTop(std::vector<Line>& lines, Move best) {
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [&](const Line& line) { return line.pv.front() == best; });
  if (found == lines.end()) {
    lines.insert(lines.begin(), Line{{best}, {}});
  } else {
    std::rotate(lines.begin(), found, found + 1);
  }
}

std::string PvText(Board board, std::span<const Move> pv) {
  std::string text;
  for (Move move : pv) {
    text += " " + ToText(board, move);
    board = board.After(move);
  }
  return text;
}

}  // namespace

bool IsAllowed(Allowed allowed, Move move) {
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), move) != allowed.end();
}

int CentipawnsOf(double wl) {
  return static_cast<int>(std::lround(90 * std::tan(1.5637541897 * std::clamp(wl, -1.0, 1.0))));
}

std::array<int, 3> PermilleOf(const decoder::Wdl& wdl) {
  const double sum = wdl.win + wdl.draw + wdl.loss;
  if (!(sum > 0)) return {0, 1000, 0};
  const int win = static_cast<int>(std::lround(1000 * wdl.win / sum));
  const int loss = std::min(1000 - win, static_cast<int>(std::lround(1000 * wdl.loss / sum)));
  return {win, 1000 - win - loss, loss};
}

std::optional<Move> BestFinished(const Thought& thought, Allowed allowed) {
  const auto instinct = MostLikely(thought.instinct, allowed);
  std::optional<Move> best;
  double best_value = 0;
  bool compared = false;
  for (const Variation& variation : thought.variations) {
    const auto value = ValueOf(variation);
    if (!variation.ended || !value || !variation.nodes[0].move) continue;
    const Move move = *variation.nodes[0].move;
    if (!IsAllowed(allowed, move)) continue;
    compared = compared || move == instinct;
    if (best && best_value >= static_cast<double>(value->wl)) continue;
    best = move;
    best_value = static_cast<double>(value->wl);
  }
  return compared ? best : std::nullopt;
}

std::optional<Move> MoveOf(const Thought& thought, Allowed allowed) {
  if (thought.final_move || thought.end != decoder::ThoughtEnd::kCancelled) {
    if (thought.move && IsAllowed(allowed, *thought.move)) return thought.move;
    return MostLikely(thought.candidates, allowed);
  }
  if (const auto best = BestFinished(thought, allowed)) return best;
  return MostLikely(thought.instinct, allowed);
}

std::optional<Move> MoveOf(const decoder::Prediction& prediction, Allowed allowed) {
  const auto& chosen = prediction.chosen;
  if (chosen && chosen->move && IsAllowed(allowed, *chosen->move)) return chosen->move;
  return MostLikely(prediction.candidates, allowed);
}

std::vector<Line> LinesOf(const Thought& thought, Allowed allowed, std::optional<Move> best) {
  std::vector<Line> lines;
  for (const Variation& variation : thought.variations) {
    const decoder::LegalLine legal = LegalPart(variation);
    if (legal.moves.empty() || !IsAllowed(allowed, legal.moves.front())) continue;
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
      return line.pv.front() == legal.moves.front();
    });
    if (same == lines.end()) {
      lines.push_back({legal.moves, ValueOf(variation)});
    } else if (same->pv.size() < legal.moves.size()) {
      *same = {legal.moves, ValueOf(variation)};
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return Rank(a.value) > Rank(b.value); });
  if (best) {
    PutOnTop(lines, *best);
    const bool its_own = thought.final_move && thought.final_move->move == best;
    if (its_own && thought.final_value) lines.front().value = thought.final_value;
  }
  return lines;
}

std::vector<Line> LinesOf(const decoder::Prediction& prediction, Allowed allowed, Move chosen) {
  std::vector<Line> lines;
  for (const Candidate& candidate : prediction.candidates) {
    if (!candidate.move || !IsAllowed(allowed, *candidate.move)) continue;
    lines.push_back({{*candidate.move}, {}});
  }
  PutOnTop(lines, chosen);
  if (prediction.chosen && prediction.chosen->move == chosen) {
    lines.front().value = prediction.value;
  }
  return lines;
}

int64_t NodesOf(const Thought& thought) {
  int64_t nodes = 0;
  for (const Variation& variation : thought.variations) {
    nodes += std::count_if(variation.nodes.begin(), variation.nodes.end(),
                           [](const auto& node) { return node.value.has_value(); });
  }
  return nodes;
}

int64_t MovesBeyond(const Thought& thought) {
  int64_t moves = 0;
  for (const Variation& variation : thought.variations) moves += LegalPart(variation).beyond;
  return moves;
}

std::vector<std::string> InfoLines(const Board& root, std::span<const Line> lines,
                                   const InfoFrame& frame) {
  size_t longest = 0;
  for (const Line& line : lines) longest = std::max(longest, line.pv.size());
  std::vector<std::string> texts;
  for (const Line& line : lines.first(std::min(frame.max_lines, lines.size()))) {
    std::string text = fmt::format("info depth {} seldepth {} multipv {}", line.pv.size(), longest,
                                   texts.size() + 1);
    if (line.value) {
      text += fmt::format(" score cp {}", CentipawnsOf(static_cast<double>(line.value->wl)));
      const auto [win, draw, loss] = PermilleOf(WdlOf(*line.value));
      if (frame.show_wdl) text += fmt::format(" wdl {} {} {}", win, draw, loss);
    }
    text += fmt::format(" nodes {} nps {} time {} pv{}", frame.nodes,
                        frame.nodes * 1000 / std::max<int64_t>(frame.milliseconds, 1),
                        frame.milliseconds, PvText(root, line.pv));
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::string> PolicyLines(const Board& root, std::span<const Candidate> candidates,
                                     Allowed allowed, size_t max) {
  std::vector<std::string> texts;
  for (const Candidate& candidate : candidates) {
    if (texts.size() == max) break;
    if (!candidate.move || !IsAllowed(allowed, *candidate.move)) continue;
    texts.push_back(fmt::format("info string policy {} {:.2f}%", ToText(root, *candidate.move),
                                100 * candidate.probability));
  }
  return texts;
}

}  // namespace kibitz::uci
