// Any bytes as a record of a 2048 game: its steps, behind a first line that is its metadata. An
// Error, or a game that is written and read back.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "games/twenty48/slide.h"
#include "oracles/twenty48/raw_games.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(all.find('\n'), all.size());
  const FuzzFile meta(data, end, "game.meta.json");
  const size_t rest = std::min(end + 1, size);
  const FuzzFile steps(data + rest, size - rest, "game.jsonl.gz");
  try {
    const oracles::RawGame game = oracles::ReadRawGame(meta.path());
    CHECK(static_cast<int64_t>(game.steps.size()) == game.meta.num_moves);
    for (const oracles::RawStep& step : game.steps) {
      CHECK((twenty48::LegalMoves(step.board) >> IndexOf(step.move) & 1) != 0);
      CHECK(!oracles::RawLine(step).empty());
    }
  } catch (const Error& error) {
    CHECK(!error.message().empty());
  }
  return 0;
}
