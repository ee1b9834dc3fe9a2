#include "students/twenty48/play/player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/random.h"
#include "games/twenty48/slide.h"
#include "students/twenty48/data/augment.h"
#include "students/twenty48/play/games.h"
#include "tests/support/golden_kit.h"
#include "tests/support/test_data.h"
#include "tests/support/twenty48_random.h"

namespace kibitz::twenty48 {
namespace {

using kibitz::testing::ModelPath;
using kibitz::testing::TempFolder;
using kibitz::testing::Twenty48Models;
using Json = nlohmann::ordered_json;

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

// A copy of a golden model with this config.json.
void CopyModel(const std::string& from, const std::string& config, const TempFolder& to) {
  std::filesystem::copy_file(from + "/model.safetensors", to.File("model.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  WriteFileAtomically(to.File("config.json"), config);
}

// A binning that gives so many bins.
BinningOptions EvenBins(int bins) {
  BinningOptions binning{.strategy = BinStrategy::kUpperBounds, .edges = {}};
  for (int i = 1; i <= bins; ++i) binning.edges.push_back(static_cast<double>(i) / bins);
  return binning;
}

TEST(Player, ChoosesLegalMovesWhateverTheBatch) {
  const std::vector<Board> boards = SomeBoards();
  for (const std::string name : {"action_policy", "binned_ev"}) {
    for (BinnedRule rule : {BinnedRule::kBestBin, BinnedRule::kExpected}) {
      const std::string from = Twenty48Models(name).at(0);
      const NetConfig config = ConfigOf(io::ReadModel(from));
      const TempFolder folder;
      CopyModel(from, ConfigTree(config, EvenBins(config.bins())).dump(), folder);
      Player player({.network = {.path = folder.path()}, .rule = rule});
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
  const std::string from = Twenty48Models("action_policy").at(0);
  NetConfig config = ConfigOf(io::ReadModel(from));
  config.canonical_view = true;
  CopyModel(from, ConfigTree(config, std::nullopt).dump(), folder);
  Player player({.network = {.path = folder.path()}});
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

TEST(Player, ExpectedValuesFollowTheStoredBinning) {
  const std::string from = Twenty48Models("binned_ev").at(0);
  const NetConfig config = ConfigOf(io::ReadModel(from));
  const auto bins = static_cast<size_t>(config.bins());
  const BinningOptions even = EvenBins(config.bins());
  ASSERT_EQ(Binner(even).bins(), config.bins());
  const TempFolder folder;
  CopyModel(from, ConfigTree(config, even).dump(), folder);
  EXPECT_EQ(BinningOf(io::ReadModel(folder.path()))->edges, even.edges);
  Player player({.network = {.path = folder.path()}, .rule = BinnedRule::kExpected});
  for (const Board& board : SomeBoards()) {
    std::vector<float> logits(4 * bins);
    player.model().Answer({&board, 1}, logits.data());
    const Choice choice = player.Choose({&board, 1})[0];
    for (size_t move = 0; move < 4; ++move) {
      if ((choice.legal >> move & 1) == 0) continue;
      double sum = 0;
      double expected = 0;
      for (size_t bin = 0; bin < bins; ++bin) {
        const double share = std::exp(double{logits[move * bins + bin]});
        sum += share;
        expected += share * Binner(even).CenterOf(static_cast<int>(bin));
      }
      EXPECT_NEAR(choice.scores[move], expected / sum, 1e-5);
    }
  }
}

TEST(Player, ExpectedValuesNeedAFittingBinning) {
  const std::string from = Twenty48Models("binned_ev").at(0);
  const NetConfig config = ConfigOf(io::ReadModel(from));
  const TempFolder folder;
  const auto refusal = [&](const std::optional<BinningOptions>& binning) -> std::string {
    CopyModel(from, ConfigTree(config, binning).dump(), folder);
    EXPECT_NO_THROW(Player({.network = {.path = folder.path()}, .rule = BinnedRule::kBestBin}));
    try {
      Player({.network = {.path = folder.path()}, .rule = BinnedRule::kExpected});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(std::nullopt), ::testing::HasSubstr("stores no binning"));
  EXPECT_THAT(refusal(EvenBins(config.bins() + 1)), ::testing::HasSubstr("its heads have"));
  EXPECT_EQ(refusal(EvenBins(config.bins())), "");
}

TEST(Player, ConfigsMayLackSizesAndHaveOtherKeys) {
  const std::string from = Twenty48Models("binned_ev").at(0);
  const NetConfig golden = ConfigOf(io::ReadModel(from));
  const TempFolder folder;
  CopyModel(from,
            fmt::format(R"({{"num_attention_heads": {}, "use_cache": true}})",
                        golden.num_attention_heads),
            folder);
  Player player({.network = {.path = folder.path(), .threads = 1}});
  EXPECT_EQ(player.config().kv_heads(), golden.kv_heads());
  EXPECT_EQ(player.config().bins(), golden.bins());
  Player whole({.network = {.path = from, .threads = 1}});
  const std::vector<Board> boards = SomeBoards();
  EXPECT_EQ(player.Choose(boards)[0].scores, whole.Choose(boards)[0].scores);
}

// A policy has no bins, though NetConfig has a default for them and other programs may write one.
TEST(Player, APolicyHasNoBins) {
  const std::string from = Twenty48Models("binned_ev").at(0);
  const io::ModelFile file = io::ReadModel(from);
  Json config = *file.Section("model");
  config["head_type"] = "action_policy";
  for (const Json& bins : {Json(), Json(12)}) {
    config["output_n_bins"] = bins;
    const TempFolder folder;
    CopyModel(from, config.dump(), folder);
    EXPECT_EQ(ConfigOf(io::ReadModel(folder.path())).output_n_bins, std::nullopt);
  }
}

// The width and the heads of the encoder are in no weight of the network without attention.
TEST(Player, WithoutAttentionSizesComeFromShapesToo) {
  const NetConfig shipped = kibitz::testing::SmallTwenty48();
  const TempFolder made;
  const std::string from = made.path();
  io::WriteModel(from, kibitz::testing::RandomTwenty48(1).AttentionFree(shipped),
                 ConfigTree(shipped, std::nullopt));
  const TempFolder folder;
  CopyModel(from,
            Json{{"hidden_size", shipped.hidden_size},
                 {"num_attention_heads", shipped.num_attention_heads},
                 {"num_key_value_heads", shipped.kv_heads()},
                 {"layer_norm_eps", shipped.layer_norm_eps},
                 {"canonical_view", shipped.canonical_view}}
                .dump(),
            folder);
  Player player({.network = {.path = folder.path(), .threads = 1}});
  EXPECT_EQ(ConfigTree(player.config(), std::nullopt), ConfigTree(shipped, std::nullopt));
  CopyModel(from, "{}", folder);
  EXPECT_THAT(kibitz::testing::MessageOf([&] { Player({.network = {.path = folder.path()}}); }),
              ::testing::HasSubstr("found no hidden_size"));
}

TEST(Player, SaysWhatIsMissing) {
  const std::string from = Twenty48Models("binned_ev").at(0);
  const TempFolder folder;
  EXPECT_THAT(
      kibitz::testing::MessageOf([&] { Player({.network = {.path = folder.File("none")}}); }),
      ::testing::HasSubstr("none: found no such file or folder"));
  CopyModel(from, "{}", folder);
  EXPECT_THAT(kibitz::testing::MessageOf([&] { Player({.network = {.path = folder.path()}}); }),
              ::testing::HasSubstr("found no num_attention_heads"));
}

TEST(Player, DrawsByTemperature) {
  Choice choice{.best = Move::kLeft, .legal = 0b1101, .scores = {0.2F, 0, 0.5F, 0.3F}};
  EXPECT_EQ(Drawn(choice, 0, 0.99), Move::kLeft);
  EXPECT_EQ(Drawn(choice, 1, 0.19), Move::kUp);
  EXPECT_EQ(Drawn(choice, 1, 0.21), Move::kLeft);
  EXPECT_EQ(Drawn(choice, 1, 0.71), Move::kRight);
  EXPECT_EQ(Drawn(choice, 1e-3, 0.5), Move::kLeft);
}

TEST(Player, ATupleNetworkPlaysAlikeWhateverTheBatchAndInInt8) {
  NetConfig config = kibitz::testing::SmallTwenty48();
  config.tuple_width = 4;
  const std::vector<Board> boards = SomeBoards();
  for (bool attention : {false, true}) {
    const TempFolder folder;
    io::WriteModel(folder.path(), kibitz::testing::RandomTwenty48(2).Tuples(config, attention),
                   ConfigTree(config, std::nullopt));
    Player player({.network = {.path = folder.path(), .threads = 2}});
    EXPECT_EQ(ConfigTree(player.config(), std::nullopt), ConfigTree(config, std::nullopt));
    Player coarse(
        {.network = {.path = folder.path(), .precision = nn::Precision::kInt8, .threads = 1}});
    const std::vector<Choice> all = player.Choose(boards);
    const std::vector<Choice> rounded = coarse.Choose(boards);
    int same = 0;
    for (size_t i = 0; i < boards.size(); ++i) {
      EXPECT_EQ(player.Choose({&boards[i], 1})[0].scores, all[i].scores);
      if (rounded[i].best == all[i].best) ++same;
    }
    EXPECT_GT(same, 0.9 * static_cast<double>(boards.size()));
  }
}

TEST(Games, DoNotDependOnHowManyArePlayedAtATime) {
  const auto play = [](int side_by_side, nn::Precision precision) {
    Player player(
        {.network = {
             .path = Twenty48Models("binned_ev").at(0), .precision = precision, .threads = 1}});
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

// The card's figures over 1,000 games are a mean of 61,466 with a standard deviation of 36,400, and
// 83% and 59% of games with 2048 and 4096. The bounds are three standard errors of 200 games below.
TEST(ShippedModel, PlaysAsItsCardSays) {
  Player player({.network = {.path = ModelPath("twenty48-small"), .threads = 2}});
  const GameFigures figures = FiguresOf(PlayGames(player, {.games = 200, .seed = 5}));
  EXPECT_GT(figures.mean, 61'466 - 3 * 36'400 / std::sqrt(200.0));
  EXPECT_GT(figures.reached.at(2048), 0.83 - 3 * std::sqrt(0.83 * 0.17 / 200));
  EXPECT_GT(figures.reached.at(4096), 0.59 - 3 * std::sqrt(0.59 * 0.41 / 200));
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
