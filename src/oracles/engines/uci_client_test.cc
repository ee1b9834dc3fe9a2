// The client against engines scripted in shell, which do everything wrong on request, and against
// the installed Stockfish.
#include "oracles/engines/uci_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/atomic_file.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "oracles/engines/uci_pool.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using chess::Move;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MessageOf;

// An engine that follows UCI, but for the shell `cases` that come first: "go*) exit 3;;".
class ScriptedEngine {
 public:
  explicit ScriptedEngine(const std::string& cases, const std::string& before = "") {
    WriteFileAtomically(path(), before + "\nwhile read -r line; do\ncase \"$line\" in\n" + cases +
                                    R"(
uci) echo 'id name Mock 1.0'; echo 'id author Nobody'
  echo 'option name MultiPV type spin default 1 min 1 max 10'
  echo 'option name Move Overhead type spin default 1 min 0 max 10'
  echo 'option name Clear type button'; echo uciok;;
isready) echo readyok;;
go*) echo 'info depth 1 score cp 20 pv e2e4'; echo 'bestmove e2e4';;
quit) exit 0;;
esac
done
)");
  }

  std::string path() const { return folder_.File("engine.sh"); }
  std::string File(const std::string& name) const { return folder_.File(name); }
  // Impatient, so that tests are quick.
  EngineSpec Spec() const {
    return {.command = {"/bin/sh", path()},
            .start_seconds = 2,
            .answer_seconds = 1,
            .silence_seconds = 0.3};
  }

 private:
  testing::TempFolder folder_;
};

bool Runs(pid_t pid) { return kill(pid, 0) == 0; }

// The message when the engine is asked for a move.
std::string AskMessage(const ScriptedEngine& script, const Limits& limits = {.nodes = 1}) {
  UciClient engine(script.Spec());
  return MessageOf([&] { engine.Ask({}, limits); });
}

TEST(UciClientTest, ShakesHandsAndAsks) {
  const ScriptedEngine script("");
  pid_t pid = 0;
  {
    UciClient engine(script.Spec());
    pid = engine.pid();
    EXPECT_EQ(engine.name(), "Mock 1.0");
    EXPECT_EQ(engine.author(), "Nobody");
    ASSERT_EQ(engine.options().size(), 3U);
    EXPECT_NE(engine.FindOption("multipv"), nullptr);
    EXPECT_EQ(engine.FindOption("Hash"), nullptr);
    const Answer answer = engine.Ask({}, {.nodes = 1});
    EXPECT_EQ(ToText(Board(), answer.move.value()), "e2e4");
    EXPECT_EQ(answer.lines.at(0).score->centipawns, 20);
    EXPECT_FALSE(answer.stopped);
    engine.NewGame();
    engine.Ping();
    EXPECT_TRUE(Runs(pid));
  }
  EXPECT_FALSE(Runs(pid));
}

TEST(UciClientTest, SaysWhatCannotBeStarted) {
  EXPECT_THAT(MessageOf([] { UciClient engine({.command = {"/no/such/engine"}}); }),
              AllOf(HasSubstr("/no/such/engine"), HasSubstr("is it installed?")));
  EXPECT_THAT(MessageOf([] { UciClient engine({.command = {"true"}, .start_seconds = 2}); }),
              HasSubstr("ended with code 0"));
  EXPECT_THAT(MessageOf([] {
                UciClient engine({.command = {"sleep", "60"}, .start_seconds = 0.2});
              }),
              HasSubstr("it hangs: uciok was awaited in vain"));
  const ScriptedEngine dies("uci) echo 'no network file' >&2; exit 3;;");
  EXPECT_THAT(
      MessageOf([&] { UciClient engine(dies.Spec()); }),
      AllOf(HasSubstr("ended with code 3"), HasSubstr("! no network file"), HasSubstr("> uci")));
  const ScriptedEngine loads("isready) ;;");
  EXPECT_THAT(MessageOf([&] {
                EngineSpec spec = loads.Spec();
                spec.start_seconds = 0.2;
                UciClient engine(spec);
              }),
              HasSubstr("readyok was awaited in vain"));
}

