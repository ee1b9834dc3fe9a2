// One training sample: its tokens and all targets.
//
//   Sequence sample = ThinkingSequence(row, options, rng);   // thinking_sequence.h
//   for (const MoveTarget& move : sample.moves) ...           // Targets of the policy heads.
//
// Targets are lists, not dense masks: a sequence has a handful of moves and values among hundreds
// of tokens. `Pad` (batch.h) turns them into the dense tensors of the reference.
#pragma once

#include <cstdint>
#include <vector>

#include "students/decoder/data/vocabulary.h"

namespace kibitz::decoder {

// A target that the loss ignores.
inline constexpr int kIgnore = -100;

// The 68 tokens of a board (fewer when cut by the length limit). They attend to each other in the
// prefix pass.
struct Block {
  int32_t begin = 0;
  int32_t end = 0;

  bool operator==(const Block&) const = default;
};

struct MoveTarget {
  int32_t position = 0;   // Whose output predicts the move.
  int32_t move = 0;       // In the move vocabulary.
  bool thinking = false;  // Of the thinking policy head; else of the policy head.

  bool operator==(const MoveTarget&) const = default;
};

// The values after a move token: wl_value at wl_position, d_value right after it. The wl head
// predicts at wl_position - 1 (the move), the d head at wl_position.
struct ValueTarget {
  int32_t wl_position = 0;
  float wl = 0;        // Win minus loss, in [-1, 1]; 0 when not known.
  float d = 0;         // In [0, 1]; 0 when not known.
  bool valid = false;  // Known, so it has a loss. The sequence holds both tokens in any case.

  bool operator==(const ValueTarget&) const = default;
};

struct Sequence {
  std::vector<TokenId> ids;
  // Target of the board head at each position, in the board vocabulary, or kIgnore: positions
  // before the first move target have none, because nothing predicts the first board.
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
