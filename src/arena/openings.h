// Where the games of a match begin: positions that both players get, once with each colour.
//
//   const std::vector<Opening> openings = LoadOpenings({.source = "book", .seed = 1});
//   const Opening& opening = openings[pair % openings.size()];
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "oracles/engines/uci_client.h"

namespace kibitz::arena {

struct Opening {
  std::string name;         // "C65 Ruy Lopez: Berlin Defence", "book.epd:12".
  std::string eco = {};     // "" where it is not known.
  oracles::GameSoFar game;  // A position, or moves from one.
};

enum class OpeningOrder { kRandom, kSequential };

struct OpeningOptions {
  // "book": the balanced book that ships; "named": the list of named openings; "start": the usual
  // starting position; or a file of FEN or EPD lines, or of PGN games.
  std::string source = "book";
  std::string fen = {};  // One position instead; "": none.
  OpeningOrder order = OpeningOrder::kRandom;
  int plies = 0;  // Of PGN games and named openings: take at most so many; 0: all.
  uint64_t seed = 1;
};
// All but the position and the seed.
Fields FieldsOf(OpeningOptions& options);

// In the order they are to be played. Throws Error when there is none, or for a line of a file that
// is not a position.
std::vector<Opening> LoadOpenings(const OpeningOptions& options);

// The file of the balanced book. Throws Error when it is not installed.
std::string BookPath();

}  // namespace kibitz::arena
