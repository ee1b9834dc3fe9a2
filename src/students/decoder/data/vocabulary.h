// The decoder's 1968 tokens: moves, pieces, marks, castling rights, signals. The tables are built
// at compile time.
//
//   TokenName(kStartPos);                  // "start_pos"
//   FindToken("e2e4");                     // 322
//   BoardIndex(kEmpty);                    // Its index among the 41 tokens of the board head.
//
// Order: 1924 moves (the policy heads' vocabulary: same ids), 12 pieces, 12 marks, 16
// castling rights, 4 signals.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "games/chess/types.h"

namespace kibitz::decoder {

using TokenId = uint16_t;

inline constexpr int kVocabularySize = 1968;
inline constexpr int kMoveVocabularySize = 1924;  // Tokens 0 to 1923.
inline constexpr int kBoardVocabularySize = 41;

// A board: start_pos, 64 squares from a1 to h8, end_pos, castling rights, side to move.
inline constexpr int kBoardTokens = 68;

enum Token : TokenId {
  kWhiteKing = 1924,
  kWhiteQueen,
  kWhiteRook,
  kWhiteBishop,
  kWhiteKnight,
  kWhitePawn,
  kBlackKing,
  kBlackQueen,
  kBlackRook,
  kBlackBishop,
  kBlackKnight,
  kBlackPawn,
  kStartPos,
  kEndPos,
  kWhiteToMove,
  kBlackToMove,
  kEmpty,
  kPad,
  kBos,
  kEos,
  kWlValue,  // Its embedding is replaced by the encoded value.
  kDValue,   // The same.
  kStartThink,
  kEndThink,
  kFirstCastling,  // "K"; the others follow.
  kNoCastling = kFirstCastling + 15,
  kEndVar,
  kContinueVar,   // Only a target, never in a sequence.
  kNewVariation,  // Only a target.
  kGenericMove,   // Only a target.
};
static_assert(kGenericMove == kVocabularySize - 1);

// Arguments must be in range. Names are those of the reference.
std::string_view TokenName(TokenId token);
std::optional<TokenId> FindToken(std::string_view name);

constexpr bool IsMove(TokenId token) { return token < kMoveVocabularySize; }

// The index in the board head's vocabulary; -1 for other tokens.
int BoardIndex(TokenId token);
TokenId BoardToken(int board_index);

// The move token of a pair of squares; a promotion to queen, rook or bishop has its own, a knight
// promotion is the bare pair. Empty for a pair that no piece can move between.
std::optional<TokenId> MoveTokenOf(chess::Square from, chess::Square to,
                                   chess::PieceType promotion = chess::PieceType::kNone);
struct MoveSquares {
  chess::Square from;
  chess::Square to;
  chess::PieceType promotion = chess::PieceType::kNone;  // kNone also for a knight.
};
MoveSquares SquaresOf(TokenId move);

}  // namespace kibitz::decoder
