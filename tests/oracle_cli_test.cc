// The oracle commands as their users run them: a thousand rows of each kind with the installed
// Stockfish, read back by who learns from them; kills, broken engines, odd inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/random.h"
#include "io/tables/jsonl.h"
#include "io/tables/parquet.h"
#include "oracles/engines/line_process.h"
#include "students/decoder/data/source.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;
using io::ColumnType;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Ran;
using testing::TempFolder;

std::vector<std::string> Words(std::vector<std::string> words) {
  words.insert(words.begin(), {testing::ProgramPath("kibitz"), "oracle"});
  return words;
}

Ran Oracle(const std::vector<std::string>& words) { return testing::RunCommand(Words(words)); }

json Answer(std::vector<std::string> words) {
  words.insert(words.end(), {"--json", "--quiet"});
  const Ran ran = Oracle(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? json::parse(ran.out) : json();
}

// Every cell of a file as text, a row a line.
std::string RowsIn(const std::string& path) {
  const io::ParquetReader reader({path});
  std::vector<io::ColumnSpec> columns;
  for (const io::FileColumn& column : reader.Info(0).columns) {
    columns.push_back({column.name, ColumnType::kText});
  }
  std::string all;
  io::ParquetScan scan = reader.Scan(columns);
  while (const io::Chunk* chunk = scan.Next()) {
    for (size_t row = 0; row < chunk->rows; ++row) {
      for (const io::Column& column : chunk->columns) all += std::string(column.texts[row]) + "\t";
      all += "\n";
    }
  }
  return all;
}

// All that a source holds makes sequences, and nothing in it is complained about.
void ExpectUsable(const decoder::Source& source) {
  Rng rng({.seed = 1});
  for (size_t unit = 0; unit < source.unit_sizes().size(); ++unit) {
    const auto loaded = source.Load(unit);
    for (uint64_t i = 0; i < source.unit_sizes()[unit]; ++i) {
      ASSERT_TRUE(loaded->Usable(i));
      EXPECT_GT(loaded->Make(i, rng).ids.size(), 68U);
    }
  }
  EXPECT_TRUE(source.skipped().empty()) << source.skipped().Text();
}

class OracleCliTest : public ::testing::Test {
 protected:
  void SetUp() override {
    stockfish_ = oracles::FindProgram("stockfish");
    if (stockfish_.empty()) GTEST_SKIP() << "no Stockfish here (Debian package stockfish)";
  }
  std::string File(const std::string& name) const { return folder_.File(name); }
  // Starts the command and kills it as soon as its first part is there.
  void KillAtFirstPart(const std::vector<std::string>& words, const std::string& out) const;
  // An engine that does `fault` at its first go, and is Stockfish from then on.
  std::string FaultyEngine(const std::string& fault) const;

  std::string stockfish_;
  TempFolder folder_;
};

void OracleCliTest::KillAtFirstPart(const std::vector<std::string>& words,
                                    const std::string& out) const {
  std::vector<std::string> all = Words(words);
  all.emplace_back("--quiet");
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  const std::string part = out + ".parts/part-00000000.jsonl.zst";
  for (int i = 0; i < 6000 && !fs::exists(part); ++i) usleep(10000);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it was over before it could be killed";
  ASSERT_TRUE(fs::exists(part));
  ASSERT_FALSE(fs::exists(out));
}

std::string OracleCliTest::FaultyEngine(const std::string& fault) const {
  const std::string path = File("engine.sh");
  fs::remove(path + ".failed");
  WriteFileAtomically(path, "test -e \"$0.failed\" && exec " + stockfish_ +
                                R"(
while read -r line; do case "$line" in
uci) echo 'option name MultiPV type spin default 1 min 1 max 10'
  echo 'option name Hash type spin default 1 min 1 max 10'
  echo 'option name Threads type spin default 1 min 1 max 10'
  echo 'option name UCI_ShowWDL type check default false'; echo uciok;;
isready) echo readyok;;
go*) touch "$0.failed"; )" + fault +
                                R"(;;
quit) exit 0;;
esac; done)");
  return "/bin/sh " + path;
}

