// Perft suites as files: "FEN ;D1 n ;D2 n" lines (.epd) and id/epd/perft blocks (.perft).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "games/chess/board.h"

namespace kibitz::testing {

struct PerftLine {
  std::string place;  // "random300.epd:17"
  std::string fen;
  chess::Board board;
  int depth = 0;
  uint64_t nodes = 0;
};

// All lines of all suites in the folder, in order of file name. A position that is no usual one is
// read as Chess960. Throws Error on a line that is neither.
std::vector<PerftLine> ReadPerftSuites(const std::string& folder);

}  // namespace kibitz::testing
