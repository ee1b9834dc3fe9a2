// A row of lc0's training data, version 6: one position of a self-play game. A file is a gzip of
// rows one after the other, a position each, in the order of the game; lc0 publishes tar archives
// of such files. What the numbers mean on a board is in oracles/lc0/training_row.h.
//
//   io::Lc0Row row;
//   std::memcpy(&row, bytes.data(), sizeof(row));
//   if (row.version != io::kLc0RowVersion) throw Error("rows of version {}",
//   uint32_t{row.version});
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace kibitz::io {

inline constexpr uint32_t kLc0RowVersion = 6;
inline constexpr size_t kLc0RowMoves = 1858;
inline constexpr size_t kLc0RowPlanes = 104;  // Eight boards of 13.

#pragma pack(push, 1)
// Values are for the side to move: q from -1 (lost) to 1 (won), d the probability of a draw, m
// plies to the end. Squares are seen from the side to move.
struct Lc0Row {
  uint32_t version;
  uint32_t input_format;           // How positions are given, see InputFormatName.
  float shares[kLc0RowMoves];      // Of visits; -1 where a move is not legal.
  uint64_t planes[kLc0RowPlanes];  // Bit 7 of a byte is the a-file; the first byte is rank 1.
  uint8_t castling_us_queen;       // Format 1: 0 or 1; later ones: the rook's file as a bit.
  uint8_t castling_us_king;
  uint8_t castling_them_queen;
  uint8_t castling_them_king;
  uint8_t side_or_en_passant;  // Formats 1 and 2: 1 if Black moves; later: file as a bit.
  uint8_t rule50;              // Half-moves since the last capture or pawn move.
  uint8_t flags;               // kLc0Flip and the following.
  uint8_t unused;
  float root_q, best_q, root_d, best_d, root_m, best_m;
  float plies_left;
  float result_q, result_d;  // How the game ended.
  float played_q, played_d, played_m;
  float network_q, network_d, network_m;  // Before the search; may be NaN.
  uint32_t visits;
  uint16_t played;  // Index into `shares`.
  uint16_t best;
  float policy_kld;
  uint32_t reserved;
};
#pragma pack(pop)
static_assert(sizeof(Lc0Row) == 8356);

// Bits of `flags`. The first three are how format 3 turned the board, in this order.
inline constexpr uint8_t kLc0Flip = 1;       // Files mirrored.
inline constexpr uint8_t kLc0Mirror = 2;     // Ranks mirrored.
inline constexpr uint8_t kLc0Transpose = 4;  // Across the diagonal from h1 to a8.
inline constexpr uint8_t kLc0Deleted = 64;   // Marked for deletion by the rescorer.
inline constexpr uint8_t kLc0Black = 128;    // Format 3: Black is to move.

// "112 planes", "112 planes, canonical", ...; "unknown" for a number that lc0 does not use.
std::string_view InputFormatName(uint32_t input_format);

// Whether the bytes begin with a row of some version of lc0's, as far as its first numbers tell.
bool LooksLikeLc0Rows(std::string_view head);

// The numbers of a row by name, with its visited moves as pairs of index and share.
nlohmann::ordered_json ToTree(const Lc0Row& row);

}  // namespace kibitz::io
