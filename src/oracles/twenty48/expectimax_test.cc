#include "oracles/twenty48/expectimax.h"

#include <gtest/gtest.h>

#include "games/twenty48/spawn.h"
#include "oracles/twenty48/ntuple.h"
#include "oracles/twenty48/row_heuristic.h"
#include "oracles/twenty48/self_play.h"

namespace kibitz::oracles {
namespace {

using twenty48::Board;
using twenty48::Game;
using twenty48::Move;
using twenty48::Slid;

// The definition, without table, batches or bits.
double PlainBest(const AfterstateValue& evaluation, const Board& board, int depth);

double PlainChance(const AfterstateValue& evaluation, const Board& afterstate, int depth) {
  if (depth == 0) {
    float value = 0;
    evaluation.Evaluate({&afterstate, 1}, {&value, 1});
    return value;
  }
  double sum = 0;
  int empty = 0;
  for (int cell = 0; cell < twenty48::kCells; ++cell) {
    if (afterstate.Rank(cell) != 0) continue;
    ++empty;
    sum += 0.9 * PlainBest(evaluation, afterstate.With(cell, 1), depth);
    sum += 0.1 * PlainBest(evaluation, afterstate.With(cell, 2), depth);
  }
  return sum / empty;
}

double PlainBest(const AfterstateValue& evaluation, const Board& board, int depth) {
  std::optional<double> best;
  for (Move move : twenty48::kMoves) {
    const Slid slid = SlidePlain(board, move);
    if (slid.board == board) continue;
    const double value =
        (evaluation.InPoints() ? slid.points : 0) + PlainChance(evaluation, slid.board, depth - 1);
    best = best ? std::max(*best, value) : value;
  }
  return best.value_or(0);
}

// Small tables of made-up numbers.
NTupleNetwork RandomTables() {
  const std::vector<std::string> patterns = {"0145", "0123", "159"};
  NTupleNetwork network(patterns);
  Rng rng({.seed = 9, .purpose = Purpose("tables")});
  for (size_t t = 0; t < patterns.size(); ++t) {
    for (float& weight : network.table(t)) weight = static_cast<float>(100 * rng.Uniform());
  }
  return network;
}

std::vector<Board> SomeBoards() {
  std::vector<Board> boards;
  Rng rng({.seed = 4, .purpose = Purpose("boards")});
  Game game = Game::Start(rng);
  while (const unsigned legal = twenty48::LegalMoves(game.board)) {
    boards.push_back(game.board);
    game.Play(twenty48::kMoves[static_cast<size_t>(std::countr_zero(legal))], rng);
  }
  boards.push_back(game.board);  // Over.
  boards.push_back(
      *Board::FromRanks(std::vector<int>{15, 15, 14, 3, 16, 9, 8, 2, 1, 5, 4, 3, 2, 1, 1, 0}));
  return boards;
}

TEST(Expectimax, AgreesWithItsDefinition) {
  const RowHeuristic heuristic;
  const NTupleNetwork tables = RandomTables();
  const std::vector<Board> boards = SomeBoards();
  for (const AfterstateValue* evaluation : {static_cast<const AfterstateValue*>(&heuristic),
                                            static_cast<const AfterstateValue*>(&tables)}) {
    for (int depth : {1, 2}) {
      for (int bits : {0, 4, 16}) {
        Expectimax search(*evaluation, {.depth = depth, .table_bits = bits});
        for (size_t i = 0; i < boards.size(); i += depth == 2 ? 7 : 1) {
          const SearchResult result = search.Search(boards[i]);
          const double expected = PlainBest(*evaluation, boards[i], depth);
          EXPECT_EQ(result.best.has_value(), twenty48::LegalMoves(boards[i]) != 0);
          if (!result.best) continue;
          EXPECT_NEAR(*result.values[static_cast<size_t>(*result.best)], expected,
                      1e-9 * std::abs(expected));
        }
      }
    }
  }
}

TEST(Expectimax, DeepSearchDoesNotDependOnTheTable) {
  const NTupleNetwork tables = RandomTables();
  Expectimax without(tables, {.depth = 3, .table_bits = 0});
  Expectimax small(tables, {.depth = 3, .table_bits = 6});
  Expectimax large(tables, {.depth = 3, .table_bits = 18});
  const std::vector<Board> boards = SomeBoards();
  for (size_t i = 40; i < boards.size(); i += 9) {
    const SearchResult plain = without.Search(boards[i]);
    EXPECT_EQ(small.Search(boards[i]).values, plain.values);
    EXPECT_EQ(large.Search(boards[i]).values, plain.values);
  }
  EXPECT_LT(large.evaluations(), without.evaluations());
}

TEST(Expectimax, TheHeuristicPlaysWell) {
  const RowHeuristic heuristic;
  int reached = 0;
  for (int index = 0; index < 10; ++index) {
    Expectimax search(heuristic, {.depth = 2});
    const Game game = PlayGame(search, {.search = {.depth = 2}, .max_moves = 1200}, index,
                               [](const Game&, const SearchResult&) {});
    if (game.board.MaxRank() >= 10) ++reached;
  }
  EXPECT_GE(reached, 9);
}

TEST(SelfPlay, AGameHangsOnSeedAndNumberAlone) {
  const RowHeuristic heuristic;
  const SelfPlayOptions options = {.search = {.depth = 1}, .seed = 5, .explore = 0.1};
  const auto play = [&](int64_t index) {
    Expectimax search(heuristic, options.search);
    return PlayRawGame(search, options, index, "raws");
  };
  Expectimax warm(heuristic, options.search);
  PlayRawGame(warm, options, 1, "raws");
  const RawGame again = PlayRawGame(warm, options, 2, "raws");
  const RawGame fresh = play(2);
  ASSERT_EQ(again.steps.size(), fresh.steps.size());
  for (size_t i = 0; i < fresh.steps.size(); ++i) {
    EXPECT_EQ(RawLine(again.steps[i]), RawLine(fresh.steps[i]));
  }
  EXPECT_NE(play(3).meta.seed, fresh.meta.seed);
}

}  // namespace
}  // namespace kibitz::oracles
