// From logits to choices: candidate moves, and draws at a temperature.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "games/chess/board.h"
#include "students/decoder/play/thought.h"

namespace kibitz::decoder {

// The moves with their probabilities at temperature 1, the most likely first, equal ones by token:
// every legal move, or every move token. `board` may be null: then no token is known to be legal.
std::vector<Candidate> LegalCandidates(const chess::Board& board, std::span<const float> logits);
std::vector<Candidate> AllCandidates(const chess::Board* board, std::span<const float> logits);

struct Draw {
  double temperature = 0;  // 0: the most likely.
  int top_k = 0;           // 0: all.
  uint64_t seed = 0;
  uint64_t position = 0;  // Of the token in its sequence: each has its own number.
};

// One of the candidates, which must not be empty.
const Candidate& Choose(std::span<const Candidate> candidates, const Draw& draw);
// The index of one of the logits.
size_t Choose(std::span<const float> logits, const Draw& draw);

}  // namespace kibitz::decoder
