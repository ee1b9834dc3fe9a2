// The JSON of a searched position: any text is refused with a reason, or makes a sequence whose
// boards and moves are chess.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "games/chess/fen.h"
#include "students/decoder/data/records.h"
#include "students/decoder/data/tokens.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz;
  using namespace kibitz::decoder;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  SkipCounter skipped;
  SearchReader reader("fuzz");
  const auto row = reader.Read({chess::kStartFen, text, "e2e4", {0.5, 0.25, 0.25}}, 0, skipped);
  CHECK(row.has_value() || !skipped.empty());
  if (!row || !HasThought(*row, {})) return 0;
  Rng rng({.seed = size});
  const Sequence sequence = ThinkingSequence(*row, {}, rng);
  CHECK(sequence.size() <= 1024 && sequence.ids.size() == sequence.board_targets.size());
  for (const Block& block : sequence.blocks) {
    const auto board =
        BoardOf(std::span(sequence.ids).subspan(static_cast<size_t>(block.begin), kBoardTokens));
    CHECK(board);
  }
  return 0;
}
