// Games and positions to make records from: PGN (.pgn, also compressed),
// Parquet rows of games as the decoder reads them (a file or a folder), or lines of FEN or EPD.
//
//   ForEachGame({"games.pgn.zst"}, skipped, [&](const SourceGame& game) { ...; return true; });
//   std::vector<GameSoFar> positions = SamplePositions(paths, {.per_game = 4, .seed = 1}, skipped);
//
// Broken games, Chess960 and bad FENs are skipped and counted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/skip_counter.h"
#include "games/chess/pgn.h"
#include "oracles/engines/uci_client.h"

namespace kibitz::oracles {

inline constexpr const char* kChess960Reason = "Chess960, which the students do not play";
inline constexpr const char* kDuplicateReason = "duplicate";

// A game up to its end; a lone position is a game without moves.
struct SourceGame {
  std::string place;  // "games.pgn:812"
  GameSoFar game;
};

// Calls `use` in the order of the files until it returns false.
void ForEachGame(const std::vector<std::string>& paths, SkipCounter& skipped,
                 const std::function<bool(const SourceGame&)>& use);

// The same for PGN alone, with all that is in the game. Also standard games only.
void ForEachPgnGame(
    const std::string& path, const chess::PgnReading& reading, SkipCounter& skipped,
    const std::function<bool(const chess::PgnGame&, const std::string& place)>& use);

bool IsPgn(const std::string& path);

struct Sampling {
  int per_game = 0;   // Positions of each game; 0: all.
  int from_ply = 0;   // Earlier positions of games with moves are left out.
  int64_t limit = 0;  // In all; 0: none.
  uint64_t seed = 1;
};
Fields FieldsOf(Sampling& sampling);

// Positions where the game is not over, each once, in the order of the files. Which positions of a
// game are drawn depends on the seed and the game's number.
std::vector<GameSoFar> SamplePositions(const std::vector<std::string>& paths,
                                       const Sampling& sampling, SkipCounter& skipped);

}  // namespace kibitz::oracles
