// The engine as chess programs meet it: the real program with a real network, through pipes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "oracles/engines/line_process.h"
#include "oracles/engines/uci_client.h"
#include "tests/support/corruption.h"
#include "tests/support/lc0_file.h"
#include "tests/support/test_data.h"
#include "tests/support/uci_lines.h"
#include "uci/command.h"

namespace kibitz {
namespace {

using chess::Board;
using oracles::LineProcess;
using oracles::SecondsFromNow;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;

const std::string kProgram = testing::ProgramPath("kibitz");

std::string Model() { return testing::GoldenPath("decoder/tiny.pt"); }

std::vector<std::string> CommandLine() { return {kProgram, "uci", "--model", Model()}; }

class Talk {
 public:
  explicit Talk(std::vector<std::string> command = CommandLine())
      : process_({.command = std::move(command)}) {}

  void Say(std::string_view line) { process_.Send(line, SecondsFromNow(20)); }
  // The next line that starts so; "" when none comes in time. Those before it are passed over.
  std::string Await(std::string_view start, double seconds = 20) {
    const auto deadline = SecondsFromNow(seconds);
    while (auto line = process_.Read(deadline)) {
      if (line->starts_with(start)) return *line;
    }
    return "";
  }
  LineProcess& process() { return process_; }

 private:
  LineProcess process_;
};

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// "> line" is said, "< start" awaited, "! start" must not come for a while.
void Follow(const std::string& script) {
  Talk talk;
  for (std::string_view line : Split(script, '\n')) {
    line = Trim(line);
    if (line.empty()) continue;
    const std::string_view text = Trim(line.substr(1));
    if (line.front() == '>') {
      talk.Say(text);
    } else if (line.front() == '<') {
      ASSERT_NE(talk.Await(text), "")
          << "no '" << text << "' in" << script << talk.process().LastLines();
    } else {
      ASSERT_EQ(talk.Await(text, 0.15), "") << script;
    }
  }
}

TEST(UciTest, Conversations) {
  const char* const scripts[] = {
      R"(
      > uci
      < id name Kibitz
      < id author
      < option name Model type string default decoder:/
      < option name MultiPV type spin default 1 min 1
      < option name UCI_ShowWDL type check default false
      < option name Ponder type check
      < option name Hash type spin
      < option name Mode type combo default think var think var instinct
      < option name Temperature type string default 0
      < option name MaxVariations type spin
      < option name MaxDepth type spin
      < option name Precision type combo default f32 var f32 var int8
      < option name Threads type spin
      < uciok
      > isready
      < readyok)",
      // A game's beginning, as programs play it.
      R"(
      > ucinewgame
      > isready
      < readyok
      > position startpos
      > go wtime 60000 btime 60000 winc 1000 binc 1000
      < info depth
      < bestmove
      > position startpos moves e2e4 e7e5
      > go wtime 60000 btime 60000 movestogo 40
      < bestmove
      > position fen rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2 moves g1f3 b8c6
      > go movetime 100
      < bestmove)",
      // Without isready: the network is loaded by go.
      R"(
      > go nodes 3
      < bestmove
      > go depth 1
      < info depth 1 seldepth 1
      < bestmove
      > go searchmoves a2a4
      < bestmove a2a4
      > go mate 2
      < bestmove
      > go depth 1 nodes 1 movetime 1
      < bestmove)",
      R"(
      > go infinite
      < info depth
      ! bestmove
      > isready
      < readyok
      > stop
      < bestmove
      > stop
      ! bestmove)",
      R"(
      > go ponder wtime 1000 btime 1000
      ! bestmove
      > ponderhit
      < bestmove
      > go ponder
      ! bestmove
      > stop
      < bestmove)",
      // A second go: both are answered.
      R"(
      > go infinite
      > go infinite
      < bestmove
      ! bestmove
      > stop
      < bestmove
      ! bestmove)",
      R"(
      > setoption name Mode value instinct
      > setoption name MultiPV value 3
      > setoption name UCI_ShowWDL value true
      > go
      < info depth 1 seldepth 1 multipv 1 score cp
      < info depth 1 seldepth 1 multipv 2 score cp
      < info depth 1 seldepth 1 multipv 3 score cp
      < bestmove)",
      R"(
      > setoption name Precision value int8
      > setoption name Threads value 1
      > setoption name Temperature value 1.0
      > setoption name MaxVariations value 2
      > setoption name MaxDepth value 1
      > isready
      < readyok
      > go
      < info depth 1
      < bestmove)",
      // What is wrong is told. A position that is refused is not played.
      R"(
      > position startpos moves e2e5
      < info string position: move 1: move e2e5 is not legal
      > go
      < bestmove 0000
      > position fen 8/8/8/8/8/8/8/8 w - - 0 1
      < info string position:
      > position startpos moves e2e4
      > setoption name UCI_Chess960 value true
      < info string setoption: there is no option 'UCI_Chess960'
      > setoption name MultiPV value 0
      < info string setoption MultiPV: expected a whole number from 1 to 500
      > setoption name Mlodel value x
      < info string setoption: there is no option 'Mlodel'; did you mean Model?
      > xyzzy
      < info string unknown command 'xyzzy'
      > d
      < fen rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1
      > go depth x
      < info string go: depth 'x' is no whole number
      < bestmove)",
      R"(
      > joho debug on
      > register later
      > go depth 1
      < bestmove
      > debug off
      > help
      < This is a chess engine)",
      // Mate and stalemate.
      R"(
      > position fen R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1
      > go movetime 50
      < info depth 0 score mate 0
      < bestmove 0000
      > position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1
      > go
      < info depth 0 score cp 0
      < bestmove 0000)",
      // Another network, and none.
      R"(
      > setoption name Model value /no/such/model.pt
      < info string setoption Model: /no/such/model.pt
      > isready
      < info string /no/such/model.pt: there is no such file
      < readyok
      > go
      < info string /no/such/model.pt: there is no such file
      < bestmove 0000
      > setoption name Model value negamax?depth=1
      > go
      < info depth 1
      < bestmove
      > setoption name Model value
      > go
      < info string nobody plays
      < bestmove 0000)",
      R"(
      > go perft 2
      < e2e4: 20
      < Nodes searched: 400)",
  };
  for (const char* script : scripts) {
    Follow(script);
    if (HasFatalFailure()) return;
  }
}