TEST_F(OracleCliTest, GamesMakeAThousandRows) {
  const std::string openings = testing::DataFile("openings", ".epd");
  std::vector<std::string> words = {
      "games",           "--games",     "16", "--nodes",        "120", "--multipv", "3", "--out",
      File("g.parquet"), "--max-plies", "75", "--random-plies", "2"};
  if (testing::Exists(openings)) words.insert(words.end(), {"--openings", openings});
  const json report = Answer(words);
  EXPECT_GE(report["rows"], 1000) << report;
  EXPECT_EQ(report["games"].get<int>() + report["duplicates"].get<int>(), 16);
  EXPECT_EQ(report["engine_failures"], 0);
  EXPECT_GT(report["positions_per_second"], 0);
  ExpectUsable(*decoder::OpenGames({File("g.parquet")}, {}));
  const io::ParquetReader reader({File("g.parquet")});
  EXPECT_EQ(reader.CountRows(), report["rows"]);
  const json settings = json::parse(reader.Info(0).metadata.at("kibitz"));
  EXPECT_EQ(settings["teacher"]["nodes"], 120);
  EXPECT_FALSE(fs::exists(File("g.parquet.parts")));
  EXPECT_EQ(Answer(words)["kept"], true);
  words[4] = "121";
  EXPECT_THAT(Oracle(words).err, AllOf(HasSubstr("other options"), HasSubstr("/teacher/nodes")));
}

TEST_F(OracleCliTest, TwoEnginesTakeTurnsAndAdjudicate) {
  const json report = Answer({"games", "--games", "4", "--nodes", "100", "--engine2", stockfish_,
                              "--engine2-nodes", "1000", "--multipv", "2", "--out",
                              File("g.parquet"), "--max-plies", "60", "--resign-win", "0.9"});
  EXPECT_GT(report["rows"], 20);
  ExpectUsable(*decoder::OpenGames({File("g.parquet")}, {}));
  EXPECT_EQ(Oracle({"games", "--engine2-nodes", "5", "--out", File("x.parquet")}).code, 2);
}

TEST_F(OracleCliTest, GamesSurviveAKillAndDoNotDependOnEngines) {
  const auto words = [&](const std::string& out, const std::string& engines) {
    return std::vector<std::string>{"games",       "--games", "8",         "--nodes",      "100",
                                    "--multipv",   "2",       "--engines", engines,        "--out",
                                    File(out),     "--seed",  "5",         "--part-games", "1",
                                    "--max-plies", "30"};
  };
  Answer(words("whole.parquet", "2"));
  // One engine plays four games at a time: after the first part there are others to play.
  KillAtFirstPart(words("killed.parquet", "1"), File("killed.parquet"));
  const json report = Answer(words("killed.parquet", "1"));
  EXPECT_GE(report["parts_kept"], 1);
  EXPECT_LT(report["asked"], report["rows"]);
  EXPECT_EQ(RowsIn(File("killed.parquet")), RowsIn(File("whole.parquet")));
}

TEST_F(OracleCliTest, VariationsMakeAThousandRows) {
  const std::string games = testing::DataFile("games", ".pgn");
  SKIP_WITHOUT(games);
  const std::vector<std::string> words = {
      "variations", games,       "--per-game", "4",     "--limit",         "1000",       "--nodes",
      "120",        "--multipv", "3",          "--out", File("v.parquet"), "--from-ply", "4"};
  KillAtFirstPart(words, File("v.parquet"));
  const json report = Answer(words);
  EXPECT_EQ(report["rows"], 1000) << report;
  EXPECT_LT(report["asked"], 1000);
  ExpectUsable(*decoder::OpenSearches({File("v.parquet")}, {}));
  const io::ParquetReader reader({File("v.parquet")});
  io::ParquetScan scan = reader.Scan({{"fen", ColumnType::kText}});
  std::set<std::string> fens;
  while (const io::Chunk* chunk = scan.Next()) {
    for (std::string_view fen : chunk->columns[0].texts) fens.emplace(fen);
  }
  EXPECT_EQ(fens.size(), 1000U);
}

TEST_F(OracleCliTest, VariationsTakeTheGamesOfTheGenerator) {
  Answer({"games", "--games", "2", "--nodes", "100", "--multipv", "2", "--out", File("g.parquet"),
          "--max-plies", "20"});
  const auto words = [&](const std::string& out, const std::string& engines) {
    return std::vector<std::string>{
        "variations", File("g.parquet"), "--per-game", "5",     "--nodes",      "500",
        "--out",      File(out),         "--engines",  engines, "--node-evals", "50"};
  };
  EXPECT_EQ(Answer(words("a.parquet", "1"))["rows"], 10);
  EXPECT_EQ(Answer(words("b.parquet", "2"))["rows"], 10);
  EXPECT_EQ(RowsIn(File("a.parquet")), RowsIn(File("b.parquet")));
}