TEST(UciClientTest, SaysHowAnEngineFailed) {
  EXPECT_THAT(AskMessage(ScriptedEngine("go*) kill -SEGV $$;;")),
              AllOf(HasSubstr("engine Mock 1.0"), HasSubstr("signal 11"),
                    HasSubstr("bestmove was awaited"), HasSubstr("> go nodes 1")));
  EXPECT_THAT(AskMessage(ScriptedEngine("go*) exec 1>&-; sleep 60;;")),
              HasSubstr("closed its pipes but still runs"));
  EXPECT_THAT(AskMessage(ScriptedEngine("go*) echo bestmove e2e5;;")),
              HasSubstr("move e2e5 is not legal in"));
  EXPECT_THAT(AskMessage(ScriptedEngine("go*) echo bestmove;;")), HasSubstr("names no move"));
  EXPECT_THAT(AskMessage(ScriptedEngine("go*) echo 'bestmove (none)';;")),
              HasSubstr("it found no move"));
  EXPECT_THAT(AskMessage(ScriptedEngine("go*) sleep 60;;")), HasSubstr("answers isready no more"));
  // Alive, but it neither finishes nor obeys.
  EXPECT_THAT(AskMessage(ScriptedEngine("go*) ;;"), {.nodes = 1, .seconds = 0.1}),
              HasSubstr("bestmove was awaited in vain after stop"));
}

TEST(UciClientTest, HangingEnginesAndTheirChildrenAreEnded) {
  const ScriptedEngine script("go*) sleep 61 & echo \"info string $!\"; wait;;");
  pid_t engine_pid = 0;
  pid_t child_pid = 0;
  {
    UciClient engine(script.Spec());
    engine_pid = engine.pid();
    const auto on_info = [&](const Info& info) {
      child_pid = static_cast<pid_t>(ParseInt(info.text).value_or(0));
    };
    EXPECT_THAT(MessageOf([&] { engine.Ask({}, {.nodes = 1}, on_info); }), HasSubstr("hangs"));
    ASSERT_GT(child_pid, 0);
    EXPECT_TRUE(Runs(engine_pid) && Runs(child_pid));
  }
  EXPECT_FALSE(Runs(engine_pid));
  // The child is init's now, which buries it in its own time.
  for (int i = 0; i < 500 && Runs(child_pid); ++i) usleep(10000);
  EXPECT_FALSE(Runs(child_pid));
}

TEST(UciClientTest, BearsGarbageAndHugeLines) {
  const ScriptedEngine script(
      "uci) printf 'hello\\000\\377\\r\\n\\n\\n'; head -c 3000000 /dev/zero | tr '\\0' x; echo;"
      "echo 'id name G'; echo uciok;;"
      "go*) printf 'info depth 3 '; head -c 3000000 /dev/zero | tr '\\0' ' '; echo 'nodes 7';"
      "yes 'info nodes 5 string noise' | head -n 20000; echo 'rubbish'; echo 'bestmove d2d4';;");
  UciClient engine(script.Spec());
  EXPECT_EQ(engine.name(), "G");
  int infos = 0;
  const Answer answer = engine.Ask({}, {.nodes = 1}, [&](const Info&) { ++infos; });
  EXPECT_EQ(ToText(Board(), answer.move.value()), "d2d4");
  EXPECT_EQ(infos, 20001);
  EXPECT_EQ(answer.nodes, 5);
}

TEST(UciClientTest, AFloodOfOutputDoesNotKeepUsWaiting) {
  const ScriptedEngine script("go*) while :; do echo 'info string flood'; done;;");
  UciClient engine(script.Spec());
  engine.Start({}, {.infinite = true});
  const auto start = Clock::now();
  EXPECT_FALSE(engine.Wait(0.2));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
  EXPECT_THAT(MessageOf([&] { engine.Ping(); }), HasSubstr("readyok"));
}