TEST(UciTest, TheModelMayBeAnOption) {
  Talk talk({kProgram, "uci"});
  talk.Say("setoption name Model value " + Model());
  talk.Say("isready");
  EXPECT_EQ(talk.Await(""), "readyok");
  talk.Say("go depth 1");
  EXPECT_NE(talk.Await("info depth 1"), "");
}

TEST(UciTest, ThePlayerIsAWordOrAFlagButOnlyOne) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"random"}, {"--player", "random"}, {"--model", "random"}}) {
    std::vector<std::string> command = {kProgram, "uci"};
    command.insert(command.end(), words.begin(), words.end());
    const auto ran = testing::RunCommand(command, "uci\n");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("option name Player type string default random"));
  }
  const auto two = testing::RunCommand({kProgram, "uci", "random", "--model", "negamax"}, "");
  EXPECT_EQ(two.code, 2);
  EXPECT_THAT(two.err, HasSubstr("found two players"));
}

// A mistyped path must not spoil a match unseen.
TEST(UciTest, AFileThatIsNoModelEndsTheProgram) {
  for (const std::string& model :
       {testing::GoldenPath("decoder/vocab.txt"), std::string("no-such-model")}) {
    const auto ran = testing::RunCommand({kProgram, "uci", "--model", model}, "uci\nisready\ngo\n");
    EXPECT_EQ(ran.code, 1) << model;
    EXPECT_THAT(ran.err, HasSubstr(model));
    EXPECT_THAT(ran.out, ::testing::Not(HasSubstr("bestmove")));
  }
}

// --- Every kind of player ---

