// Reads the first field of a FEN, the pieces: most of the time that reading a row takes.
//
//   PackedPosition position;
//   const size_t length = ReadPieces("8/8/8/8/8/5k2/6q1/7K w - -", position);   // 22
#pragma once

#include <cstddef>
#include <string_view>

#include "students/policy/data/packed_position.h"

namespace kibitz::policy {

// Fills `occupied` and `pieces`. Returns the length of the field, which ends before a space or with
// the text; 0 where it is not a sound one (pieces as chess::ParseFen wants them).
size_t ReadPieces(std::string_view fen, PackedPosition& position);

// The plain version, letter by letter: for processors without AVX-512 VBMI2 (from Ice Lake and Zen
// 4 on), for long fields, and to test the other.
size_t ReadPiecesPlain(std::string_view fen, PackedPosition& position);

}  // namespace kibitz::policy
