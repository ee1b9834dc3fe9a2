// Drafts the board that the network will most likely write after a move, by the rules.
#pragma once

#include <optional>
#include <span>

#include "students/decoder/data/tokens.h"

namespace kibitz::decoder {

// `after` is the position after a legal move. Without it, the piece moves on the board as it was
// written: `before`, 68 tokens.
BoardTokens DraftBoard(std::span<const TokenId> before, TokenId move,
                       const std::optional<chess::Board>& after);

}  // namespace kibitz::decoder
