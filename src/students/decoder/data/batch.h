// Sequences packed end to end, with their lengths: what the network trains on, without padding. The
// padded form is for comparison with the reference.
//
//   Batch batch = Pack(sequences);
//   batch.ids;            // All tokens of sequence 0, then of sequence 1, ...
//   batch.starts[1];      // The first token of sequence 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "students/decoder/data/sequence.h"

namespace kibitz::decoder {

// All positions count from the start of the pack. Letters: T tokens, S sequences.
struct Batch {
  std::vector<int32_t> ids;                // T
  std::vector<int32_t> board_targets;      // T; kIgnore where the board head is not scored.
  std::vector<int32_t> starts;             // S + 1, the last is T.
  std::vector<Block> blocks;               // By position; never across sequences.
  std::vector<MoveTarget> moves;           // By position, of both policy heads.
  std::vector<ValueTarget> values;         // By position.
  std::vector<MoveShare> shares;           // Of soft targets in `moves`.
  std::vector<Branch> branches;            // By position.
  std::vector<uint8_t> own_values;         // S
  std::vector<uint8_t> thinking;           // S
  std::vector<uint8_t> first_is_not_best;  // S

  // Epoch of the thinking data when the batch was made.
  uint64_t variation_epoch = 0;

  int32_t sequences() const { return static_cast<int32_t>(starts.size()) - 1; }
  int32_t tokens() const { return static_cast<int32_t>(ids.size()); }
  bool operator==(const Batch&) const = default;
};

Batch Pack(std::span<const Sequence> sequences);

// The reference's tensors, (S, max_seq_len) each. Where a board is skipped, the d_value before a
// move is also the position that predicts it: the reference's d_targets hold the later value there,
// and so do these. Batch keeps both values apart.
struct PaddedBatch {
  int32_t rows = 0;
  int32_t max_seq_len = 0;
  std::vector<int64_t> input_ids;  // `pad` after the end.
  std::vector<int64_t> board_target_ids;
  std::vector<int64_t> move_target_ids;
  std::vector<int64_t> block_id;  // Boards count from 0; every other position has an id of its own.
  std::vector<uint8_t> board_mask;
  std::vector<uint8_t> move_mask;
  std::vector<uint8_t> thinking_move_mask;
  std::vector<uint8_t> continue_var_mask;
  std::vector<uint8_t> new_variation_mask;
  std::vector<uint8_t> wl_positions;
  std::vector<uint8_t> d_positions;
  std::vector<float> wl_targets;  // At the wl position and at the position that predicts the move.
  std::vector<float> d_targets;   // At the d position and at the position that predicts the move.
  std::vector<uint8_t> wdl_valid;
  std::vector<uint8_t> first_is_not_best;  // S
};

PaddedBatch Pad(const Batch& batch, int32_t max_seq_len);

}  // namespace kibitz::decoder