// The kinds, by names that stand here: the lc0 network is made of random weights.
std::vector<std::string> PlayersOfEveryKind(const testing::TempFolder& folder) {
  const std::string lc0 = folder.File("small.pb");
  testing::WriteLc0File(lc0);
  const std::string policy = testing::SourcePath("models/policy-small");
  std::vector<std::string> players = {"decoder:" + Model(),
                                      "decoder:" + Model() + "?think=0",
                                      policy,
                                      lc0,
                                      "search:" + lc0,
                                      "search:" + policy + "?nodes=40",
                                      "search:" + Model() + "?nodes=40",
                                      "negamax?depth=2",
                                      "random"};
  const std::string stockfish = oracles::FindProgram("stockfish");
  if (!stockfish.empty()) players.push_back("engine:" + stockfish + "?elo=1350");
  return players;
}

// What fastchess's compliance check asks of an engine, step by step: "> line" is said; "< start"
// awaited; "score" wants a score, whole numbers and the move played in the last info line.
constexpr const char* kComplianceSteps[] = {
    "> uci",
    "< id name",
    "< id author",
    "< uciok",
    "> isready",
    "< readyok",
    "> ucinewgame",
    "> isready",
    "< readyok",
    "> position startpos",
    "> isready",
    "< readyok",
    "> position fen 3r2k1/p5n1/1pq1p2p/2p3p1/2P1P1n1/1P1P2pP/PN1Q2K1/5R2 w - - 0 27",
    "> isready",
    "< readyok",
    "> go wtime 100",
    "< bestmove",
    "score",
    "> position fen rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1",
    "> go btime 100",
    "< bestmove",
    "score",
    "> go wtime 100 winc 100 btime 100 binc 100",
    "< bestmove",
    "score",
    "> go btime 100 binc 100 wtime 100 winc 100",
    "< bestmove",
    "score",
    "> ucinewgame",
    "> isready",
    "< readyok",
    "> position startpos",
    "> go wtime 100 btime 100",
    "< bestmove",
    "score",
    "> position startpos moves e2e4 e7e5",
    "> go wtime 100 btime 100",
    "< bestmove",
    "score",
    "> quit",
};

void ExpectScore(const std::string& info, const std::string& best) {
  const std::vector<std::string_view> words = SplitWords(info);
  const auto after = [&](std::string_view key) {
    const auto at = std::ranges::find(words, key);
    return at == words.end() || at + 1 == words.end() ? std::string_view() : *(at + 1);
  };
  EXPECT_TRUE(after("score") == "cp" || after("score") == "mate") << info;
  for (const char* key : {"time", "nps", "nodes"}) EXPECT_TRUE(ParseInt(after(key))) << info;
  EXPECT_EQ(after("pv"), SplitWords(best).at(1)) << info;
}

TEST(UciTest, EveryKindOfPlayerPassesTheComplianceSteps) {
  const testing::TempFolder folder;
  for (const std::string& player : PlayersOfEveryKind(folder)) {
    SCOPED_TRACE(player);
    LineProcess engine({.command = {kProgram, "uci", player}});
    std::string info;
    std::string best;
    int scores = 0;
    for (const std::string_view step : kComplianceSteps) {
      if (step == "score") {
        ExpectScore(info, best);
        ++scores;
        info.clear();
      } else if (step.front() == '>') {
        engine.Send(step.substr(2), SecondsFromNow(20));
      } else {
        auto line = engine.Read(SecondsFromNow(20));
        for (; line && !line->starts_with(step.substr(2)); line = engine.Read(SecondsFromNow(20))) {
          if (line->starts_with("info") && !line->starts_with("info string")) info = *line;
        }
        ASSERT_TRUE(line) << step << engine.LastLines();
        best = *line;
      }
    }
    engine.WaitForEnd(SecondsFromNow(20));
    EXPECT_EQ(scores, 6);
  }
}

