// What a player's answer is to a chess program: the text of "info" lines. No state, no threads.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "games/chess/board.h"
#include "players/player.h"

namespace kibitz::uci {

// Centipawns of an expected result in [-1, 1], as lc0 gives them: 90 tan(1.5637541897 wl).
int CentipawnsOf(double wl);
// Win, draw and loss in permille; they sum to 1000.
std::array<int, 3> PermilleOf(const oracles::Wdl& wdl);

struct InfoFrame {
  int64_t milliseconds = 0;
  size_t max_lines = 1;
  bool show_wdl = false;
};
// "info depth 2 seldepth 3 multipv 1 score cp 21 wdl 60 910 30 nodes 5 nps 50 time 100 pv ...":
// one for each line, the best first. Every line has a score, and ends where the game does: by mate,
// stalemate, repetition or a rule that draws.
std::vector<std::string> InfoLines(const oracles::GameSoFar& game, const players::Answer& answer,
                                   const InfoFrame& frame);

// One "info string" for each root move, the best last, as lc0's VerboseMoveStats writes them:
// "info string e2e4  (N: 321) (P: 41.23%) (WL: 0.04512) (D: 0.612)".
std::vector<std::string> MoveStatsLines(const chess::Board& root, const players::Answer& answer);

}  // namespace kibitz::uci
