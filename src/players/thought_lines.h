// What a thought means to whoever asked for a move: the move to play, and its variations as lines.
// No state.
#pragma once

#include <optional>
#include <vector>

#include "players/player.h"
#include "students/decoder/play/thought.h"

namespace kibitz::players {

oracles::Wdl WdlFrom(decoder::NodeValue value);

// The move to play, in this order: the final move; where the thought was cut off, what
// BestFinished says; the most likely allowed move. Nothing when the network had seen nothing.
std::optional<chess::Move> MoveOf(const decoder::Thought& thought,
                                  const std::vector<chess::Move>& allowed);

// Of the variations that were finished, the first move with the best value; but only when the
// instinct's move is among them: without it the values compare nothing.
std::optional<chess::Move> BestFinished(const decoder::Thought& thought,
                                        const std::vector<chess::Move>& allowed);

// The legal beginnings of the variations with the values of their first moves, the best first, one
// for each first move. `best` is put on top, whether or not a variation began with it.
std::vector<Line> LinesOf(const decoder::Thought& thought, const std::vector<chess::Move>& allowed,
                          std::optional<chess::Move> best);

// Nodes that have a value, over all variations.
int64_t NodesOf(const decoder::Thought& thought);

// A line that ends with checkmate by the rules is a mate.
void MarkMate(const chess::Board& root, Line& line);

}  // namespace kibitz::players
