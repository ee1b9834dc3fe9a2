// Positions and moves as tokens, and back.
//
//   std::array<TokenId, 68> ids = BoardTokensOf(board);
//   TokenId token = TokenOf(move);                   // Castling e1h1, knight promotion bare.
//   Result<Move> move = MoveOf(board, token);        // Decided with the position, not the text.
//
// The tokens leave out the passed square and the counters: positions that differ only there are one
// to the network, and come back without them.
#pragma once

#include <array>
#include <span>

#include "base/error.h"
#include "games/chess/board.h"
#include "students/decoder/data/vocabulary.h"

namespace kibitz::decoder {

using BoardTokens = std::array<TokenId, kBoardTokens>;

BoardTokens BoardTokensOf(const chess::Board& board);
// The same, written to 68 places.
void WriteBoardTokens(const chess::Board& board, std::span<TokenId, kBoardTokens> out);

// The position that 68 tokens describe, or why they describe none: a mark out of place, a king
// missing, castling rights without king and rook at home, the side to move giving check.
Result<chess::Board> BoardOf(std::span<const TokenId> tokens);

// The token of a legal move.
TokenId TokenOf(chess::Move move);
// The legal move behind a token, or why there is none.
Result<chess::Move> MoveOf(const chess::Board& board, TokenId token);

}  // namespace kibitz::decoder