TEST(UciClientTest, NoticesThatAnEngineDoesNotRead) {
  const ScriptedEngine script("", "echo uciok; echo readyok; sleep 60");
  UciClient engine(script.Spec());
  GameSoFar game;
  Board board;
  for (int i = 0; i < 25000; ++i) {  // More than a pipe holds.
    game.moves.push_back(ParseMove(board, i % 4 == 0   ? "g1f3"
                                          : i % 4 == 1 ? "g8f6"
                                          : i % 4 == 2 ? "f3g1"
                                                       : "f6g8")
                             .OrThrow("move"));
    board = board.After(game.moves.back());
  }
  EXPECT_THAT(MessageOf([&] { engine.Ask(game, {.nodes = 1}); }),
              HasSubstr("does not read what it is sent"));
}

TEST(UciClientTest, ChecksOptions) {
  const ScriptedEngine script(
      "setoption*) said=$line;; go*) echo \"info string $said\"; echo "
      "bestmove e2e4;;");
  UciClient engine(script.Spec());
  EXPECT_THAT(MessageOf([&] { engine.SetOption("MultPV", "2"); }),
              HasSubstr("did you mean MultiPV?"));
  EXPECT_THAT(MessageOf([&] { engine.SetOption("MultiPV", "11"); }), HasSubstr("from 1 to 10"));
  std::string said;
  const auto hear = [&](const Info& info) { said = info.text; };
  engine.SetOption("Clear", "");
  engine.Ask({}, {.nodes = 1}, hear);
  EXPECT_EQ(said, "setoption name Clear");
  engine.SetOption("move overhead", "7");
  engine.Ask({}, {.nodes = 1}, hear);
  EXPECT_EQ(said, "setoption name Move Overhead value 7");
  const pid_t before = engine.pid();
  engine.Restart();
  EXPECT_NE(engine.pid(), before);
  EXPECT_FALSE(Runs(before));
  engine.Ask({}, {.nodes = 1}, hear);
  EXPECT_EQ(said, "setoption name Move Overhead value 7");
}

TEST(UciClientTest, RestartsAfterACrash) {
  const ScriptedEngine script(
      "go*) test -e \"$0.once\" || { touch \"$0.once\"; exit 9; };"
      "echo bestmove e2e4;;");
  UciClient engine(script.Spec());
  EXPECT_THAT(MessageOf([&] { engine.Ask({}, {.nodes = 1}); }), HasSubstr("ended with code 9"));
  engine.Restart();
  EXPECT_TRUE(engine.Ask({}, {.nodes = 1}).move);
}

TEST(UciClientTest, ThinksInSteps) {
  // Silent, but alive: the pings of the client are answered.
  const ScriptedEngine script("go*) ;; stop|ponderhit) echo bestmove e2e4 ponder e7e5;;");
  UciClient engine(script.Spec());
  engine.Start({}, {.infinite = true});
  EXPECT_FALSE(engine.Wait(1.0));  // Three times as long as the silence that makes it ask.
  engine.Ping();
  EXPECT_TRUE(engine.thinking());
  engine.Stop();
  const auto answer = engine.Wait(2);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->ponder);
  EXPECT_FALSE(engine.thinking());
  engine.Start({}, {.clocks = Clocks{1000, 1000}, .ponder = true});
  engine.PonderHit();
  EXPECT_TRUE(engine.Wait(2));
  EXPECT_TRUE(engine.Ask({}, {.nodes = 1, .seconds = 0.2}).stopped);
}

TEST(UciClientTest, KeepsTheLastExactLineOfEachRank) {
  const ScriptedEngine script(
      "go*) echo 'info depth 5 multipv 1 score cp 10 nodes 50 time 7 pv e2e4 e7e5';"
      "echo 'info depth 5 multipv 2 score cp 5 pv d2d4';"
      "echo 'info depth 6 multipv 1 score cp 99 lowerbound nodes 90 pv e2e4';"
      "echo 'info depth 6 multipv 2 score cp 6 pv c2c4';"
      "echo 'info multipv 99999999 score cp 6 pv c2c4'; echo 'info currmove e2e4';"
      "echo 'bestmove e2e4';;");
  UciClient engine(script.Spec());
  const Answer answer = engine.Ask({}, {.nodes = 1});
  ASSERT_EQ(answer.lines.size(), 2U);
  EXPECT_EQ(answer.lines[0].score->centipawns, 10);
  EXPECT_EQ(answer.lines[0].pv.size(), 2U);
  EXPECT_EQ(answer.lines[1].depth, 6);
  EXPECT_EQ(answer.nodes, 90);
  EXPECT_EQ(answer.milliseconds, 7);
}