TEST_F(OracleCliTest, EvalsMakeAThousandRowsInBothLayouts) {
  const std::string openings = testing::DataFile("openings", ".epd");
  SKIP_WITHOUT(openings);
  const auto words = [&](const std::string& out) {
    return std::vector<std::string>{
        "evals", openings,  "--limit",    "260",
        "--out", File(out), "--sessions", "nodes=80;nodes=200,multipv=3"};
  };
  KillAtFirstPart(
      [&] {
        auto few = words("e.parquet");
        few.insert(few.end(), {"--part-positions", "64"});
        return few;
      }(),
      File("e.parquet"));
  auto rest = words("e.parquet");
  rest.insert(rest.end(), {"--part-positions", "64"});
  const json table = Answer(rest);
  EXPECT_EQ(table["positions"], 260);
  EXPECT_GE(table["rows"], 1000) << table;
  EXPECT_EQ(Answer(words("e.jsonl.zst"))["rows"], table["rows"]);

  std::string flat;
  io::JsonLines lines(File("e.jsonl.zst"));
  while (const io::JsonLine* line = lines.Next()) {
    const json unit = json::parse(line->text());
    for (const json& eval : unit["evals"]) {
      for (const json& pv : eval["pvs"]) {
        const auto text = [&pv](const char* key) { return pv.contains(key) ? pv[key].dump() : ""; };
        for (const std::string& cell :
             {unit["fen"].get<std::string>(), pv["line"].get<std::string>(), eval["depth"].dump(),
              eval["knodes"].dump(), text("cp"), text("mate")}) {
          flat += cell + "\t";
        }
        flat += "\n";
      }
    }
  }
  EXPECT_EQ(flat, RowsIn(File("e.parquet")));

  // The policy makes the same data set of either, with nothing left out.
  for (const std::string& name : {std::string("e.parquet"), std::string("e.jsonl.zst")}) {
    const Ran ran =
        testing::RunCommand({testing::ProgramPath("kibitz"), "policy", "precompute", File(name),
                             "--out", File(name + ".set"), "--json", "--quiet"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const json made = json::parse(ran.out);
    EXPECT_EQ(made["rows"], table["rows"]);
    EXPECT_EQ(made["positions"], 260);
  }
}

TEST_F(OracleCliTest, EnginesThatFailAreStartedAnewAndReported) {
  const auto words = [&](const std::string& engine, const std::string& out,
                         const std::string& timeout) {
    return std::vector<std::string>{"games", "--games",   "1",       "--nodes",
                                    "100",   "--out",     File(out), "--max-plies",
                                    "12",    "--engine",  engine,    "--engine-timeout",
                                    timeout, "--engines", "1"};
  };
  Answer(words(stockfish_, "plain.parquet", "30"));
  const std::string rows = RowsIn(File("plain.parquet"));
  int number = 0;
  for (const std::string fault :
       {"exit 3", "sleep 600", "echo rubbish; echo 'bestmove xyzzy'", "echo 'bestmove e2e4'"}) {
    const std::string out = std::to_string(number++) + ".parquet";
    const bool hangs = fault.starts_with("sleep");
    const Ran ran = Oracle(words(FaultyEngine(fault), out, hangs ? "2" : "30"));
    EXPECT_EQ(ran.code, 0) << fault << ran.err;
    // On a busy machine the good engine may be silent for two seconds too.
    const std::string told = "engines that failed and were restarted: ";
    EXPECT_THAT(ran.out, HasSubstr(hangs ? told : told + "1\n")) << fault;
    EXPECT_THAT(ran.err, HasSubstr("restarting it")) << fault;
    EXPECT_EQ(RowsIn(File(out)), rows) << fault;
  }
}

TEST_F(OracleCliTest, WrongUseIsTold) {
  const Ran missing = Oracle({"games", "--engine", "no-such-engine", "--out", File("g.parquet")});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("no-such-engine"), HasSubstr("apt install stockfish")));
  const Ran path = Oracle({"games", "--engine", File("none"), "--out", File("g.parquet")});
  EXPECT_THAT(path.err, AllOf(HasSubstr(File("none")), HasSubstr("apt install stockfish")));
  const Ran ending = Oracle({"games", "--out", File("g.csv")});
  EXPECT_EQ(ending.code, 2);
  EXPECT_THAT(ending.err, HasSubstr(".parquet"));
  WriteFileAtomically(File("a.fen"), "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n");
  const Ran sessions =
      Oracle({"evals", File("a.fen"), "--sessions", "node=5", "--out", File("e.parquet")});
  EXPECT_EQ(sessions.code, 2);
  EXPECT_THAT(sessions.err, HasSubstr("node=5"));
  WriteFileAtomically(File("b.fen"), "1rk1r3/8/8/8/8/8/8/1RK1R3 w KQkq - 0 1\n");
  const Ran chess960 = Oracle({"evals", File("b.fen"), "--out", File("e.parquet")});
  EXPECT_EQ(chess960.code, 1);
  EXPECT_THAT(chess960.err, HasSubstr("Chess960"));
}

