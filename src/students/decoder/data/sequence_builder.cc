#include "students/decoder/data/sequence_builder.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "students/decoder/data/tokens.h"

namespace kibitz::decoder {

void SequenceBuilder::Reserve(size_t tokens) { sequence_.ids.reserve(tokens); }

void SequenceBuilder::AddBoard(const chess::Board& board) {
  std::vector<TokenId>& ids = sequence_.ids;
  const size_t begin = ids.size();
  ids.resize(begin + kBoardTokens);
  WriteBoardTokens(board, std::span<TokenId, kBoardTokens>(ids.data() + begin, kBoardTokens));
  sequence_.blocks.push_back({static_cast<int32_t>(begin), sequence_.size()});
}

void SequenceBuilder::AddMove(const Move& move) {
  const int32_t position = size() - 1;
  AddMark(move.played);
  if (position < 0) return;
  sequence_.moves.push_back({.position = position,
                             .move = move.target,
                             .kind = move.thinking ? MoveKind::kThinking : MoveKind::kFinal});
  announcements_.push_back({position, static_cast<int8_t>(BoardIndex(move.announced_as))});
}

void SequenceBuilder::AddValue(float wl, float d, bool valid) {
  sequence_.values.push_back({size(), valid ? wl : 0, valid ? d : 0, valid});
  AddMark(kWlValue);
  AddMark(kDValue);
}

void SequenceBuilder::Cut(int32_t max_seq_len) {
  if (size() <= max_seq_len) return;
  sequence_.ids.resize(static_cast<size_t>(max_seq_len));
  std::erase_if(sequence_.values,
                [&](const ValueTarget& value) { return value.wl_position + 1 >= max_seq_len; });
  // Order: predicting position, move, wl, d.
  std::erase_if(sequence_.moves,
                [&](const MoveTarget& move) { return move.position + 3 >= max_seq_len; });
  announcements_.resize(sequence_.moves.size());
  std::erase_if(sequence_.blocks, [&](const Block& block) { return block.begin >= max_seq_len; });
  if (!sequence_.blocks.empty()) {
    sequence_.blocks.back().end = std::min(sequence_.blocks.back().end, max_seq_len);
  }
}

Sequence SequenceBuilder::Finish(int32_t max_seq_len) && {
  CHECK(announcements_.size() == sequence_.moves.size());
  Cut(max_seq_len);
  const auto size = static_cast<size_t>(sequence_.size());
  std::vector<int8_t>& targets = sequence_.board_targets;
  targets.assign(size, kIgnore);
  const size_t first =
      announcements_.empty() ? size : static_cast<size_t>(announcements_[0].position);
  for (size_t i = first; i + 1 < size; ++i) {
    const int index = BoardIndex(sequence_.ids[i + 1]);
    if (index >= 0) targets[i] = static_cast<int8_t>(index);
  }
  for (const Announcement& announcement : announcements_) {
    targets[static_cast<size_t>(announcement.position)] = announcement.board_target;
  }
  return std::move(sequence_);
}

}  // namespace kibitz::decoder
