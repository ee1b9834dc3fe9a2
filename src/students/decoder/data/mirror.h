// A searched position seen in a mirror: the same chess, other squares. Doubles what records teach.
//
//   SearchRow black = SwapColours(row);     // Ranks mirrored, White's pieces are Black's.
//   if (CanMirrorFiles(row)) Use(MirrorFiles(row));
#pragma once

#include "students/decoder/data/thinking_sequence.h"

namespace kibitz::decoder {

SearchRow SwapColours(const SearchRow& row);

// Castling is what tells the king's side from the queen's: only without castling rights.
bool CanMirrorFiles(const SearchRow& row);
SearchRow MirrorFiles(const SearchRow& row);

}  // namespace kibitz::decoder
