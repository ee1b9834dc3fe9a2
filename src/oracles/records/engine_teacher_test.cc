// Lessons from an engine scripted in shell, to see what is made of its lines, and from Stockfish.
#include "oracles/records/engine_teacher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "oracles/engines/line_process.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using ::testing::HasSubstr;
using testing::MessageOf;

class Script {
 public:
  explicit Script(const std::string& answer) {
    WriteFileAtomically(path(), R"(while read -r line; do case "$line" in
uci) echo 'option name MultiPV type spin default 1 min 1 max 10'; echo uciok;;
isready) echo readyok;;
go*) )" + answer + R"(;;
quit) exit 0;;
esac; done)");
  }
  std::string path() const { return folder_.File("engine.sh"); }
  EngineTeacherOptions Options() const {
    return {.command = {"/bin/sh", path()}, .limits = {.nodes = 1}, .lines = 2};
  }

 private:
  testing::TempFolder folder_;
};

TEST(WdlModelTest, ChancesFollowFromCentipawns) {
  const auto at = [](int centipawns) {
    MoverScore score;
    score.centipawns = centipawns;
    return WdlOf(score, {});
  };
  EXPECT_NEAR(at(100).win, 0.5, 1e-9);
  EXPECT_NEAR(at(-100).loss, 0.5, 1e-9);
  EXPECT_NEAR(at(0).draw, 0.992, 0.001);
  for (int centipawns : {-5000, -130, 0, 7, 99, 100000}) {
    const Wdl wdl = at(centipawns);
    EXPECT_NEAR(wdl.win + wdl.draw + wdl.loss, 1, 1e-12);
    EXPECT_GE(wdl.draw, 0);
    EXPECT_EQ(wdl.Reversed().win, at(-centipawns).win);
  }
  MoverScore mate;
  mate.mate = Mate{false, 3};
  EXPECT_EQ(WdlOf(mate, {}), (Wdl{0, 0, 1}));
  EXPECT_LT(AsCentipawns(mate), -30000);
  mate.wdl = WdlPermille{10, 20, 971};  // Rounded by the engine; what it says comes first.
  EXPECT_NEAR(WdlOf(mate, {}).loss, 971 / 1001.0, 1e-12);
}

TEST(EngineTeacherTest, SaysWhereChancesComeFrom) {
  const testing::TempFolder folder;
  const std::string path = folder.File("engine.sh");
  WriteFileAtomically(path, R"(while read -r line; do case "$line" in
uci) echo 'option name UCI_ShowWDL type check default false'; echo uciok;;
isready) echo readyok;;
quit) exit 0;;
esac; done)");
  EngineTeacherOptions options{.command = {"/bin/sh", path}, .limits = {.nodes = 1}};
  EXPECT_EQ(EngineTeacher(options).OptionsJson()["wdl"], "UCI_ShowWDL");
  options.options = {{"uci_showwdl", "false"}};
  EXPECT_EQ(EngineTeacher(options).OptionsJson()["wdl"]["spread_centipawns"], 18);
}

TEST(EngineTeacherTest, MakesLessonsOfLines) {
  const Script script(
      "echo 'info depth 9 multipv 1 score cp 50 nodes 800 pv e2e4 e7e5 g1f3';"
      "echo 'info depth 9 multipv 2 score cp 0 nodes 800 pv d2d4 d7d5'; echo 'bestmove e2e4'");
  EngineTeacher teacher(script.Options());
  const auto lessons = teacher.Teach(std::vector<GameSoFar>(3));
  ASSERT_EQ(lessons.size(), 3U);
  const Lesson& lesson = lessons[2].value();
  EXPECT_EQ(ToText(Board(), lesson.best), "e2e4");
  EXPECT_EQ(lesson.depth, 9);
  EXPECT_EQ(lesson.nodes, 800);
  ASSERT_EQ(lesson.variations.size(), 2U);
  const Variation& first = lesson.variations[0];
  const double expected = 1 / (1 + std::exp(-1.0));  // 50 centipawns apart, temperature 50.
  EXPECT_NEAR(first.fraction, expected, 1e-12);
  EXPECT_EQ(first.visits, std::llround(800 * expected));
  EXPECT_EQ(first.prior, 0.5);
  ASSERT_EQ(first.nodes.size(), 3U);
  EXPECT_EQ(first.nodes[1].visits, first.visits / 2);
  EXPECT_EQ(first.nodes[0].wdl, lesson.wdl.Reversed());
  EXPECT_EQ(first.nodes[1].wdl, lesson.wdl);
  EXPECT_EQ(teacher.failures(), 0);
  EXPECT_EQ(teacher.OptionsJson()["wdl"]["even_centipawns"], 100);
}

