// What the squares of a board see: along each of the eight lines the first piece, with its
// distance, and the pieces a knight's jump away. Each is a row of an embedding that is added to the
// square's own (NetConfig::square_sight), so that a network need not learn how pieces stand to each
// other. What attacks a square likewise (NetConfig::square_attacks): the attack planes
// (chess/attack_planes.h) that hold it.
//
//   for (const SightRow sight : SightsOf(BoardTokensOf(board))) Use(sight.square, sight.row);
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "games/chess/attack_planes.h"
#include "students/decoder/data/vocabulary.h"

namespace kibitz::decoder {

inline constexpr int kSightLines = 8;
inline constexpr int kSightDistances = 7;
inline constexpr int kSightJumps = 8;
inline constexpr int kSightPieces = 12;
// The lines come first, each with its distances, then the jumps.
inline constexpr int kSightSlots = kSightLines * kSightDistances + kSightJumps;
inline constexpr int kSightRows = kSightSlots * kSightPieces;

// The square that a slot of a square is, or -1 beyond the edge of the board.
int SightSquare(int square, int slot);

// The number of a piece among kSightPieces; -1 for other tokens.
constexpr int SightPiece(TokenId token) {
  return token >= kWhiteKing && token <= kBlackPawn ? token - kWhiteKing : -1;
}

struct SightRow {
  int16_t square;  // That sees, 0 to 63: token square + 1 of the board.
  int16_t row;     // slot * kSightPieces + piece, or the attack plane.
};
// Of a board's 68 tokens, whatever they are: a token that is no piece is empty.
std::vector<SightRow> SightsOf(std::span<const TokenId> board);

inline constexpr int kAttackRows = chess::kAttackPlanes;
// The planes are from the side to move, the squares are the board's. Likewise of any tokens.
std::vector<SightRow> AttacksOf(std::span<const TokenId> board);

// Adds the embedding's row of each sight to the row of its square, among the rows of the board's 68
// tokens. Rows have `width` numbers.
void AddSights(std::span<const TokenId> board, std::span<const float> embedding, int64_t width,
               float* rows);
void AddAttacks(std::span<const TokenId> board, std::span<const float> embedding, int64_t width,
                float* rows);

}  // namespace kibitz::decoder
