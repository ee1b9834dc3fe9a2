// Turns a thought into UCI: the move to play, the candidate lines with scores, and the text of
// "info" lines. No state, no threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "games/chess/board.h"
#include "students/decoder/play/thought.h"

namespace kibitz::uci {

// A candidate line: every move is legal, from the root.
struct Line {
  std::vector<chess::Move> pv;
  std::optional<decoder::NodeValue> value;  // For the side to move at the root.
};

// Moves that may be played; empty: every legal one.
using Allowed = std::span<const chess::Move>;

bool IsAllowed(Allowed allowed, chess::Move move);

// Centipawns of an expected result in [-1, 1], as lc0 gives them: 90 tan(1.5637541897 wl).
int CentipawnsOf(double wl);
// Win, draw and loss in permille; they sum to 1000.
std::array<int, 3> PermilleOf(const decoder::Wdl& wdl);

// The move to play, the first there is of: the final move; BestFinished, when the thought was cut
// off; the most likely allowed move. Nothing when the network has not read the root.
std::optional<chess::Move> MoveOf(const decoder::Thought& thought, Allowed allowed);
// The move drawn where it is allowed, else the most likely one that is.
std::optional<chess::Move> MoveOf(const decoder::Prediction& prediction, Allowed allowed);
// The first move with the best value among the finished variations, when the instinct's move is one
// of them: without it there is nothing to compare the values with.
std::optional<chess::Move> BestFinished(const decoder::Thought& thought, Allowed allowed);

// The legal part of each variation with its first move's value, the best first, one line per first
// move. `best` comes first, whether or not a variation starts with it.
std::vector<Line> LinesOf(const decoder::Thought& thought, Allowed allowed,
                          std::optional<chess::Move> best = {});
// Every candidate as a line of one move, `chosen` first, with its value.
std::vector<Line> LinesOf(const decoder::Prediction& prediction, Allowed allowed,
                          chess::Move chosen);

// Nodes that have a value, over all variations.
int64_t NodesOf(const decoder::Thought& thought);
// Moves of the variations that were cut: the first illegal one of each, and those after it.
int64_t MovesBeyond(const decoder::Thought& thought);

// The parts of "info" that do not depend on the line.
struct InfoFrame {
  int64_t nodes = 0;
  int64_t milliseconds = 0;
  size_t max_lines = 1;
  bool show_wdl = false;
};
// "info depth 2 seldepth 3 multipv 1 score cp 21 wdl 60 910 30 nodes 5 nps 50 time 100 pv ...":
// one for each line, the best first. depth is the line's length, seldepth the longest one's.
std::vector<std::string> InfoLines(const chess::Board& root, std::span<const Line> lines,
                                   const InfoFrame& frame);
// "info string policy e2e4 41.23%", the most likely first.
std::vector<std::string> PolicyLines(const chess::Board& root,
                                     std::span<const decoder::Candidate> candidates,
                                     Allowed allowed, size_t max);

}  // namespace kibitz::uci
