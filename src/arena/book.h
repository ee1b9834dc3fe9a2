// Makes a book of balanced opening positions: named openings, some random moves that are not bad,
// and an engine that sees neither side ahead.
//
//   const Book book = MakeBook({.positions = 500}, {.seed = 1}, nullptr);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arena/game_run.h"
#include "base/options.h"
#include "base/progress.h"
#include "games/chess/board.h"

namespace kibitz::arena {

struct BookOptions {
  int64_t positions = 500;
  int plies = 10;          // Of a candidate, with those of its named opening; one more or less.
  int max_cp = 40;         // The engine's evaluation is within this, from either side.
  int64_t nodes = 100000;  // Of the engine for a candidate.
  int spread = 60;         // Random moves are drawn among those so many centipawns below the best.
  std::string engine = "stockfish";
};
Fields FieldsOf(BookOptions& options);

struct Book {
  struct Position {
    chess::Board board;
    std::string opening;  // Name of the opening it came from.
    int centipawns = 0;   // For White.
  };
  std::vector<Position> positions;
  int64_t candidates = 0;
  int64_t repeated = 0;
  int64_t unbalanced = 0;

  // One line a position: "FEN fields ce 12; id \"...\";" as EPD has it.
  std::string Epd() const;
};

// Candidate n depends on the seed and n. Throws Error, also when candidates run out.
Book MakeBook(const BookOptions& options, const RunOptions& run, Progress* progress);

}  // namespace kibitz::arena
