#include "oracles/twenty48/raw_games.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/atomic_file.h"
#include "base/text.h"
#include "io/bytes/byte_sink.h"
#include "oracles/twenty48/row_heuristic.h"
#include "oracles/twenty48/self_play.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using kibitz::testing::MessageOf;
using kibitz::testing::ReadWhole;
using kibitz::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

RawGame SomeGame() {
  const RowHeuristic heuristic;
  const SelfPlayOptions options = {.search = {.depth = 1}, .seed = 11};
  Expectimax search(heuristic, options.search);
  return PlayRawGame(search, options, 0, "raws");
}

std::string MetaPath(const TempFolder& folder, const RawGame& game) {
  return folder.File(RawGameName(game.meta) + ".meta.json");
}

TEST(RawGames, ComeBackAsTheyWere) {
  const TempFolder folder;
  const RawGame game = SomeGame();
  WriteRawGame(folder.path(), game);
  const std::vector<std::string> found = FindRawGames(folder.path());
  ASSERT_EQ(found.size(), 1U);
  const RawGame read = ReadRawGame(found[0]);
  EXPECT_EQ(read.meta.score, game.meta.score);
  EXPECT_EQ(read.meta.steps_file, game.meta.steps_file);
  ASSERT_EQ(read.steps.size(), game.steps.size());
  for (size_t i = 0; i < read.steps.size(); ++i) {
    EXPECT_EQ(RawLine(read.steps[i]), RawLine(game.steps[i]));
  }
}

TEST(RawGames, WriteTheDocumentedFields) {
  RawStep step;
  step.seed = 710363253;
  step.board = twenty48::Board().With(3, 1).With(8, 1);
  step.move = twenty48::Move::kLeft;
  step.valuation = 0.034;
  step.branch_evs = {0.033, 0.011, 0.034, std::nullopt};
  EXPECT_EQ(
      RawLine(step),
      R"({"seed":710363253,"step_index":0,"max_rank":1,"move":"left","valuation_type":"search",)"
      R"("valuation":0.034000,"board":[0,0,0,1,0,0,0,0,1,0,0,0,0,0,0,0],"branch_evs":)"
      R"({"up":0.033000,"left":0.034000,"right":null,"down":0.011000}})"
      "\n");
}

// Writes the game with its fifth line changed, and reads it.
std::string Problem(const std::function<std::string(std::string)>& change) {
  const TempFolder folder;
  const RawGame game = SomeGame();
  WriteRawGame(folder.path(), game);
  io::ByteSink sink(folder.File(RawGameName(game.meta) + ".jsonl.gz"));
  for (size_t i = 0; i < game.steps.size(); ++i) {
    const std::string line = RawLine(game.steps[i]);
    sink.Write(i == 4 ? change(line) : line);
  }
  sink.Commit();
  return MessageOf([&] { ReadRawGame(MetaPath(folder, game)); });
}

std::string Replaced(std::string line, const std::string& from, const std::string& to) {
  const size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << line;
  return line.replace(at, from.size(), to);
}

TEST(RawGames, BrokenLinesAreNamed) {
  const auto in = [](const std::string& from, const std::string& to) {
    return Problem([=](std::string line) { return Replaced(std::move(line), from, to); });
  };
  const auto place = HasSubstr("game000000.jsonl.gz, line 5");
  EXPECT_THAT(in("\"valuation\":", "\"valuation\":NaN,\"x\":"), place);
  EXPECT_THAT(in("\"board\":[", "\"board\":[40,"), AllOf(place, HasSubstr("rank of 40")));
  EXPECT_THAT(in(",0],", "],"), AllOf(place, HasSubstr("15 cells")));
  EXPECT_THAT(in("\"board\":[", "\"board\":[0,"), AllOf(place, HasSubstr("17 cells")));
  EXPECT_THAT(in("\"move\":\"", "\"move\":\"north"), AllOf(place, HasSubstr("is no move")));
  EXPECT_THAT(in("\"branch_evs\":{", "\"branch_evs\":{\"north\":1,"),
              AllOf(place, HasSubstr("is no move")));
  EXPECT_THAT(in("\"branch_evs\"", "\"branches\""), place);
  EXPECT_THAT(in("\"seed\":", "\"seed\":9"), place);
  EXPECT_THAT(in("\"max_rank\":", "\"max_rank\":1"), AllOf(place, HasSubstr("max_rank")));
  EXPECT_THAT(Problem([](const std::string& line) { return line.substr(0, 40) + "\n"; }), place);
  EXPECT_THAT(Problem([](const std::string&) { return std::string(); }), HasSubstr("num_moves"));
}

TEST(RawGames, IllegalMovesAreRefusedWhateverTheirValue) {
  // Nothing to the left of the two tiles: "left" changes nothing.
  const std::string problem = Problem([](const std::string&) {
    return R"({"seed":)" + std::to_string(SomeGame().meta.seed) +
           R"(,"step_index":4,"max_rank":2,"move":"left","valuation_type":"search","valuation":1,)"
           R"("board":[1,0,0,0,2,0,0,0,0,0,0,0,0,0,0,0],"branch_evs":{"up":0.0,"left":3,"right":1,)"
           R"("down":1}})"
           "\n";
  });
  EXPECT_THAT(problem, HasSubstr("left is not legal"));
}

TEST(RawGames, TruncatedArchivesAndMissingFilesAreErrors) {
  const TempFolder folder;
  const RawGame game = SomeGame();
  WriteRawGame(folder.path(), game);
  const std::string steps = folder.File(RawGameName(game.meta) + ".jsonl.gz");
  const std::string bytes = ReadWhole(steps);
  WriteFileAtomically(steps, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(MessageOf([&] { ReadRawGame(MetaPath(folder, game)); }), HasSubstr("jsonl.gz"));
  std::filesystem::remove(steps);
  EXPECT_THAT(MessageOf([&] { ReadRawGame(MetaPath(folder, game)); }), HasSubstr("jsonl.gz"));
  WriteFileAtomically(steps, bytes);
  EXPECT_EQ(MessageOf([&] { ReadRawGame(MetaPath(folder, game)); }), "");
  std::filesystem::remove(MetaPath(folder, game));
  EXPECT_THAT(MessageOf([&] { FindRawGames(folder.path()); }), HasSubstr("metadata is missing"));
  std::vector<std::string> orphans;
  EXPECT_TRUE(FindRawGames(folder.path(), &orphans).empty());
  EXPECT_EQ(orphans, std::vector<std::string>{steps});
}

}  // namespace
}  // namespace kibitz::oracles
