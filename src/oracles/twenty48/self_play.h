// Games that an oracle plays, as training records or to measure its strength. Game n depends on the
// seed and n alone, whatever the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/options.h"
#include "games/twenty48/spawn.h"
#include "oracles/twenty48/expectimax.h"
#include "oracles/twenty48/raw_games.h"

namespace kibitz::oracles {

struct SelfPlayOptions {
  ExpectimaxOptions search;
  uint64_t seed = 1;
  int64_t max_moves = 0;  // A game is cut after this many; 0: never.
  // Probability of a random legal move instead of the best. The record holds the best move: such
  // games show what to do on boards that the oracle avoids.
  double explore = 0;
};
Fields FieldsOf(SelfPlayOptions& options);

// The seed in the records of game `index`.
uint32_t GameSeed(uint64_t seed, int64_t index);

// Plays game `index` and calls `use` before each move. Throws Error when interrupted.
using StepUser = std::function<void(const twenty48::Game& before, const SearchResult& result)>;
twenty48::Game PlayGame(Expectimax& search, const SelfPlayOptions& options, int64_t index,
                        const StepUser& use);

// A line of a record: the oracle's move and values for a board with a legal move. Values are in
// thousands.
RawStep StepOf(uint32_t seed, const twenty48::Game& before, const SearchResult& result);
// Fills the metadata of a record with the result of the game.
void FillResult(const twenty48::Game& game, const std::string& folder, RawMeta& meta);

// A game of PlayGame as a record.
RawGame PlayRawGame(Expectimax& search, const SelfPlayOptions& options, int64_t index,
                    const std::string& folder);

}  // namespace kibitz::oracles
