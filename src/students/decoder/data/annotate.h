// A sequence explained position by position: what goes in, what must come out, who says it. For
// people and programs that want to see what the network is taught.
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
  std::optional<int> board_target;  // In the board vocabulary; nothing where not scored.
  bool overridden = false;          // The board target is not just the next token.
  std::optional<MoveTarget> move;   // Predicted from here.
  std::optional<int> block;         // Number of its board; nothing for a token that stands alone.
  std::optional<float> wl;          // The value at a wl_value token.
  std::optional<float> d;           // The value at a d_value token.
  bool valid = true;                // Of wl and d: known, and so scored.

  // "board_mask", "thinking_move_mask", "wl_positions", ...: the masks that hold here.
  std::vector<std::string_view> Masks() const;
};

std::vector<Annotation> Annotate(const Sequence& sequence);

}  // namespace kibitz::decoder