TEST(UciClientTest, ListsCandidatesByMoveWhereRanksHaveChanged) {
  const ScriptedEngine script(
      "go*) echo 'info depth 5 multipv 1 score cp 10 pv e2e4 e7e5';"
      "echo 'info depth 5 multipv 2 score cp 5 pv d2d4';"
      "echo 'info depth 5 multipv 3 score cp 1 pv c2c4';"
      "echo 'info depth 6 multipv 1 score cp 12 pv d2d4 d7d5';"
      "echo 'info depth 6 multipv 2 score cp 3 upperbound pv e2e4';"
      "echo 'info depth 6 multipv 3 score cp 2 lowerbound pv g1f3'; echo 'bestmove d2d4';;");
  UciClient engine(script.Spec());
  const Answer answer = engine.Ask({}, {.nodes = 1});
  ASSERT_EQ(answer.candidates.size(), 2U);  // g1f3 was never judged, c2c4 has lost its rank.
  EXPECT_EQ(ToText(Board(), answer.candidates[0].pv[0]), "d2d4");
  EXPECT_EQ(answer.candidates[0].score->centipawns, 12);
  EXPECT_EQ(ToText(Board(), answer.candidates[1].pv[0]), "e2e4");
  EXPECT_EQ(answer.candidates[1].score->centipawns, 10);
  EXPECT_EQ(engine.Ask({}, {.nodes = 1}).candidates.size(), 2U);
  const ScriptedEngine undecided(
      "go*) echo 'info depth 4 score cp 9 pv c2c4'; echo 'info depth 5 score cp 10 pv e2e4';"
      "echo 'info depth 6 score cp 30 lowerbound pv d2d4'; echo 'bestmove d2d4';;");
  UciClient other(undecided.Spec());
  const Answer bound = other.Ask({}, {.nodes = 1});
  ASSERT_EQ(bound.candidates.size(), 1U);
  EXPECT_EQ(ToText(Board(), bound.candidates[0].pv[0]), "e2e4");
}

TEST(UciClientTest, WritesTheLinesOfAQuestion) {
  Board board;
  GameSoFar game;
  EXPECT_EQ(PositionLine(game, chess::MoveStyle::kUci), "position startpos");
  game.start = *chess::ParseFen("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 3 9");
  game.moves = {*ParseMove(game.start, "e1g1")};
  EXPECT_EQ(PositionLine(game, chess::MoveStyle::kUci),
            "position fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 3 9 moves e1g1");
  EXPECT_THAT(PositionLine(game, chess::MoveStyle::kUciRook), HasSubstr("moves e1h1"));
  const Limits all{.nodes = 1,
                   .depth = 2,
                   .mate = 3,
                   .move_milliseconds = 4,
                   .clocks = Clocks{5, 6, 7, 8, 9},
                   .infinite = true,
                   .ponder = true,
                   .search_moves = {*ParseMove(board, "e2e4"), *ParseMove(board, "d2d4")}};
  EXPECT_EQ(GoLine(board, all, chess::MoveStyle::kUci),
            "go ponder wtime 5 btime 6 winc 7 binc 8 movestogo 9 depth 2 nodes 1 mate 3 movetime 4 "
            "infinite searchmoves e2e4 d2d4");
  EXPECT_EQ(GoLine(board, {}, chess::MoveStyle::kUci), "go");
}

