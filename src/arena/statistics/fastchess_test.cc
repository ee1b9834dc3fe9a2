// Side by side with the figures that fastchess prints for the same results.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "arena/statistics/elo.h"
#include "arena/statistics/sprt.h"
#include "base/text.h"
#include "tests/support/test_data.h"

namespace kibitz::arena {
namespace {

using Json = nlohmann::ordered_json;

double Number(const Json& text) { return std::stod(text.get<std::string>()); }

// "14.90 +/- 35.76".
void ExpectFigure(const Json& text, double value, double error) {
  const auto words = SplitWords(text.get_ref<const std::string&>());
  ASSERT_EQ(words.size(), 3u);
  EXPECT_NEAR(value, std::stod(std::string(words[0])), 0.0051) << text;
  if (words[2] == "nan" || words[2] == "-nan") {
    EXPECT_FALSE(std::isfinite(error));  // The interval reaches a score of 0 or 1.
  } else {
    EXPECT_NEAR(error, std::stod(std::string(words[2])), 0.0051) << text;
  }
}

TEST(FastchessTest, PrintsTheSameFigures) {
  std::ifstream file(testing::SourcePath("tests/golden/arena/fastchess.jsonl"));
  int rows = 0;
  int ratios = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const Json row = Json::parse(line);
    const PairCounts pairs{.by_points = row["by_points"], .win_and_loss = row["win_and_loss"]};
    const GameCounts games{.wins = row["wins"], .draws = row["draws"], .losses = row["losses"]};
    const Strength of_pairs = StrengthOf(pairs);
    const Strength of_games = StrengthOf(games);
    ExpectFigure(row["pair_elo"], of_pairs.elo, of_pairs.elo_error);
    ExpectFigure(row["pair_nelo"], of_pairs.normalized_elo, of_pairs.normalized_elo_error);
    EXPECT_NEAR(100 * of_pairs.los, Number(row["pair_los"]), 0.0051);
    ExpectFigure(row["game_elo"], of_games.elo, of_games.elo_error);
    ExpectFigure(row["game_nelo"], of_games.normalized_elo, of_games.normalized_elo_error);
    EXPECT_NEAR(100 * of_games.los, Number(row["game_los"]), 0.0051);
    EXPECT_NEAR(100 * DrawRatio(pairs), Number(row["draw_ratio"]), 0.0051);
    EXPECT_NEAR(PairsRatio(pairs), Number(row["pairs_ratio"]), 0.0051);
    for (const Json& test : row["sprt"]) {
      const SprtOptions sprt{
          .elo0 = test["elo0"],
          .elo1 = test["elo1"],
          .model = test["model"] == "logistic" ? EloModel::kLogistic : EloModel::kNormalized};
      const double pair_llr = Number(test["pair_llr"]);
      const double game_llr = Number(test["game_llr"]);
      EXPECT_NEAR(LogLikelihoodRatio(pairs, sprt), pair_llr, 0.0051 + 0.002 * std::abs(pair_llr))
          << line;
      EXPECT_NEAR(LogLikelihoodRatio(games, sprt), game_llr, 0.0051 + 0.002 * std::abs(game_llr))
          << line;
      EXPECT_EQ(fmt::format("({:.2f}, {:.2f})", sprt.lower(), sprt.upper()), test["bounds"]);
      ++ratios;
    }
  }
  EXPECT_GE(rows, 60);
  EXPECT_GE(ratios, 600);
}

}  // namespace
}  // namespace kibitz::arena
