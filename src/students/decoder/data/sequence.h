// One training sample: its tokens and all targets.
//
//   Sequence sample = ThinkingSequence(row, options, rng);   // thinking_sequence.h
//   for (const MoveTarget& move : sample.moves) ...           // Targets of the policy heads.
//
// Targets are lists, not dense masks: a sequence has a handful of moves and values among hundreds
// of tokens. `Pad` (batch.h) turns them into the dense tensors of the reference.
#pragma once

#include <cstddef>
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

// Which loss a move target belongs to. The thinking policy head predicts kThinking and kThreat,
// the policy head the others.
enum class MoveKind : uint8_t {
  kFinal,     // The move of a game's position, or the one after a thought.
  kThinking,  // In a variation.
  kInstinct,  // At the root of a thought, before it begins.
  kPiece,     // On a square of the root: from there, or to it.
  kThreat,    // The same of the opponent, as if it could move. By the thinking policy head.
};
inline constexpr size_t kMoveKinds = 5;

struct MoveTarget {
  int32_t position = 0;  // Whose output predicts the move.
  int32_t move = 0;      // In the move vocabulary; the best one where the target is soft.
  MoveKind kind = MoveKind::kFinal;
  // A soft target: a run of the sequence's shares. None: the move alone.
  uint32_t first_share = 0;
  uint32_t share_count = 0;
  bool legal = false;  // The shares are of all legal moves that may stand there.

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

// A move's part of a soft target. The shares of a target sum to 1.
struct MoveShare {
  int32_t move = 0;  // In the move vocabulary.
  float share = 0;

  bool operator==(const MoveShare&) const = default;
};

// A token that could stand behind the one at `after`, with its target. It sees the tokens up to
// `after` and itself; no other token sees it. So one board answers for many moves, and a thought
// for all the places where it could end.
struct Branch {
  int32_t after = 0;
  TokenId token = 0;  // A move, which has a value, or end_think, where the final move is asked.
  float wl = 0;       // Of a move, as a ValueTarget's.
  // Behind end_think, as a MoveTarget's.
  int32_t final_move = 0;
  uint32_t first_share = 0;
  uint32_t share_count = 0;
  bool legal = false;

  bool ends_thought() const { return token == kEndThink; }

  bool operator==(const Branch&) const = default;
};

struct Sequence {
  std::vector<TokenId> ids;
  // Target of the board head at each position, in the board vocabulary, or kIgnore: positions
  // before the first move target have none, because nothing predicts the first board.
  std::vector<int8_t> board_targets;
  std::vector<Block> blocks;
  std::vector<MoveTarget> moves;       // By position.
  std::vector<ValueTarget> values;     // By position.
  std::vector<MoveShare> shares = {};  // Of soft targets.
  std::vector<Branch> branches = {};   // By position.

  bool own_values = false;  // Its value tokens show what the network predicts, not the targets.
  bool thinking = false;    // A thinking sequence; else a game.
  bool first_is_not_best = false;  // The first variation shown is not the final move.

  int32_t size() const { return static_cast<int32_t>(ids.size()); }
  bool operator==(const Sequence&) const = default;
};

}  // namespace kibitz::decoder