TEST(UciPoolTest, RestartsWhatFailsAndAnswersEverything) {
  // Every third "go" of a process ends it.
  const ScriptedEngine script("go*) n=$((n+1)); test $n -eq 3 && exit 1; echo bestmove e2e4;;");
  UciPool pool(script.Spec(), {.engines = 2});
  ThreadPool threads(3);
  std::atomic<int> answered{0};
  threads.ParallelFor(12, [&](size_t) {
    if (pool.Ask({}, {.nodes = 1}).move) ++answered;
  });
  EXPECT_EQ(answered, 12);
  EXPECT_GE(pool.failures(), 4);
  const ScriptedEngine hopeless("go*) exit 1;;");
  UciPool bad(hopeless.Spec(), {.engines = 1, .tries = 2});
  for (int i : {1, 2}) {
    EXPECT_THAT(MessageOf([&] { bad.Ask({}, {.nodes = 1}); }), HasSubstr("ended with code 1"));
    EXPECT_EQ(bad.failures(), 2 * i);
  }
}

class StockfishTest : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = FindProgram("stockfish");
    if (program_.empty()) GTEST_SKIP() << "no Stockfish here (Debian package stockfish)";
  }
  std::string program_;
};

TEST_F(StockfishTest, AnswersWithLinesScoresAndChances) {
  UciClient engine({.command = {program_},
                    .options = {{"MultiPV", "3"}, {"UCI_ShowWDL", "true"}, {"Hash", "16"}}});
  EXPECT_THAT(engine.name(), HasSubstr("Stockfish"));
  const Board board = *chess::ParseFen("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1");
  Answer answer = engine.Ask({.start = board}, {.nodes = 20000});
  EXPECT_EQ(ToText(board, answer.move.value()), "d1d8");
  ASSERT_EQ(answer.lines.size(), 3U);
  EXPECT_EQ(answer.lines[0].score->mate, (Mate{true, 1}));
  EXPECT_EQ(answer.lines[0].score->wdl->win, 1000);
  EXPECT_GE(answer.nodes, 100);
  const Move wanted = *ParseMove(board, "g2g3");
  engine.SetOption("MultiPV", "1");
  answer = engine.Ask({.start = board}, {.depth = 6, .search_moves = {wanted}});
  EXPECT_EQ(answer.move, wanted);
  EXPECT_EQ(answer.lines[0].depth, 6);
  EXPECT_GE(engine.Ask({}, {.move_milliseconds = 60}).milliseconds, 30);
  EXPECT_TRUE(engine.Ask({}, {.clocks = Clocks{500, 500, 10, 10}}).move);
}

TEST_F(StockfishTest, StopsPondersAndSeesMates) {
  UciClient engine({.command = {program_}});
  int infos = 0;
  engine.Start({}, {.infinite = true}, [&](const Info&) { ++infos; });
  EXPECT_FALSE(engine.Wait(0.1));
  engine.Ping();
  engine.Stop();
  ASSERT_TRUE(engine.Wait(5));
  EXPECT_GT(infos, 3);
  engine.Start({}, {.clocks = Clocks{300, 300}, .ponder = true});
  EXPECT_FALSE(engine.Wait(0.1));
  engine.PonderHit();
  EXPECT_TRUE(engine.Wait(5));
  const Board mated = *chess::ParseFen("R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1");
  ASSERT_TRUE(chess::IsCheckmate(mated));
  const Answer answer = engine.Ask({.start = mated}, {.depth = 3});
  EXPECT_FALSE(answer.move);
  EXPECT_EQ(answer.lines.at(0).score->mate, (Mate{false, 0}));
}

TEST_F(StockfishTest, PlaysChess960) {
  UciClient engine({.command = {program_}, .chess960 = true});
  const Board board =
      *chess::ParseFen("1rk1r3/pppppppp/8/8/8/8/PPPPPPPP/1RK1R3 w KQkq - 0 1", {.chess960 = true});
  Move castle;
  for (Move move : chess::LegalMoves(board)) {
    if (move.kind() == Move::Kind::kCastle) castle = move;
  }
  const Answer answer = engine.Ask({.start = board}, {.depth = 3, .search_moves = {castle}});
  EXPECT_EQ(answer.move, castle);
}

}  // namespace
}  // namespace kibitz::oracles
