// A training sequence token by token, with its targets and masks: for 'kibitz decoder dump' and for
// tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "students/decoder/data/sequence.h"

namespace kibitz::decoder {

struct Annotation {
  int32_t position = 0;
  TokenId token = 0;
  std::optional<int> board_target;  // In the board vocabulary; empty where the loss ignores it.
  bool overridden = false;          // The board target differs from the next token.
  std::optional<MoveTarget> move;   // Predicted at this position.
  std::optional<int> block;         // Index of its board; empty for a token outside boards.
  std::optional<float> wl;          // The value at a wl_value token.
  std::optional<float> d;           // The value at a d_value token.
  bool valid = true;                // wl and d are known, so they have a loss.

  // "board_mask", "thinking_move_mask", "wl_positions", ...: the masks that are set here.
  std::vector<std::string_view> Masks() const;
};

std::vector<Annotation> Annotate(const Sequence& sequence);

}  // namespace kibitz::decoder
