// One training sample: its tokens and everything the network is taught about them.
//
//   Sequence sample = ThinkingSequence(row, options, rng);   // thinking_sequence.h
//   for (const MoveTarget& move : sample.moves) ...           // What the policy heads must say.
//
// Targets are lists, not dense masks: a sequence has a handful of moves and values among hundreds
// of tokens. The dense tensors of the reference follow from them (batch.h, `Pad`).
#pragma once

#include <cstdint>
#include <vector>

#include "students/decoder/data/vocabulary.h"

namespace kibitz::decoder {

// A target that is not scored.
inline constexpr int kIgnore = -100;

// The board's 68 tokens (fewer when cut by the length limit): they see each other in the prefix
// pass.
struct Block {
  int32_t begin = 0;
  int32_t end = 0;

  bool operator==(const Block&) const = default;
};

struct MoveTarget {
  int32_t position = 0;   // Of the token it is predicted from.
  int32_t move = 0;       // In the move vocabulary.
  bool thinking = false;  // By the thinking policy head; else by the policy head.

  bool operator==(const MoveTarget&) const = default;
};

// The values behind a move token: wl_value at wl_position, d_value right after it. The wl head is
// asked at wl_position - 1 (the move), the d head at wl_position.
struct ValueTarget {
  int32_t wl_position = 0;
  float wl = 0;        // Win minus loss, in [-1, 1]; 0 when not known.
  float d = 0;         // In [0, 1]; 0 when not known.
  bool valid = false;  // Known: scored. Both values are put into the sequence in any case.

  bool operator==(const ValueTarget&) const = default;
};

struct Sequence {
  std::vector<TokenId> ids;
  // What the board head must say at each position, in the board vocabulary, or kIgnore. Positions
  // before the first move target are not taught: nothing announces the first board.
  std::vector<int8_t> board_targets;
  std::vector<Block> blocks;
  std::vector<MoveTarget> moves;    // By position.
  std::vector<ValueTarget> values;  // By position.

  bool thinking = false;           // A thinking sequence; else a game.
  bool first_is_not_best = false;  // The first variation shown is not the final move.

  int32_t size() const { return static_cast<int32_t>(ids.size()); }
  bool operator==(const Sequence&) const = default;
};

}  // namespace kibitz::decoder
