// Positions and moves as tokens, and back.
//
//   std::array<TokenId, 68> ids = BoardTokensOf(board);
//   TokenId token = TokenOf(move);                   // Castling e1h1, knight promotion bare.
//   Result<Move> move = MoveOf(board, token);        // The board tells castling and promotion.
//
// The tokens hold neither the en passant square nor the counters: decoding loses them.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/error.h"
#include "games/chess/board.h"
#include "students/decoder/data/vocabulary.h"

namespace kibitz::decoder {

using BoardTokens = std::array<TokenId, kBoardTokens>;

BoardTokens BoardTokensOf(const chess::Board& board);
// The same, into a buffer.
void WriteBoardTokens(const chess::Board& board, std::span<TokenId, kBoardTokens> out);

// What a board's token adds to its own embedding; -1: nothing. The board before is the one that the
// last move was for: behind end_var the root of the thought.
struct PlaceRows {
  // Rows of the place embedding.
  int place = -1;  // Its place in the board, 0 to 67.
  int mark = -1;   // Where the next square is one of the two that the move before the board names.
  // Rows of the embedding of the board before.
  int before = -1;  // What stood in the next place there.
  int other = -1;   // With a mark: what stood there on the other square of the move.
};
inline constexpr int kPlaceRows = kBoardTokens + 2 * 64;
inline constexpr int kBeforeRows = 2 * kBoardVocabularySize;

// Tells them for each token of a sequence.
class BoardPlace {
 public:
  PlaceRows Next(TokenId token);

 private:
  int place_ = -1;
  std::optional<MoveSquares> move_;
  BoardTokens reading_ = {};
  std::optional<BoardTokens> before_;
  std::optional<BoardTokens> root_;  // Of a thought.
};

// The position of a token for RoPE, and which tokens before it, from the sequence's begin on, it
// does not see.
struct TokenView {
  int32_t position = 0;
  int32_t hidden_begin = 0;
  int32_t hidden_end = 0;
};

// How the tokens of a thought stand to each other when variations are separate: each sees the root
// and itself, and counts its positions from start_think on. end_var, end_think and what comes after
// see everything.
class LineView {
 public:
  TokenView Next(TokenId token);

 private:
  int32_t index_ = 0;
  int32_t position_ = 0;
  int32_t root_end_ = -1;    // Behind start_think; -1: no thought, or at its end.
  int32_t line_begin_ = -1;  // Of the variation; -1: between two.
};

// The position of 68 tokens, or why they are not one: a token out of place, a missing king,
// castling rights without king and rook at home, the side to move giving check.
Result<chess::Board> BoardOf(std::span<const TokenId> tokens);

// The token of a legal move.
TokenId TokenOf(chess::Move move);
// The legal move of a token, or why there is none.
Result<chess::Move> MoveOf(const chess::Board& board, TokenId token);

}  // namespace kibitz::decoder