TEST_F(OracleCliTest, PgnIsJudgedByTheEngine) {
  const std::string games = testing::DataFile("games", ".pgn");
  SKIP_WITHOUT(games);
  const json report = Answer({"pgn", games, "--limit", "6", "--engine", stockfish_, "--nodes",
                              "100", "--out", File("p.parquet")});
  EXPECT_EQ(report["games"], 6);
  EXPECT_EQ(report["rows"], report["asked"]);
  ExpectUsable(*decoder::OpenGames({File("p.parquet")}, {}));
}

// As Lichess annotates: evaluations after each move, and what was better than a mistake.
constexpr const char* kAnnotated = R"([Event "x"]
[Result "0-1"]

1. e4 { [%eval 0.36] } e5 { [%eval 0.4] } 2. Nf3 { [%eval 0.3] } f6? { [%eval 1.5] } (2... Nc6 3. Bb5)
3. Bc4?! { [%eval 0.9] } g5 { [%eval 2.0] } 4. h3 { [%eval #3] } *
)";

TEST(OraclePgnTest, EvaluationsInCommentsNeedNoEngine) {
  const TempFolder folder;
  WriteFileAtomically(folder.File("a.pgn"), std::string(kAnnotated) + "\n" + kAnnotated);
  const json report = Answer({"pgn", folder.File("a.pgn"), "--out", folder.File("a.parquet")});
  EXPECT_EQ(report["games"], 1);
  EXPECT_EQ(report["duplicates"], 1);
  EXPECT_EQ(report["asked"], 0);
  const io::ParquetReader reader({folder.File("a.parquet")});
  io::ParquetScan scan = reader.Scan({{"ply", ColumnType::kInt64},
                                      {"played_move", ColumnType::kText},
                                      {"best_move", ColumnType::kText},
                                      {"win", ColumnType::kDouble},
                                      {"loss", ColumnType::kDouble},
                                      {"played_q", ColumnType::kDouble}});
  const io::Chunk* chunk = scan.Next();
  ASSERT_NE(chunk, nullptr);
  // Ply 0 has no evaluation before it; 3. Bc4 lost much and nothing better is named, as 3... g5.
  ASSERT_EQ(chunk->rows, 4U);
  const auto& columns = chunk->columns;
  EXPECT_THAT(columns[0].ints, ::testing::ElementsAre(1, 2, 3, 6));
  EXPECT_THAT(columns[2].texts, ::testing::ElementsAre("e7e5", "g1f3", "b8c6", "h2h3"));
  EXPECT_EQ(columns[1].texts[2], "f7f6");
  EXPECT_NEAR(columns[4].doubles[0], 0.0278, 1e-3);  // Black, at 0.36 for White.
  EXPECT_NEAR(columns[3].doubles[3], 0.996, 1e-3);   // White, at 2.00.
  EXPECT_NEAR(columns[5].doubles[2], -0.941, 1e-3);  // Black after f6, at 1.50 for White.
  EXPECT_EQ(columns[5].doubles[3], 1.0);             // A mate is sure.
  ExpectUsable(*decoder::OpenGames({folder.File("a.parquet")}, {}));
}

TEST(OraclePgnTest, Chess960IsRefusedWithTheReason) {
  const TempFolder folder;
  WriteFileAtomically(
      folder.File("a.pgn"),
      "[Variant \"Chess960\"]\n[FEN \"nrkbrqbn/pppppppp/8/8/8/8/PPPPPPPP/NRKBRQBN w KQkq - 0 1\"]\n"
      "\n1. e4 *\n");
  const Ran ran = Oracle({"pgn", folder.File("a.pgn"), "--out", folder.File("a.parquet")});
  EXPECT_THAT(ran.err + ran.out, HasSubstr("Chess960"));
}

}  // namespace
}  // namespace kibitz