// Every kind plays a game against itself; every one has as many lines as asked for, and the policy.
TEST(UciTest, EveryKindOfPlayerPlaysAndShowsLines) {
  const testing::TempFolder folder;
  for (const std::string& player : PlayersOfEveryKind(folder)) {
    SCOPED_TRACE(player);
    oracles::UciClient client(
        {.command = {kProgram, "uci", player}, .options = {{"MultiPV", "4"}, {"Seed", "3"}}});
    oracles::GameSoFar game;
    for (int ply = 0; ply < 12; ++ply) {
      // Weakened Stockfish plays at random: any position can arise, also one with few moves.
      const size_t legal = chess::LegalMoves(game.Current()).size();
      if (legal == 0) break;
      const auto answer = client.Ask(game, {.nodes = 200});
      ASSERT_TRUE(answer.move) << ToFen(game.Current());
      EXPECT_EQ(answer.lines.size(), std::min<size_t>(4, legal)) << ToFen(game.Current());
      game.moves.push_back(*answer.move);
    }
  }
}

TEST(UciTest, ProbabilitiesAreADistributionOverTheLegalMoves) {
  Talk talk({kProgram, "uci", "decoder:" + Model() + "?think=0"});
  talk.Say("setoption name VerboseMoveStats value true");
  talk.Say("position fen r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -");
  talk.Say("go");
  double sum = 0;
  int moves = 0;
  for (auto line = talk.Await("info"); moves < 48; line = talk.Await("info")) {
    const size_t at = line.find("(P: ");
    if (at == std::string::npos) continue;
    sum += ParseDouble(Trim(Split(std::string_view(line).substr(at + 4), '%')[0])).value_or(-1);
    ++moves;
  }
  EXPECT_NEAR(sum, 100, 0.3);
}

TEST(UciTest, IntroducesItselfQuickly) {
  if (!testing::CanLimitMemory()) GTEST_SKIP() << "not under sanitizers";
  double best = 1e9;
  for (int i = 0; i < 15; ++i) {
    const auto start = Clock::now();
    Talk talk;
    talk.Say("uci");
    ASSERT_EQ(talk.Await("uciok"), "uciok");
    best = std::min(best, MillisecondsSince(start));
  }
  EXPECT_LT(best, 50);  // The best of them: others share the machine. bench/uci has all figures.
}

TEST(UciTest, StopsQuickly) {
  Talk talk;
  talk.Say("isready");
  talk.Await("readyok");
  Rng rng({.seed = 1, .epoch = 0, .sample = 0, .purpose = Purpose("stop")});
  std::vector<double> times;
  for (int i = 0; i < 50; ++i) {
    talk.Say("go infinite");
    std::this_thread::sleep_for(std::chrono::microseconds(rng.Below(20000)));
    const auto start = Clock::now();
    talk.Say("stop");
    ASSERT_NE(talk.Await("bestmove"), "");
    times.push_back(MillisecondsSince(start));
  }
  EXPECT_LT(Median(times), 50);
}

// Every "go" of some thousand mad lines is answered once, and the program is well at the end.
TEST(UciTest, BearsAnyLines) {
  testing::MadUciLines lines(7);
  std::string input;
  int asked = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string line = lines.Next();
    const uci::Verb verb = uci::ParseCommand(line).verb;
    if (verb == uci::Verb::kQuit) continue;
    asked += verb == uci::Verb::kGo ? 1 : 0;
    input += line + "\n";
  }
  input += std::string(1 << 20, 'x') + "\n" + std::string(1 << 20, '\0') + "\nquit\n";
  const auto ran = testing::RunCommand(CommandLine(), input);
  EXPECT_EQ(ran.code, 0);
  int answered = 0;
  for (std::string_view line : Split(ran.out, '\n')) {
    answered += line.starts_with("bestmove ") ? 1 : 0;
  }
  EXPECT_EQ(answered, asked);
  EXPECT_GT(asked, 500);
}

// --- The end ---

TEST(UciTest, EndsWithQuitAndWithItsInput) {
  for (const char* end : {"quit\n", ""}) {
    const auto start = Clock::now();
    const auto ran = testing::RunCommand(CommandLine(), std::string("uci\ngo infinite\n") + end);
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.out, HasSubstr("uciok\n"));
    EXPECT_THAT(ran.out, HasSubstr("bestmove "));
    EXPECT_EQ(ran.err, "");
    EXPECT_LT(MillisecondsSince(start), 2000);
  }
  EXPECT_EQ(testing::RunCommand(CommandLine(), "").code, 0);
}

