#include "students/decoder/data/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "base/text.h"
#include "games/chess/fen.h"
#include "io/tables/parquet.h"
#include "tests/support/decoder_records.h"
#include "tests/support/test_data.h"

namespace kibitz::decoder {
namespace {

using kibitz::testing::GameRecord;
using kibitz::testing::MessageOf;
using kibitz::testing::SearchRecord;
using kibitz::testing::TempFolder;
using kibitz::testing::WriteGames;
using kibitz::testing::WriteSearches;
using ::testing::HasSubstr;

// Loads everything; how often each reason was counted, and how many candidates are usable.
std::map<std::string, uint64_t> Reasons(const Source& source, uint64_t* usable = nullptr) {
  for (size_t unit = 0; unit < source.unit_sizes().size(); ++unit) {
    const auto loaded = source.Load(unit);
    for (size_t i = 0; i < source.unit_sizes()[unit]; ++i) {
      if (usable != nullptr) *usable += loaded->Usable(i) ? 1 : 0;
    }
    source.Load(unit);  // Counted once only.
  }
  std::map<std::string, uint64_t> counts;
  for (const auto& [reason, entry] : source.skipped().entries()) counts[reason] = entry.count;
  return counts;
}

TEST(SourceTest, BadSearchesAreCountedByReason) {
  const TempFolder folder;
  const std::string path = folder.File("v.parquet");
  int row = 0;
  WriteSearches(path, {.count = 100}, [&](SearchRecord& record) {
    switch (row++) {
      case 10:
        record.fen = "8/8/8/8/8/8/8/8 w - - 0 1";
        break;
      case 20:
        record.mcts_action = "a1a9";
        break;
      case 21:
        record.variations = R"([{"root_move":"e1e8","visit_count":1,"nodes":[]}])";
        break;
      case 30:
        record.variations = "[{\"root_move\":";
        break;
      case 31:
        record.variations = R"({"root_move":"e2e4"})";
        break;
      case 32:
        record.variations = R"([{"visit_count":3}])";
        break;
      case 33:
        record.variations = "";
        break;
      case 40:
        record.win = std::numeric_limits<double>::quiet_NaN();
        break;
      case 41:
        record.draw.reset();
        break;
      case 42:
        record.loss = 7;
        break;
      case 50:
        record.variations = "[]";
        break;
      default:
        break;
    }
  });
  const auto source = OpenSearches({path}, {});
  uint64_t usable = 0;
  const auto reasons = Reasons(*source, &usable);
  EXPECT_EQ(reasons, (std::map<std::string, uint64_t>{
                         {"bad FEN", 1},
                         {"illegal move", 2},
                         {"malformed variations", 4},
                         {"win/draw/loss missing or impossible, row used without its value", 3},
                         {"no variation with a node", 1}}));
  EXPECT_EQ(usable, 92);  // Only the value of a bad wdl is lost.
  const auto entries = source->skipped().entries();
  EXPECT_THAT(entries.at("illegal move").first.Text(), HasSubstr("v.parquet, row 20: "));
}

TEST(SourceTest, ANodeMustFollowFromItsMove) {
  const TempFolder folder;
  const std::string path = folder.File("v.parquet");
  const std::string good =
      R"([{"root_move":"e2e4","visit_count":5,"nodes":[{"fen":)"
      R"("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1","move":null,"wdl":[0,1,0]}]}])";
  int row = 0;
  WriteSearches(path, {.count = 3}, [&](SearchRecord& record) {
    record = {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", good, "e2e4", 0, 1, 0};
    if (row++ == 1) record.variations.replace(record.variations.find("e2e4"), 4, "d2d4");
  });
  const auto source = OpenSearches({path}, {});
  EXPECT_EQ(
      Reasons(*source),
      (std::map<std::string, uint64_t>{{"a node is not the result of the move before it", 1}}));
}

TEST(SourceTest, BadPliesEndARunAndAreCounted) {
  const TempFolder folder;
  const std::string path = folder.File("g.parquet");
  WriteGames(path, {.count = 20, .max_plies = 40}, [&](GameRecord& record) {
    if (record.game_id == "g3" && record.ply == 1) record.played_move = "e2e5";
    if (record.game_id == "g4" && record.ply == 1) record.best_move = "";
    if (record.game_id == "g5" && record.ply == 1) record.fen = "nonsense";
    if (record.game_id == "g6" && record.ply == 0) record.win = -3;
    if (record.game_id == "g7" && record.ply == 1) record.fen = "4k3/8/8/8/8/8/8/4K2R b K - 0 1";
  });
  const auto source = OpenGames({path}, {});
  EXPECT_EQ(source->size(), 20);
  const auto reasons = Reasons(*source);
  EXPECT_EQ(reasons.at("illegal move"), 3);  // g7's move does not fit its foreign position either.
  EXPECT_EQ(reasons.at("bad FEN"), 1);
  EXPECT_EQ(reasons.at("win/draw/loss missing or impossible, row used without its value"), 1);
}

TEST(SourceTest, FilesWithNothingUsableAreErrors) {
  const TempFolder folder;
  const std::string all_bad = folder.File("bad.parquet");
  WriteSearches(all_bad, {.count = 5}, [](SearchRecord& record) { record.mcts_action = "x"; });
  const std::string message = MessageOf([&] { OpenSearches({all_bad}, {}); });
  EXPECT_THAT(message, HasSubstr("bad.parquet: none of its 5 rows can be used: 5 x illegal move"));

  const std::string empty = folder.File("empty.parquet");
  WriteSearches(empty, {.count = 0});
  EXPECT_THAT(MessageOf([&] { OpenSearches({empty}, {}); }), HasSubstr("empty file"));
  const std::string good = folder.File("good.parquet");
  WriteSearches(good, {.count = 5});
  const auto source = OpenSearches({empty, good}, {});  // An empty file beside a good one is told.
  EXPECT_EQ(source->size(), 5);
  EXPECT_EQ(Reasons(*source).at("empty file"), 1);

  EXPECT_THAT(MessageOf([&] { OpenGames({good}, {}); }), HasSubstr("has no column \"game_id\""));
  EXPECT_THAT(MessageOf([&] { OpenGames({folder.File("none")}, {}); }), HasSubstr("none"));
  EXPECT_THAT(MessageOf([&] { OpenSearches({good}, {.max_seq_len = 100}); }), HasSubstr("145"));
}

TEST(SourceTest, UnknownColumnsAreToldAndPlayedValuesAreUsed) {
  const TempFolder folder;
  const std::string path = folder.File("g.parquet");
  using io::ColumnType;
  io::ParquetWriter writer(path, {{"game_id", ColumnType::kInt64},
                                  {"ply", ColumnType::kInt64},
                                  {"fen", ColumnType::kText},
                                  {"played_move", ColumnType::kText},
                                  {"best_move", ColumnType::kText},
                                  {"played_q", ColumnType::kDouble},
                                  {"played_d", ColumnType::kDouble},
                                  {"opening", ColumnType::kText}});
  kibitz::testing::MakeGames({.count = 1, .max_plies = 1}, [&](const GameRecord& record) {
    writer.SetInt(0, 77);
    writer.SetInt(1, record.ply);
    writer.SetText(2, record.fen);
    writer.SetText(3, record.played_move);
    writer.SetText(4, record.best_move);
    writer.SetDouble(5, -0.25);
    writer.SetDouble(6, 0.5);
    writer.EndRow();
  });
  writer.Finish();
  const auto source = OpenGames({path}, {});
  EXPECT_EQ(Reasons(*source), (std::map<std::string, uint64_t>{{"unknown column, not read", 1}}));
  Rng rng({.seed = 1});
  const Sequence s = source->Load(0)->Make(0, rng);
  EXPECT_EQ(s.values[0], (ValueTarget{69, -0.25F, 0.5F, true}));
}

// The same games whether they lie together, across row groups, or mixed up.
TEST(SourceTest, GamesAreFoundHoweverTheyLie) {
  const TempFolder folder;
  std::vector<GameRecord> rows;
  const kibitz::testing::RecordPlan plan{.count = 150, .max_plies = 60};
  kibitz::testing::MakeGames(plan, [&](const GameRecord& record) { rows.push_back(record); });
  ASSERT_GT(rows.size(), 4000);  // Several row groups of 2048.
  WriteGames(folder.File("together.parquet"), plan);
  std::vector<GameRecord> mixed = rows;
  Rng({.seed = 9}).Shuffle(mixed);
  size_t next = 0;
  WriteGames(folder.File("mixed.parquet"), plan,
             [&](GameRecord& record) { record = mixed[next++]; });

  const auto together = OpenGames({folder.File("together.parquet")}, {.max_seq_len = 1 << 16});
  const auto scattered = OpenGames({folder.File("mixed.parquet")}, {.max_seq_len = 1 << 16});
  EXPECT_GT(together->unit_sizes().size(), 1);
  EXPECT_EQ(scattered->unit_sizes().size(), 1);
  EXPECT_TRUE(Reasons(*together).empty());
  EXPECT_TRUE(Reasons(*scattered).empty());
  // As sets of whole games: with the start drawn at random, the longest of some draws is the game.
  const auto whole_games = [](const Source& source) {
    std::multiset<std::vector<TokenId>> games;
    for (size_t unit = 0; unit < source.unit_sizes().size(); ++unit) {
      const auto loaded = source.Load(unit);
      for (size_t i = 0; i < source.unit_sizes()[unit]; ++i) {
        std::vector<TokenId> longest;
        for (uint64_t draw = 0; draw < 400; ++draw) {
          Rng rng({.seed = 1, .sample = draw});
          const Sequence s = loaded->Make(i, rng);
          if (s.ids.size() > longest.size()) longest = s.ids;
        }
        games.insert(longest);
      }
    }
    return games;
  };
  const auto expected = whole_games(*together);
  EXPECT_EQ(expected.size(), 150);
  EXPECT_EQ(whole_games(*scattered), expected);
}

TEST(SourceTest, ReadSearchFindsARow) {
  const TempFolder folder;
  const std::string path = folder.File("v.parquet");
  std::vector<std::string> fens;
  WriteSearches(path, {.count = 5000}, [&](SearchRecord& record) { fens.push_back(record.fen); });
  for (uint64_t row : {0U, 1U, 2047U, 2048U, 4999U}) {
    SkipCounter skipped;
    EXPECT_EQ(ReadSearch(path, row).root, chess::ParseFen(fens[row]).OrThrow(""));
  }
  EXPECT_THAT(MessageOf([&] { ReadSearch(path, 5000); }),
              HasSubstr("has no row 5000, only 0 to 4999"));
}

}  // namespace
}  // namespace kibitz::decoder
