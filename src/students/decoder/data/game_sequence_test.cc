#include "students/decoder/data/game_sequence.h"

#include <gtest/gtest.h>

#include <map>

#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "students/decoder/data/tokens.h"

namespace kibitz::decoder {
namespace {

std::vector<Ply> RandomGame(size_t plies, uint64_t seed) {
  Rng rng({.seed = seed});
  std::vector<Ply> game;
  chess::Board board;
  while (game.size() < plies && chess::HasLegalMove(board)) {
    const chess::MoveList moves = chess::LegalMoves(board);
    const chess::Move move = moves[rng.Below(moves.size())];
    game.push_back({.board = board,
                    .played = TokenOf(move),
                    .best = TokenOf(moves[rng.Below(moves.size())]),
                    .wl = 0.25F,
                    .d = 0.5F,
                    .valid = true,
                    .starts_run = game.empty()});
    board = board.After(move);
  }
  return game;
}

TEST(GameSequenceTest, EveryPlyIsAsLikelyToComeFirst) {
  const std::vector<Ply> game = RandomGame(10, 1);
  std::vector<double> starts(game.size());
  for (uint64_t i = 0; i < 10'000; ++i) {
    Rng rng({.seed = 2, .sample = i});
    ++starts[DrawGameChoices(game, {}, rng).start];
  }
  double chi_square = 0;
  for (double n : starts) chi_square += (n - 1000) * (n - 1000) / 1000;
  EXPECT_LT(chi_square, 27.9);  // p = 0.001 at nine degrees of freedom.
}

TEST(GameSequenceTest, SkipsBoardsAtTheGivenRateButNeverTheFirst) {
  const std::vector<Ply> game = RandomGame(12, 1);
  size_t skipped = 0;
  size_t shown = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    Rng rng({.seed = 3, .sample = i});
    const Sequence s = GameSequence(game, {.max_seq_len = 2048, .skip_board_prob = 0.2}, rng);
    ASSERT_EQ(s.ids[0], kStartPos);
    ASSERT_EQ(s.moves.size(), s.values.size());  // Every move has a token that predicts it.
    shown += s.blocks.size() - 1;
    skipped += s.moves.size() - s.blocks.size();
  }
  const double rate = static_cast<double>(skipped) / static_cast<double>(skipped + shown);
  EXPECT_NEAR(rate, 0.2, 0.015);
}

TEST(GameSequenceTest, ACutKeepsValuesWhole) {
  const std::vector<Ply> game = RandomGame(6, 1);
  const GameChoices choices{.start = 0, .board_skipped = std::vector<bool>(game.size())};
  for (int limit = 68; limit <= 6 * 71; ++limit) {
    const Sequence s = GameSequence(game, {.max_seq_len = limit}, choices);
    ASSERT_EQ(s.size(), limit);
    const auto whole = static_cast<size_t>(limit / 71);
    ASSERT_EQ(s.moves.size(), whole);
    ASSERT_EQ(s.values.size(), whole);
    ASSERT_EQ(s.blocks.size(), static_cast<size_t>((limit + 70) / 71));
    ASSERT_LE(s.blocks.back().end, limit);
    ASSERT_EQ(s.board_targets.size(), s.ids.size());
    ASSERT_EQ(s.board_targets.back(), kIgnore);
  }
}

TEST(GameSequenceTest, ARunEndsWhereTheGameBreaks) {
  std::vector<Ply> game = RandomGame(6, 1);
  game[3].starts_run = true;
  GameChoices choices{.start = 1, .board_skipped = std::vector<bool>(game.size())};
  EXPECT_EQ(GameSequence(game, {}, choices).size(), 2 * 71);
  choices.start = 3;
  EXPECT_EQ(GameSequence(game, {}, choices).size(), 3 * 71);
}

}  // namespace
}  // namespace kibitz::decoder