TEST(UciTest, EndsWithASignal) {
  for (const auto& [signal, code] : {std::pair(SIGINT, "130"), std::pair(SIGTERM, "143")}) {
    Talk talk;
    talk.Say("go infinite");
    talk.Await("info depth");
    ASSERT_EQ(kill(talk.process().pid(), signal), 0);
    EXPECT_NE(talk.Await("bestmove", 5), "");
    EXPECT_THAT(testing::MessageOf([&] { talk.Await("x", 5); }),
                HasSubstr(std::string("ended with code ") + code));
  }
}

// The program's reader goes away while it thinks: it must not think on for nobody.
TEST(UciTest, EndsWhenNobodyListens) {
  int in[2];
  int out[2];
  ASSERT_EQ(pipe(in), 0);
  ASSERT_EQ(pipe(out), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    for (int end : {in[0], in[1], out[0], out[1]}) close(end);
    execl(kProgram.c_str(), kProgram.c_str(), "uci", "--model", Model().c_str(), nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  const std::string go = "go infinite\n";
  ASSERT_EQ(write(in[1], go.data(), go.size()), static_cast<ssize_t>(go.size()));
  char byte = 0;
  ASSERT_EQ(read(out[0], &byte, 1), 1);  // It thinks.
  close(out[0]);
  int status = 0;
  const auto deadline = SecondsFromNow(5);
  while (waitpid(child, &status, WNOHANG) == 0) {
    ASSERT_LT(Clock::now(), deadline) << "it still runs";
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_TRUE(WIFEXITED(status));
  close(in[1]);
}

TEST(UciTest, WrongFlagsAreTold) {
  const auto ran = testing::RunCommand({kProgram, "uci", "--modl", "x"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("did you mean --model?"));
  EXPECT_THAT(testing::RunCommand({kProgram, "uci", "--help"}).out, HasSubstr("cutechess"));
}

// --- Against others ---

// A whole game through our own client, with either colour: every move and every pv legal, the end
// by the rules or at the cap.
void PlayAGame(const std::string& stockfish, bool with_white) {
  oracles::UciClient ours(
      {.command = CommandLine(),
       .options = {
           {"UCI_ShowWDL", "true"}, {"MultiPV", "2"}, {"MaxVariations", "2"}, {"MaxDepth", "2"}}});
  oracles::UciClient theirs({.command = {stockfish}, .options = {{"Hash", "16"}}});
  EXPECT_THAT(ours.name(), StartsWith("Kibitz"));
  constexpr int kMaxPlies = 160;
  oracles::GameSoFar game;
  std::vector<Board> boards = {Board()};
  int infos = 0;
  const auto check = [&](const oracles::Info& info) {
    EXPECT_EQ(info.pv_beyond, 0);
    if (!info.score) return;
    ++infos;
    ASSERT_TRUE(info.score->wdl);
    EXPECT_EQ(info.score->wdl->win + info.score->wdl->draw + info.score->wdl->loss, 1000);
  };
  while (chess::EndingOf(boards) == chess::Ending::kNone && game.moves.size() < kMaxPlies) {
    const bool our_turn = (game.moves.size() % 2 == 0) == with_white;
    const auto answer = our_turn
                            ? ours.Ask(game, {.clocks = oracles::Clocks{20000, 20000, 0, 0}}, check)
                            : theirs.Ask(game, {.nodes = 300});
    ASSERT_TRUE(answer.move);
    game.moves.push_back(*answer.move);
    boards.push_back(boards.back().After(*answer.move));
  }
  EXPECT_GE(game.moves.size(), 4U);
  EXPECT_GT(infos, 0);
  ::testing::Test::RecordProperty(with_white ? "plies with White" : "plies with Black",
                                  static_cast<int>(game.moves.size()));
}

TEST(UciTest, PlaysGamesAgainstStockfish) {
  const std::string stockfish = oracles::FindProgram("stockfish");
  if (stockfish.empty()) GTEST_SKIP() << "no Stockfish here (Debian package stockfish)";
  PlayAGame(stockfish, true);
  PlayAGame(stockfish, false);
}

}  // namespace
}  // namespace kibitz
