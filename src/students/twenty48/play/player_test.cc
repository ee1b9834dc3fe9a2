#include "students/twenty48/play/player.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/atomic_file.h"
#include "base/random.h"
#include "games/twenty48/slide.h"
#include "students/twenty48/data/augment.h"
#include "students/twenty48/play/games.h"
#include "tests/support/test_data.h"

namespace kibitz::twenty48 {
namespace {

using kibitz::testing::GoldenPath;
using kibitz::testing::ModelPath;
using kibitz::testing::TempFolder;

std::vector<Board> SomeBoards() {
  std::vector<Board> boards;
  Rng rng({.seed = 2, .purpose = Purpose("player test")});
  Game game = Game::Start(rng);
  while (const unsigned legal = LegalMoves(game.board)) {
    boards.push_back(game.board);
    game.Play(kMoves[static_cast<size_t>(std::countr_zero(legal))], rng);
  }
  return boards;
}

TEST(Player, ChoosesLegalMovesWhateverTheBatch) {
  const std::vector<Board> boards = SomeBoards();
  for (const std::string name : {"action_policy", "binned_ev"}) {
    for (BinnedRule rule : {BinnedRule::kBestBin, BinnedRule::kExpected}) {
      Player player(GoldenPath("twenty48/model/" + name), {.rule = rule});
      const std::vector<Choice> all = player.Choose(boards);
      for (size_t i = 0; i < boards.size(); ++i) {
        EXPECT_TRUE((LegalMoves(boards[i]) >> IndexOf(all[i].best) & 1) != 0);
        const Choice alone = player.Choose({&boards[i], 1})[0];
        EXPECT_EQ(alone.best, all[i].best);
        EXPECT_EQ(alone.scores, all[i].scores);
      }
    }
  }
}

TEST(Player, ACanonicalPlayerPlaysAlikeInEveryView) {
  const TempFolder folder;
  const std::string from = GoldenPath("twenty48/model/action_policy");
  std::filesystem::copy(from + "/model.safetensors", folder.File("model.safetensors"));
  NetConfig config = *ConfigOf(from);
  config.canonical_view = true;
  WriteFileAtomically(folder.File("config.json"), FieldsOf(config).ToTree().dump());
  Player player(folder.path(), {});
  for (const Board& board : SomeBoards()) {
    const Choice choice = player.Choose({&board, 1})[0];
    for (int turns = 0; turns < 4; ++turns) {
      const View view = {turns, turns % 3};
      const Board turned = Seen(board, view);
      // A board that looks the same in two views has two best moves.
      if (Seen(turned, CanonicalView(turned)) != Seen(board, CanonicalView(board))) ADD_FAILURE();
      const Choice there = player.Choose({&turned, 1})[0];
      EXPECT_EQ(
          Seen(Slide(turned, there.best).board, CanonicalView(Slide(turned, there.best).board)),
          Seen(Slide(board, choice.best).board, CanonicalView(Slide(board, choice.best).board)));
    }
  }
}

TEST(Player, DrawsByTemperature) {
  Choice choice{.best = Move::kLeft, .legal = 0b1101, .scores = {0.2F, 0, 0.5F, 0.3F}};
  EXPECT_EQ(Drawn(choice, 0, 0.99), Move::kLeft);
  EXPECT_EQ(Drawn(choice, 1, 0.19), Move::kUp);
  EXPECT_EQ(Drawn(choice, 1, 0.21), Move::kLeft);
  EXPECT_EQ(Drawn(choice, 1, 0.71), Move::kRight);
  EXPECT_EQ(Drawn(choice, 1e-3, 0.5), Move::kLeft);
}

TEST(Games, DoNotDependOnHowManyArePlayedAtATime) {
  const auto play = [](int side_by_side, nn::Precision precision) {
    Player player(GoldenPath("twenty48/model/binned_ev"),
                  {.model = {.precision = precision, .threads = 1}});
    std::vector<int64_t> scores;
    for (const Game& game :
         PlayGames(player, {.games = 12, .seed = 3, .side_by_side = side_by_side})) {
      scores.push_back(game.score);
    }
    return scores;
  };
  EXPECT_EQ(play(1, nn::Precision::kF32), play(5, nn::Precision::kF32));
  EXPECT_EQ(play(1, nn::Precision::kF32), play(100, nn::Precision::kF32));
}

// The mean score of random legal moves.
double RandomMean(int64_t games) {
  double sum = 0;
  for (int64_t i = 0; i < games; ++i) {
    Rng rng({.seed = 4, .sample = static_cast<uint64_t>(i), .purpose = Purpose("random play")});
    Game game = Game::Start(rng);
    while (const unsigned legal = LegalMoves(game.board)) {
      const Move move = kMoves[rng.Below(4)];
      if ((legal >> IndexOf(move) & 1) != 0) game.Play(move, rng);
    }
    sum += static_cast<double>(game.score) / static_cast<double>(games);
  }
  return sum;
}

TEST(ShippedModel, PlaysFarBetterThanChance) {
  Player player(ModelPath("twenty48-small"), {.model = {.precision = nn::Precision::kInt8}});
  const GameFigures figures = FiguresOf(PlayGames(player, {.games = 24, .seed = 5}));
  EXPECT_GT(figures.mean, 3 * RandomMean(200));
  EXPECT_GT(figures.reached.at(512), 0.3);
}

TEST(Games, FiguresAreRight) {
  std::vector<Game> games(4);
  for (size_t i = 0; i < 4; ++i) {
    games[i].score = static_cast<int64_t>(100 * (i + 1));
    games[i].moves = 10;
    games[i].board = Board().With(0, static_cast<int>(9 + i));
  }
  const GameFigures figures = FiguresOf(games);
  EXPECT_EQ(figures.mean, 250);
  EXPECT_EQ(figures.median, 250);
  EXPECT_EQ(figures.best, 400);
  EXPECT_EQ(figures.moves, 40);
  EXPECT_NEAR(figures.error, 1.96 * 129.0994 / 2, 1e-3);
  EXPECT_EQ(figures.reached.at(512), 1);
  EXPECT_EQ(figures.reached.at(2048), 0.5);
  EXPECT_EQ(figures.reached.at(8192), 0);
}

}  // namespace
}  // namespace kibitz::twenty48