// The script counts its searches since ucinewgame and tells the count as the depth.
TEST(EngineTeacherTest, ForgetsAfterSoManySearches) {
  const testing::TempFolder folder;
  const std::string path = folder.File("engine.sh");
  WriteFileAtomically(path, R"(n=0; while read -r line; do case "$line" in
uci) echo uciok;;
isready) echo readyok;;
ucinewgame) n=0;;
go*) n=$((n + 1)); echo "info depth $n multipv 1 score cp 5 nodes 8 pv e2e4"; echo 'bestmove e2e4';;
quit) exit 0;;
esac; done)");
  const auto depths = [&](int new_game_every, int engines) {
    EngineTeacher teacher({.command = {"/bin/sh", path},
                           .limits = {.nodes = 1},
                           .engines = engines,
                           .new_game_every = new_game_every});
    std::vector<int> found;
    for (const auto& lesson : teacher.Teach(std::vector<GameSoFar>(7))) {
      found.push_back(lesson.value().depth);
    }
    return found;
  };
  for (int engines : {1, 3}) {
    EXPECT_THAT(depths(1, engines), ::testing::ElementsAre(1, 1, 1, 1, 1, 1, 1));
    EXPECT_THAT(depths(3, engines), ::testing::ElementsAre(1, 2, 3, 1, 2, 3, 1));
  }
}

TEST(EngineTeacherTest, AnEngineThatJudgesNothingHasFailed) {
  const Script script("echo 'bestmove e2e4'");
  EngineTeacher teacher(script.Options());
  EXPECT_THAT(MessageOf([&] { teacher.Teach(std::vector<GameSoFar>(1)); }),
              HasSubstr("no line with an exact score"));
  EXPECT_EQ(teacher.failures(), 3);
}

class StockfishTeacherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = FindProgram("stockfish");
    if (program_.empty()) GTEST_SKIP() << "no Stockfish here (Debian package stockfish)";
  }
  std::string program_;
};

TEST_F(StockfishTeacherTest, SeesMatesEndsAndNothingWhereTheGameIsOver) {
  EngineTeacher teacher(
      {.command = {program_}, .limits = {.nodes = 2000}, .lines = 3, .engines = 2});
  const Board board = *chess::ParseFen("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1");
  const Board mated = *chess::ParseFen("3R2k1/5ppp/8/8/8/8/5PPP/6K1 b - - 1 1");
  const auto lessons = teacher.Teach(std::vector<GameSoFar>{{.start = board}, {.start = mated}});
  const Lesson& lesson = lessons[0].value();
  EXPECT_EQ(ToText(board, lesson.best), "d1d8");
  EXPECT_EQ(lesson.wdl, (Wdl{1, 0, 0}));
  EXPECT_EQ(lesson.variations.at(0).nodes.size(), 1U);
  EXPECT_EQ(lesson.variations.at(0).nodes[0].wdl, (Wdl{0, 0, 1}));
  EXPECT_EQ(lesson.variations.size(), 3U);
  EXPECT_FALSE(lessons[1]);
}

TEST_F(StockfishTeacherTest, AsksAboutNodes) {
  EngineTeacherOptions options{.command = {program_}, .limits = {.depth = 6}, .lines = 2};
  EngineTeacher plain(options);
  options.node_evals = 200;
  EngineTeacher asking(options);
  const std::vector<GameSoFar> games(1);
  const Lesson before = plain.Teach(games)[0].value();
  const Lesson after = asking.Teach(games)[0].value();
  EXPECT_EQ(before.best, after.best);
  EXPECT_EQ(before.variations[0].nodes[0].wdl, before.wdl.Reversed());
  EXPECT_NE(after.variations[0].nodes[0].wdl, before.variations[0].nodes[0].wdl);
  EXPECT_NE(asking.OptionsJson(), plain.OptionsJson());
}

}  // namespace
}  // namespace kibitz::oracles
