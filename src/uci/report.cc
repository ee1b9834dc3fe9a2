#include "uci/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "games/chess/move_text.h"
#include "games/chess/rules.h"

namespace kibitz::uci {
namespace {

// `boards` is the game so far, and is as before at the end.
std::string PvText(std::vector<chess::Board>& boards, const std::vector<chess::Move>& pv) {
  const size_t played = boards.size();
  std::string text;
  for (chess::Move move : pv) {
    text += " " + ToText(boards.back(), move);
    boards.push_back(boards.back().After(move));
    if (chess::EndingOf(boards) != chess::Ending::kNone) break;
  }
  boards.resize(played);
  return text;
}

std::string ScoreText(const players::Line& line) {
  if (line.mate) {
    const int moves = line.mate->wins ? line.mate->moves : -line.mate->moves;
    return fmt::format("mate {}", moves);
  }
  if (line.centipawns) return fmt::format("cp {}", *line.centipawns);
  return fmt::format("cp {}", line.wdl ? CentipawnsOf(line.wdl->win - line.wdl->loss) : 0);
}

}  // namespace

int CentipawnsOf(double wl) {
  return static_cast<int>(std::lround(90 * std::tan(1.5637541897 * std::clamp(wl, -1.0, 1.0))));
}

std::array<int, 3> PermilleOf(const oracles::Wdl& wdl) {
  const double sum = wdl.win + wdl.draw + wdl.loss;
  if (!(sum > 0)) return {0, 1000, 0};
  const int win = static_cast<int>(std::lround(1000 * wdl.win / sum));
  const int loss = std::min(1000 - win, static_cast<int>(std::lround(1000 * wdl.loss / sum)));
  return {win, 1000 - win - loss, loss};
}

std::vector<std::string> InfoLines(const oracles::GameSoFar& game, const players::Answer& answer,
                                   const InfoFrame& frame) {
  std::vector<chess::Board> boards = game.Boards();
  size_t longest = static_cast<size_t>(answer.depth);
  for (const players::Line& line : answer.lines) longest = std::max(longest, line.pv.size());
  std::vector<std::string> texts;
  for (const players::Line& line : answer.lines) {
    if (texts.size() == frame.max_lines) break;
    const size_t depth = answer.depth > 0 ? static_cast<size_t>(answer.depth) : line.pv.size();
    std::string text = fmt::format("info depth {} seldepth {} multipv {} score {}", depth, longest,
                                   texts.size() + 1, ScoreText(line));
    if (frame.show_wdl && line.wdl) {
      const auto [win, draw, loss] = PermilleOf(*line.wdl);
      text += fmt::format(" wdl {} {} {}", win, draw, loss);
    }
    const int64_t nodes = std::max<int64_t>(answer.nodes, 1);
    text += fmt::format(" nodes {} nps {} time {} pv{}", nodes,
                        nodes * 1000 / std::max<int64_t>(frame.milliseconds, 1), frame.milliseconds,
                        PvText(boards, line.pv));
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::string> MoveStatsLines(const chess::Board& root, const players::Answer& answer) {
  std::vector<std::string> texts;
  for (auto info = answer.moves.rbegin(); info != answer.moves.rend(); ++info) {
    std::string text = fmt::format("info string {:5} (N: {:7}) (P: {:5.2f}%)",
                                   ToText(root, info->move), info->visits, 100 * info->probability);
    if (info->wdl) {
      text += fmt::format(" (WL: {:8.5f}) (D: {:5.3f})", info->wdl->win - info->wdl->loss,
                          info->wdl->draw);
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace kibitz::uci
