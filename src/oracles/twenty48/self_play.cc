#include "oracles/twenty48/self_play.h"

#include <bit>
#include <chrono>

#include "base/interrupt.h"

namespace kibitz::oracles {

using twenty48::Board;
using twenty48::Game;
using twenty48::Move;

Fields FieldsOf(SelfPlayOptions& options) {
  Fields fields;
  fields.Add("depth", options.search.depth, "moves the oracle searches", {.min = 1, .max = 8});
  fields.Add("table_bits", options.search.table_bits,
             "the transposition table has 2^N entries per thread; 0: no table",
             {.min = 0, .max = 28});
  fields.Add("seed", options.seed, "random seed of the tiles");
  fields.Add("max_moves", options.max_moves, "cut a game after this many moves; 0: never",
             {.min = 0});
  fields.Add("explore", options.explore,
             "probability of a random move instead of the best; records hold the best move",
             {.min = 0, .max = 1});
  return fields;
}

uint32_t GameSeed(uint64_t seed, int64_t index) {
  Rng rng({.seed = seed, .sample = static_cast<uint64_t>(index), .purpose = Purpose("2048 seed")});
  return static_cast<uint32_t>(rng.Next());
}

Game PlayGame(Expectimax& search, const SelfPlayOptions& options, int64_t index,
              const StepUser& use) {
  const uint64_t seed = GameSeed(options.seed, index);
  Rng spawn({.seed = seed, .purpose = Purpose("2048 spawn")});
  Rng explore({.seed = seed, .purpose = Purpose("2048 explore")});
  Game game = Game::Start(spawn);
  while (options.max_moves == 0 || game.moves < options.max_moves) {
    ThrowIfInterrupted();
    const SearchResult result = search.Search(game.board);
    if (!result.best) break;
    use(game, result);
    Move move = *result.best;
    if (options.explore > 0 && explore.Uniform() < options.explore) {
      do {
        move = twenty48::kMoves[explore.Below(4)];
      } while (!result.values[static_cast<size_t>(move)]);
    }
    game.Play(move, spawn);
  }
  return game;
}

RawStep StepOf(uint32_t seed, const Game& before, const SearchResult& result) {
  RawStep step{.seed = seed,
               .step_index = static_cast<uint32_t>(before.moves),
               .board = before.board,
               .move = *result.best,
               .branch_evs = {}};
  for (size_t i = 0; i < 4; ++i) {
    if (result.values[i]) step.branch_evs[i] = *result.values[i] / 1000;
  }
  step.valuation = *step.branch_evs[static_cast<size_t>(step.move)];
  return step;
}

void FillResult(const Game& game, const std::string& folder, RawMeta& meta) {
  meta.steps_file = folder + "/" + RawGameName(meta) + ".jsonl.gz";
  meta.num_moves = game.moves;
  meta.score = game.score;
  meta.max_rank = game.board.MaxRank();
  meta.max_tile = twenty48::TileOf(meta.max_rank);
  meta.sum_tile = game.board.TileSum();
}

RawGame PlayRawGame(Expectimax& search, const SelfPlayOptions& options, int64_t index,
                    const std::string& folder) {
  const auto start = std::chrono::steady_clock::now();
  RawGame record;
  RawMeta& meta = record.meta;
  meta.seed = GameSeed(options.seed, index);
  meta.depth = options.search.depth;
  meta.game_index = index;
  const Game game =
      PlayGame(search, options, index, [&](const Game& before, const SearchResult& result) {
        record.steps.push_back(StepOf(meta.seed, before, result));
      });
  FillResult(game, folder, meta);
  meta.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return record;
}

}  // namespace kibitz::oracles
