#include "oracles/records/source_games.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "games/chess/fen.h"
#include "io/tables/parquet.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> FensOf(const std::vector<GameSoFar>& positions) {
  std::vector<std::string> fens;
  for (const GameSoFar& game : positions) fens.push_back(ToFen(game.Current()));
  return fens;
}

class SourceGamesTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    WriteFileAtomically(folder_.File(name), text);
    return folder_.File(name);
  }
  std::vector<std::string> Sample(const std::string& path, const Sampling& sampling = {}) {
    return FensOf(SamplePositions({path}, sampling, skipped_));
  }
  testing::TempFolder folder_;
  SkipCounter skipped_;
};

constexpr const char* kFoolsMate = "1. f3 e5 2. g4 Qh4# 0-1\n\n";

TEST_F(SourceGamesTest, ReadsLinesOfFenAndEpd) {
  const std::string path = Write("a.epd",
                                 "# a comment\n"
                                 "8/8/8/8/8/5k2/8/4R2K b - - 3 50\n"
                                 "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - bm e1g1; id \"x\";\n\n"
                                 "r3k2r/8/8/8/8/8/8/R3K2R w KQkq -\n"  // A duplicate.
                                 "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1\n"    // Stalemate.
                                 "1rk1r3/8/8/8/8/8/8/1RK1R3 w KQkq - 0 1\n"
                                 "rubbish\n");
  EXPECT_THAT(Sample(path), ::testing::ElementsAre("8/8/8/8/8/5k2/8/4R2K b - - 3 50",
                                                   "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"));
  EXPECT_EQ(skipped_.CountOf(kDuplicateReason), 1U);
  EXPECT_EQ(skipped_.CountOf(kChess960Reason), 1U);
  EXPECT_EQ(skipped_.CountOf("the game is over"), 1U);
  EXPECT_EQ(skipped_.CountOf("bad FEN"), 1U);
  EXPECT_THAT(skipped_.ToJson()[kChess960Reason]["first"].get<std::string>(), HasSubstr("a.epd:7"));
}

TEST_F(SourceGamesTest, ReadsPgnWithoutChess960AndBrokenGames) {
  const std::string path = Write(
      "a.pgn", std::string(kFoolsMate) +
                   "[Variant \"Chess960\"]\n[FEN \"nrkbrqbn/pppppppp/8/8/8/8/PPPPPPPP/NRKBRQBN "
                   "w KQkq - 0 1\"]\n\n1. e4 *\n\n[Event \"x\"]\n\n1. e4 Ke4 *\n\n" +
                   kFoolsMate);
  const auto fens = Sample(path);
  EXPECT_EQ(fens.size(), 4U);  // The mate has no place among them, nor has the second game.
  EXPECT_EQ(skipped_.CountOf(kChess960Reason), 1U);
  EXPECT_EQ(skipped_.CountOf("broken game"), 1U);
  EXPECT_EQ(skipped_.CountOf(kDuplicateReason), 4U);
  EXPECT_EQ(Sample(path, {.from_ply = 2}).front(),
            "rnbqkbnr/pppp1ppp/8/4p3/8/5P2/PPPPP1PP/RNBQKBNR w KQkq - 0 2");
}

TEST_F(SourceGamesTest, DrawsDependOnSeedAndGameAlone) {
  const std::string path = testing::DataFile("games", ".pgn");
  SKIP_WITHOUT(path);
  const auto some = Sample(path, {.per_game = 3, .limit = 300, .seed = 7});
  EXPECT_EQ(some.size(), 300U);
  EXPECT_EQ(some, Sample(path, {.per_game = 3, .limit = 300, .seed = 7}));
  EXPECT_NE(some, Sample(path, {.per_game = 3, .limit = 300, .seed = 8}));
  auto distinct = some;
  std::sort(distinct.begin(), distinct.end());
  EXPECT_EQ(std::unique(distinct.begin(), distinct.end()), distinct.end());
}

TEST_F(SourceGamesTest, PutsRowsTogetherToGames) {
  io::ParquetWriter writer(folder_.File("g.parquet"), {{"game_id", io::ColumnType::kText},
                                                       {"fen", io::ColumnType::kText},
                                                       {"played_move", io::ColumnType::kText}});
  const auto add = [&](const std::string& id, const std::string& fen, const std::string& move) {
    writer.SetText(0, id);
    writer.SetText(1, fen);
    writer.SetText(2, move);
    writer.EndRow();
  };
  add("a", "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1h1");
  add("a", "r3k2r/8/8/8/8/8/8/R4RK1 b kq - 1 1", "e8a8");
  add("b", "8/8/8/8/8/5k2/8/4R2K b - - 3 50", "f3f5");  // Illegal: a lone position.
  add("c", "8/8/8/8/8/5k2/8/4R2K b - - 3 50", "f3f4");
  writer.Finish();
  std::vector<size_t> plies;
  ForEachGame({folder_.path()}, skipped_, [&](const SourceGame& game) {
    plies.push_back(game.game.moves.size());
    return true;
  });
  EXPECT_THAT(plies, ::testing::ElementsAre(2, 0, 1));
  EXPECT_THAT(testing::MessageOf([&] {
                ForEachGame({"no/such"}, skipped_, [](const SourceGame&) { return true; });
              }),
              HasSubstr("no/such"));
}

}  // namespace
}  // namespace kibitz::oracles
