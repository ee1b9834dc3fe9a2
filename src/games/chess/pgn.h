// PGN files, a game at a time, from any source of bytes; memory is bounded by the largest game.
//
//   PgnReader reader(FileSource("games.pgn"));
//   PgnGame game;
//   for (auto read = reader.Next(game); read != PgnRead::kEnd; read = reader.Next(game)) {
//     if (read == PgnRead::kBroken) { Report(reader.problem()); continue; }
//     for (Move move : game.moves) ...
//   }
//
// Every move is checked. A broken game is reported with its line and skipped; the rest is read. A
// game larger than Limits().game throws Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "games/chess/board.h"
#include "games/chess/types.h"

namespace kibitz::chess {

enum class GameResult { kUnknown, kWhiteWins, kBlackWins, kDraw };

// "1-0", "0-1", "1/2-1/2", "*".
std::string_view NameOf(GameResult result);

struct PgnNote;

struct PgnVariation {
  std::vector<Move> moves;
  std::vector<PgnNote> notes;
};

// What stands beside the moves of a line.
struct PgnNote {
  size_t ply = 0;              // After this many moves of the line; 0 is before the first.
  std::string comment = {};    // Several in a row are joined by a space.
  std::vector<int> nags = {};  // $1 to $255; !, ?, !!, ??, !?, ?! are 1 to 6.
  std::vector<PgnVariation> variations = {};  // Alternatives to the last move.
};

struct PgnGame {
  uint64_t line = 0;                                      // Where it starts in the file, from 1.
  std::vector<std::pair<std::string, std::string>> tags;  // As in the file, escapes resolved.
  Board start;
  std::vector<Move> moves;
  GameResult result = GameResult::kUnknown;  // After the moves, else from the tag.
  std::vector<PgnNote> notes;  // In the order of their plies; only where there are any.

  // Empty when there is no such tag.
  std::string_view Tag(std::string_view name) const;
};

struct PgnReading {
  bool comments = true;     // Keep comments and NAGs.
  bool variations = false;  // Read and keep variations; else they are skipped.
};

struct PgnProblem {
  uint64_t line = 0;       // Where it is.
  uint64_t game_line = 0;  // Where its game starts.
  std::string reason;
};

enum class PgnRead { kGame, kBroken, kEnd };

class PgnReader {
 public:
  // Fills at most `size` bytes and tells how many; 0 at the end.
  using Source = std::function<size_t(char* buffer, size_t size)>;

  explicit PgnReader(Source source, PgnReading reading = {});
  ~PgnReader();

  // The next game, into memory that is used again. After kBroken, `game` is meaningless and
  // problem() tells why.
  PgnRead Next(PgnGame& game);
  const PgnProblem& problem() const;
  // Bytes consumed so far, for progress.
  uint64_t bytes() const;

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

// A source over text in memory, which must outlive it.
PgnReader::Source TextSource(std::string_view text);

// "[%clk 0:01:30.5]" in a comment: seconds left on the clock.
std::optional<double> ClockOf(std::string_view comment);

// "[%eval 0.35]", "[%eval #-3]", "[%eval 0.35,18]" in a comment, from White's point of view.
struct PgnEval {
  std::optional<int> centipawns;
  std::optional<int> mate;  // In so many moves; below 0: White is mated.
  std::optional<int> depth;
};
std::optional<PgnEval> EvalOf(std::string_view comment);

}  // namespace kibitz::chess
