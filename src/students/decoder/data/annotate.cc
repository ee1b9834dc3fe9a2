#include "students/decoder/data/annotate.h"

namespace kibitz::decoder {

std::vector<std::string_view> Annotation::Masks() const {
  std::vector<std::string_view> masks;
  if (board_target) masks.emplace_back("board_mask");
  if (move)
    masks.emplace_back(move->kind == MoveKind::kThinking ? "thinking_move_mask" : "move_mask");
  if (board_target == BoardIndex(kContinueVar)) masks.emplace_back("continue_var_mask");
  if (board_target == BoardIndex(kNewVariation)) masks.emplace_back("new_variation_mask");
  if (wl) masks.emplace_back("wl_positions");
  if (d) masks.emplace_back("d_positions");
  if ((wl || d) && valid) masks.emplace_back("wdl_valid");
  return masks;
}

std::vector<Annotation> Annotate(const Sequence& sequence) {
  std::vector<Annotation> result(sequence.ids.size());
  for (size_t i = 0; i < result.size(); ++i) {
    Annotation& at = result[i];
    at.position = static_cast<int32_t>(i);
    at.token = sequence.ids[i];
    const int8_t target = sequence.board_targets[i];
    if (target == kIgnore) continue;
    at.board_target = static_cast<int>(target);
    at.overridden = i + 1 >= result.size() || BoardIndex(sequence.ids[i + 1]) != target;
  }
  const auto at = [&](int32_t position) -> Annotation& {
    return result[static_cast<size_t>(position)];
  };
  for (size_t b = 0; b < sequence.blocks.size(); ++b) {
    const Block& block = sequence.blocks[b];
    for (int32_t i = block.begin; i < block.end; ++i) at(i).block = static_cast<int>(b);
  }
  for (const MoveTarget& move : sequence.moves) at(move.position).move = move;
  for (const ValueTarget& value : sequence.values) {
    at(value.wl_position).wl = value.wl;
    at(value.wl_position).valid = value.valid;
    at(value.wl_position + 1).d = value.d;
    at(value.wl_position + 1).valid = value.valid;
  }
  return result;
}

}  // namespace kibitz::decoder
