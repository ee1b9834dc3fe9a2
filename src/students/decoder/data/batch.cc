#include "students/decoder/data/batch.h"

#include <algorithm>

#include "base/check.h"

namespace kibitz::decoder {
namespace {

// The first element of row r in the tensors of a padded batch.
class Rows {
 public:
  Rows(const Batch& batch, int32_t max_seq_len) : batch_(batch), length_(max_seq_len) {}

  // The padded index of a packed position.
  size_t operator()(size_t sequence, int32_t position) const {
    const int32_t within = position - batch_.starts[sequence];
    return sequence * static_cast<size_t>(length_) + static_cast<size_t>(within);
  }

 private:
  const Batch& batch_;
  int32_t length_;
};

PaddedBatch Blank(int32_t rows, int32_t max_seq_len) {
  const size_t cells = static_cast<size_t>(rows) * static_cast<size_t>(max_seq_len);
  PaddedBatch padded;
  padded.rows = rows;
  padded.max_seq_len = max_seq_len;
  padded.input_ids.assign(cells, kPad);
  padded.board_target_ids.assign(cells, kIgnore);
  padded.move_target_ids.assign(cells, kIgnore);
  padded.block_id.assign(cells, 0);
  for (auto* mask : {&padded.board_mask, &padded.move_mask, &padded.thinking_move_mask,
                     &padded.continue_var_mask, &padded.new_variation_mask, &padded.wl_positions,
                     &padded.d_positions, &padded.wdl_valid}) {
    mask->assign(cells, 0);
  }
  padded.wl_targets.assign(cells, 0);
  padded.d_targets.assign(cells, 0);
  return padded;
}

void PadTokens(const Batch& batch, const Rows& place, PaddedBatch& padded) {
  const int continue_var = BoardIndex(kContinueVar);
  const int new_variation = BoardIndex(kNewVariation);
  for (size_t s = 0; s < static_cast<size_t>(padded.rows); ++s) {
    for (int32_t i = batch.starts[s]; i < batch.starts[s + 1]; ++i) {
      const size_t cell = place(s, i);
      const int32_t target = batch.board_targets[static_cast<size_t>(i)];
      padded.input_ids[cell] = batch.ids[static_cast<size_t>(i)];
      padded.board_target_ids[cell] = target;
      padded.board_mask[cell] = target != kIgnore;
      padded.continue_var_mask[cell] = target == continue_var;
      padded.new_variation_mask[cell] = target == new_variation;
    }
  }
}

void PadBlocks(const Batch& batch, const Rows& place, PaddedBatch& padded) {
  auto block = batch.blocks.begin();
  for (size_t s = 0; s < static_cast<size_t>(padded.rows); ++s) {
    const auto first = block;
    while (block != batch.blocks.end() && block->begin < batch.starts[s + 1]) ++block;
    const int64_t count = block - first;
    const size_t row = place(s, batch.starts[s]);
    for (int32_t i = 0; i < padded.max_seq_len; ++i) {
      padded.block_id[row + static_cast<size_t>(i)] = count + i;
    }
    for (auto b = first; b != block; ++b) {
      for (int32_t i = b->begin; i < b->end; ++i) padded.block_id[place(s, i)] = b - first;
    }
  }
}

// Calls use(sequence, item) for items sorted by position.
template <typename Item, typename Position, typename Use>
void BySequence(const Batch& batch, const std::vector<Item>& items, Position position, Use use) {
  size_t s = 0;
  for (const Item& item : items) {
    while (position(item) >= batch.starts[s + 1]) ++s;
    use(s, item);
  }
}

}  // namespace

Batch Pack(std::span<const Sequence> sequences) {
  Batch batch;
  size_t tokens = 0;
  for (const Sequence& sequence : sequences) tokens += sequence.ids.size();
  batch.ids.reserve(tokens);
  batch.board_targets.reserve(tokens);
  batch.starts.push_back(0);
  for (const Sequence& sequence : sequences) {
    const int32_t start = batch.starts.back();
    batch.ids.insert(batch.ids.end(), sequence.ids.begin(), sequence.ids.end());
    batch.board_targets.insert(batch.board_targets.end(), sequence.board_targets.begin(),
                               sequence.board_targets.end());
    for (Block block : sequence.blocks) {
      batch.blocks.push_back({block.begin + start, block.end + start});
    }
    const auto first_share = static_cast<uint32_t>(batch.shares.size());
    for (MoveTarget move : sequence.moves) {
      move.position += start;
      if (move.share_count > 0) move.first_share += first_share;
      batch.moves.push_back(move);
    }
    batch.shares.insert(batch.shares.end(), sequence.shares.begin(), sequence.shares.end());
    for (Branch branch : sequence.branches) {
      branch.after += start;
      branch.first_share += first_share;
      batch.branches.push_back(branch);
    }
    for (ValueTarget value : sequence.values) {
      value.wl_position += start;
      batch.values.push_back(value);
    }
    batch.own_values.push_back(sequence.own_values);
    batch.thinking.push_back(sequence.thinking);
    batch.first_is_not_best.push_back(sequence.first_is_not_best);
    batch.starts.push_back(start + sequence.size());
  }
  return batch;
}

PaddedBatch Pad(const Batch& batch, int32_t max_seq_len) {
  PaddedBatch padded = Blank(batch.sequences(), max_seq_len);
  for (size_t s = 0; s < static_cast<size_t>(padded.rows); ++s) {
    CHECK(batch.starts[s + 1] - batch.starts[s] <= max_seq_len);
  }
  const Rows place(batch, max_seq_len);
  PadTokens(batch, place, padded);
  PadBlocks(batch, place, padded);
  BySequence(
      batch, batch.moves, [](const MoveTarget& move) { return move.position; },
      [&](size_t s, const MoveTarget& move) {
        const size_t cell = place(s, move.position);
        padded.move_target_ids[cell] = move.move;
        (move.kind == MoveKind::kThinking ? padded.thinking_move_mask : padded.move_mask)[cell] = 1;
      });
  BySequence(
      batch, batch.values, [](const ValueTarget& value) { return value.wl_position; },
      [&](size_t s, const ValueTarget& value) {
        const size_t wl = place(s, value.wl_position);
        const size_t row = place(s, batch.starts[s]);
        padded.wl_positions[wl] = 1;
        padded.wl_targets[wl] = value.wl;
        padded.wdl_valid[wl] = value.valid;
        padded.d_positions[wl + 1] = 1;
        padded.d_targets[wl + 1] = value.d;
        padded.wdl_valid[wl + 1] = value.valid;
        if (wl < row + 2) return;  // The move is the first token: no position predicts it.
        padded.wl_targets[wl - 2] = value.wl;
        padded.d_targets[wl - 2] = value.d;
        padded.wdl_valid[wl - 2] = value.valid;
      });
  padded.first_is_not_best = batch.first_is_not_best;
  return padded;
}

}  // namespace kibitz::decoder
