// Any bytes as a CSV of puzzles: an Error, or puzzles whose every move is legal.
#include <cstddef>
#include <cstdint>

#include "arena/puzzles.h"
#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "games/chess/movegen.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz;
  SetLogLevel(LogLevel::kSilent);
  const FuzzFile file(data, size, "puzzles.csv");
  try {
    SkipCounter skipped;
    for (const arena::Puzzle& puzzle : arena::LoadPuzzles({file.path()}, {}, skipped)) {
      CHECK(!puzzle.solution.empty());
      chess::Board board = puzzle.game.Current();
      for (chess::Move move : puzzle.solution) {
        CHECK(chess::IsLegal(board, move));
        board = board.After(move);
      }
    }
  } catch (const Error& error) {
    CHECK(!error.message().empty());
  }
  return 0;
}
