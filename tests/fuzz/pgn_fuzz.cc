// Any bytes as PGN, whole and in pieces: the same games, all of them legal.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "games/chess/movegen.h"
#include "games/chess/pgn.h"

namespace {

using namespace kibitz::chess;

PgnReader::Source InPieces(std::string_view text, size_t piece) {
  return [text, piece](char* buffer, size_t size) mutable {
    const size_t count = std::min({size, piece, text.size()});
    std::memcpy(buffer, text.data(), count);
    text.remove_prefix(count);
    return count;
  };
}

struct Seen {
  size_t games = 0;
  size_t broken = 0;
  size_t moves = 0;
  bool operator==(const Seen&) const = default;
};

Seen ReadAll(PgnReader::Source source, PgnReading reading) {
  PgnReader reader(std::move(source), reading);
  PgnGame game;
  Seen seen;
  for (auto read = reader.Next(game); read != PgnRead::kEnd; read = reader.Next(game)) {
    if (read == PgnRead::kBroken) {
      ++seen.broken;
      CHECK(!reader.problem().reason.empty());
      continue;
    }
    ++seen.games;
    seen.moves += game.moves.size();
    Board board = game.start;
    for (Move move : game.moves) {
      CHECK(IsLegal(board, move));
      board = board.After(move);
    }
    for (const PgnNote& note : game.notes) {
      ClockOf(note.comment);
      EvalOf(note.comment);
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const PgnReading reading{.comments = size % 2 == 0, .variations = size % 3 != 0};
  CHECK(ReadAll(TextSource(text), reading) == ReadAll(InPieces(text, 7), reading));
  return 0;
}
