// The engine's side of UCI, in one process: with a player that does as the test says, for its
// worst moments, and with a real one.
#include "uci/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "base/error.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "oracles/search/negamax.h"
#include "players/make_player.h"
#include "tests/support/test_data.h"
#include "tests/support/uci_lines.h"

namespace kibitz::uci {
namespace {

using chess::Board;
using chess::Move;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A busy machine may keep a thread waiting; the figures of the real stop are the bench's.
constexpr milliseconds kSoon{500};

// What the player does.
struct Behaviour {
  milliseconds loading{0};
  milliseconds root{0};  // Until the position is seen.
  milliseconds node{0};  // For each node of the variations.
  int variations = 3;    // Of two moves each.
  bool no_model = false;
  bool fails = false;                      // In the middle of a thought.
  std::vector<uint64_t>* seeds = nullptr;  // Gets those of the requests.
};

// Likes the last allowed move most, which a player cut off before it saw the position does not
// know. Thinks or not as a decoder does: by the options of its name.
class ObedientPlayer final : public players::Player {
 public:
  ObedientPlayer(const Behaviour& behaviour, const players::PlayerName& name)
      : behaviour_(behaviour) {
    for (const auto& [key, value] : name.options) {
      if (key == "think") think_ = value == "1";
      if (key == "max_variations") max_variations_ = std::stoi(value);
    }
  }

  players::Answer Play(const players::Request& request,
                       const players::OnProgress& on_progress) override {
    if (behaviour_.seeds != nullptr) behaviour_.seeds->push_back(request.seed);
    if (!Pass(behaviour_.root, request.stop)) return {};
    if (behaviour_.fails && !think_) throw Error("the network is on strike\nand says so");
    players::Answer answer = Instinct(request);
    on_progress(answer);
    if (!think_) return answer;
    const int most = max_variations_ > 0 ? max_variations_ : behaviour_.variations;
    const Board root = request.game.Current();
    for (int i = 0; i < std::min(behaviour_.variations, most); ++i) {
      players::Line& line = answer.lines[static_cast<size_t>(i) % answer.lines.size()];
      Board board = root.After(line.pv[0]);
      line.pv.resize(1);
      for (int depth = 0; depth < std::min(2, request.limits.depth.value_or(2)); ++depth) {
        if (request.limits.nodes && answer.nodes >= *request.limits.nodes) return answer;
        if (!Pass(behaviour_.node, request.stop)) return answer;
        const chess::MoveList moves = chess::LegalMoves(board);
        if (depth > 0 && !moves.empty()) line.pv.push_back(moves[0]);
        ++answer.nodes;
        on_progress(answer);
      }
    }
    if (behaviour_.fails) throw Error("the network is on strike\nand says so");
    return answer;
  }
  std::string name() const override { return "obedient"; }

 private:
  static bool Pass(milliseconds time, const std::stop_token& stop) {
    const auto end = Clock::now() + time;
    while (!stop.stop_requested()) {
      if (Clock::now() >= end) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }

  static players::Answer Instinct(const players::Request& request) {
    players::Answer answer;
    std::vector<Move> moves = players::AllowedMoves(request);
    std::reverse(moves.begin(), moves.end());
    double probability = 0.5;
    for (Move move : moves) answer.moves.push_back({.move = move, .probability = probability /= 2});
    answer.move = moves.front();
    for (size_t i = 0; i < moves.size() && static_cast<int>(i) < request.lines; ++i) {
      answer.lines.push_back({.pv = {moves[i]}, .wdl = oracles::Wdl{0.6, 0.3, 0.1}});
    }
    answer.nodes = 1;
    return answer;
  }

  const Behaviour behaviour_;
  bool think_ = true;
  int max_variations_ = 0;
};

// A name whose options are a decoder's; the players of these tests do not read the file.
players::PlayerName DecoderName() {
  return {.kind = "decoder", .path = testing::GoldenPath("decoder/tiny.pt")};
}

class Conversation {
 public:
  explicit Conversation(const Behaviour& behaviour = {})
      : Conversation(
            [behaviour, this](const players::PlayerName& name) -> std::unique_ptr<players::Player> {
              ++loads_;
              std::this_thread::sleep_for(behaviour.loading);
              if (behaviour.no_model) throw Error("no.pt: cannot be read");
              return std::make_unique<ObedientPlayer>(behaviour, name);
            },
            {.player = DecoderName()}) {}
  Conversation(MakePlayer make, const EngineOptions& options)
      : engine_(options, std::move(make), [this](std::string_view line) { return Hear(line); }) {}
  ~Conversation() { engine_.Finish(milliseconds(10000)); }

  void Say(std::string_view line) { EXPECT_TRUE(engine_.Handle(line)) << line; }
  void Say(std::initializer_list<std::string_view> lines) {
    for (std::string_view line : lines) Say(line);
  }
  // The next line that starts so, past those already awaited; "" when it does not come in time.
  std::string Await(const std::string& start, milliseconds time = milliseconds(10000)) {
    std::unique_lock lock(mutex_);
    const auto deadline = Clock::now() + time;
    while (true) {
      for (; seen_ < lines_.size(); ++seen_) {
        if (lines_[seen_].starts_with(start)) return lines_[seen_++];
      }
      if (heard_.wait_until(lock, deadline) == std::cv_status::timeout) return "";
    }
  }
  // All that was said since, and forgets it.
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex_);
    seen_ = 0;
    return std::exchange(lines_, {});
  }
  void StopListening() { listening_ = false; }
  int loads() const { return loads_; }
  Engine& engine() { return engine_; }

 private:
  bool Hear(std::string_view line) {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(line.find('\n'), std::string_view::npos);
    lines_.emplace_back(line);
    heard_.notify_all();
    return listening_;
  }

  std::mutex mutex_;
  std::condition_variable heard_;
  std::vector<std::string> lines_;
  size_t seen_ = 0;
  std::atomic<bool> listening_{true};
  std::atomic<int> loads_{0};
  Engine engine_;
};

// The move an engine plays that has seen the position but not thought, and the one it plays
// blindly: the best by material.
std::string Instinct(const Board& board) {
  const chess::MoveList moves = chess::LegalMoves(board);
  return "bestmove " + ToText(board, moves[moves.size() - 1]);
}
std::string Blind(const Board& board) {
  return "bestmove " + ToText(board, oracles::Negamax({.start = board}, {}).moves[0].move);
}

Board BoardAfter(std::string_view position) { return ParsePosition(position)->game.Current(); }

// Of the line whose pv is `pv`; the moves are read from the position.
void ExpectLegalPv(const Board& root, const std::string& info) {
  const size_t at = info.find(" pv ");
  if (at == std::string::npos) return;
  Board board = root;
  for (std::string_view word : SplitWords(std::string_view(info).substr(at + 4))) {
    const auto move = ParseMove(board, word);
    ASSERT_TRUE(move) << info << ": " << move.reason();
    board = board.After(*move);
  }
}

TEST(EngineTest, IntroducesItselfBeforeItLoads) {
  Conversation talk;
  talk.Say("uci");
  const auto lines = talk.Take();
  EXPECT_THAT(lines.front(), StartsWith("id name Kibitz"));
  EXPECT_EQ(lines.back(), "uciok");
  EXPECT_EQ(talk.loads(), 0);
  talk.Say({"isready", "isready"});
  EXPECT_EQ(talk.Await("readyok"), "readyok");
  EXPECT_EQ(talk.Await("readyok"), "readyok");
  EXPECT_EQ(talk.loads(), 1);
  talk.Say("setoption name Temperature value 0.5");
  talk.Say("isready");
  talk.Await("readyok");
  EXPECT_EQ(talk.loads(), 2);  // Another option is another player, made of the same network.
}

TEST(EngineTest, ThinksAndPlays) {
  Conversation talk;
  talk.Say({"setoption name UCI_ShowWDL value true", "position startpos moves e2e4", "go"});
  const Board board = BoardAfter("startpos moves e2e4");
  EXPECT_THAT(talk.Await("bestmove"), StartsWith(Instinct(board)));
  const auto lines = talk.Take();
  int infos = 0;
  for (const std::string& line : lines) {
    if (!line.starts_with("info depth")) continue;
    ++infos;
    EXPECT_THAT(line, AllOf(HasSubstr(" nodes "), HasSubstr(" nps "), HasSubstr(" time "),
                            HasSubstr(" multipv 1 ")));
    ExpectLegalPv(board, line);
  }
  EXPECT_EQ(infos, 8);  // The root, six nodes, the end.
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("score cp 89 wdl 600 300 100 nodes 7"));
}

TEST(EngineTest, ShowsAsManyLinesAsAsked) {
  Conversation talk;
  talk.Say({"setoption name MultiPV value 2", "setoption name VerboseMoveStats value true", "go"});
  talk.Await("bestmove");
  const auto lines = talk.Take();
  EXPECT_THAT(lines, Contains(AllOf(StartsWith("info string " + Instinct(Board()).substr(9)),
                                    HasSubstr("(P: 25.00%)"))));
  EXPECT_THAT(lines[lines.size() - 3], HasSubstr("multipv 1 score cp 89"));
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("multipv 2 "));
}

TEST(EngineTest, PlaysAtFirstSight) {
  Conversation talk;
  talk.Say({"setoption name Mode value instinct", "setoption name MultiPV value 3", "go"});
  EXPECT_EQ(talk.Await("bestmove"), Instinct(Board()));
  const auto lines = talk.Take();
  ASSERT_GE(lines.size(), 4U);
  EXPECT_THAT(lines[lines.size() - 4], HasSubstr("multipv 1 score cp 89 nodes 1"));
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("multipv 3 score cp 89 nodes 1"));
}

TEST(EngineTest, SaysThatNobodyPlays) {
  Conversation talk({.no_model = true});
  talk.Say("isready");
  EXPECT_EQ(talk.Await("info string"), "info string no.pt: cannot be read");
  EXPECT_NE(talk.Await("readyok"), "");
  talk.Say("go");
  EXPECT_NE(talk.Await("info string no.pt"), "");
  EXPECT_EQ(talk.Await("bestmove"), "bestmove 0000");  // No game on other moves than the player's.
}

TEST(EngineTest, AnswersWhenTheNetworkFails) {
  for (const char* mode : {"think", "instinct"}) {
    Conversation talk({.fails = true});
    talk.Say({std::string("setoption name Mode value ") + mode, "go"});
    EXPECT_EQ(talk.Await("info string the"), "info string the network is on strike and says so");
    // After it has seen the position, what it knew by then; before, nothing.
    const bool think = std::string(mode) == "think";
    EXPECT_THAT(talk.Await("bestmove"), StartsWith(think ? Instinct(Board()) : "bestmove 0000"));
  }
}

TEST(EngineTest, DoesNotWaitForLoading) {
  Conversation talk({.loading = milliseconds(1500)});
  const auto start = Clock::now();
  talk.Say({"isready", "go infinite", "isready"});
  EXPECT_EQ(talk.Await("readyok", kSoon), "readyok");  // A search runs.
  talk.Say("stop");
  EXPECT_EQ(talk.Await("bestmove", kSoon), Blind(Board()));
  talk.Say("go movetime 50");
  EXPECT_EQ(talk.Await("bestmove", kSoon), Blind(Board()));
  EXPECT_LT(Clock::now() - start, milliseconds(1400));
  EXPECT_EQ(talk.Await("readyok"), "readyok");  // Of the first one, now that it is loaded.
  talk.Say("go");
  EXPECT_THAT(talk.Await("bestmove"), StartsWith(Instinct(Board())));
  EXPECT_EQ(talk.loads(), 1);
}

TEST(EngineTest, InfiniteWaitsForStop) {
  Conversation talk;
  talk.Say("go infinite");
  EXPECT_EQ(talk.Await("bestmove", milliseconds(150)), "");
  talk.Say("isready");
  EXPECT_EQ(talk.Await("readyok", kSoon), "readyok");
  talk.Say("stop");
  EXPECT_THAT(talk.Await("bestmove", kSoon), StartsWith(Instinct(Board())));
  talk.Say({"stop", "ponderhit"});  // Nothing runs: nothing is said.
  EXPECT_EQ(talk.Await("bestmove", milliseconds(50)), "");
}

TEST(EngineTest, StopCutsAThought) {
  Conversation talk({.node = milliseconds(60000)});
  talk.Say("go infinite");
  EXPECT_NE(talk.Await("info depth 1"), "");
  talk.Say("stop");
  EXPECT_THAT(talk.Await("bestmove", kSoon), StartsWith(Instinct(Board())));
  Conversation policy({.root = milliseconds(60000)});
  policy.Say({"setoption name Mode value instinct", "isready", "go infinite"});
  policy.Await("readyok");
  policy.Say("stop");
  EXPECT_EQ(policy.Await("bestmove", kSoon), Blind(Board()));
}

TEST(EngineTest, Ponders) {
  Conversation talk({.node = milliseconds(60000)});
  talk.Say("go ponder wtime 2000 btime 2000");
  EXPECT_EQ(talk.Await("bestmove", milliseconds(300)), "");
  const auto hit = Clock::now();
  talk.Say("ponderhit");
  EXPECT_NE(talk.Await("bestmove", milliseconds(2000)), "");
  EXPECT_GE(Clock::now() - hit, milliseconds(70));  // The clock ran from the hit on.
  Conversation quick;
  quick.Say("go ponder");
  EXPECT_EQ(quick.Await("bestmove", milliseconds(100)), "");
  quick.Say("ponderhit");
  EXPECT_THAT(quick.Await("bestmove", kSoon), HasSubstr(" ponder "));
}

TEST(EngineTest, SecondGoStopsTheFirst) {
  Conversation talk({.node = milliseconds(60000)});
  talk.Say("go infinite");
  talk.Await("info depth");
  talk.Say({"position startpos moves e2e4 e7e5", "go infinite", "position startpos moves d2d4",
            "go infinite", "stop"});
  EXPECT_THAT(talk.Await("bestmove", kSoon), StartsWith(Instinct(Board())));
  const Board second = BoardAfter("startpos moves e2e4 e7e5");
  const Board third = BoardAfter("startpos moves d2d4");
  for (const Board& board : {second, third}) {
    const std::string line = talk.Await("bestmove", kSoon);
    ASSERT_NE(line, "");
    EXPECT_TRUE(ParseMove(board, SplitWords(line)[1])) << line;
  }
  EXPECT_EQ(talk.Await("bestmove", milliseconds(50)), "");
}

TEST(EngineTest, KeepsTimeLimits) {
  Conversation talk({.node = milliseconds(60000)});
  talk.Say("isready");
  talk.Await("readyok");
  auto start = Clock::now();
  talk.Say("go movetime 100");
  EXPECT_THAT(talk.Await("bestmove", milliseconds(100) + kSoon), StartsWith(Instinct(Board())));
  EXPECT_GE(Clock::now() - start, milliseconds(99));
  talk.Say("go wtime 2530 btime 1");  // A 25th of 2.5 s.
  start = Clock::now();
  EXPECT_THAT(talk.Await("bestmove", milliseconds(100) + kSoon), StartsWith(Instinct(Board())));
  EXPECT_GE(Clock::now() - start, milliseconds(95));
}

// The share of a short clock is over before the network has seen the position: it may go on until
// it has, but not beyond the hard limit.
TEST(EngineTest, DoesNotMoveBlindlyForTheClocksSake) {
  Conversation talk({.root = milliseconds(200), .node = milliseconds(60000)});
  talk.Say({"isready", "go wtime 1030 btime 1"});
  EXPECT_THAT(talk.Await("bestmove", milliseconds(200) + kSoon), StartsWith(Instinct(Board())));
  Conversation slow({.root = milliseconds(60000)});
  slow.Say("isready");
  slow.Await("readyok");
  const auto start = Clock::now();
  slow.Say("go wtime 430 btime 1");
  EXPECT_EQ(slow.Await("bestmove", milliseconds(360) + kSoon), Blind(Board()));
  EXPECT_GE(Clock::now() - start, milliseconds(355));
}

TEST(EngineTest, LimitsNodesDepthAndMoves) {
  Conversation talk({.variations = 20});
  talk.Say("go nodes 5");
  talk.Await("bestmove");
  auto lines = talk.Take();
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr(" nodes 5 "));
  talk.Say("go depth 1");
  talk.Await("bestmove");
  for (const std::string& line : talk.Take()) {
    if (line.starts_with("info depth")) {
      EXPECT_THAT(line, StartsWith("info depth 1 seldepth 1 "));
    }
  }
  talk.Say({"setoption name MaxVariations value 1", "go"});
  talk.Await("bestmove");
  lines = talk.Take();
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr(" nodes 3 "));
  talk.Say("go searchmoves e2e4 a2a3 depth 2");
  const std::string best = talk.Await("bestmove");
  EXPECT_THAT(best, ::testing::AnyOf(StartsWith("bestmove e2e4"), StartsWith("bestmove a2a3")));
  // With a node limit, too, infinite waits.
  talk.Say("go infinite nodes 1");
  EXPECT_EQ(talk.Await("bestmove", milliseconds(100)), "");
  talk.Say("stop");
  EXPECT_NE(talk.Await("bestmove", kSoon), "");
}

TEST(EngineTest, KnowsWhenTheGameIsOver) {
  Conversation talk;
  talk.Say({"position fen R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1", "go"});
  EXPECT_NE(talk.Await("info depth 0 score mate 0"), "");
  EXPECT_EQ(talk.Await("bestmove"), "bestmove 0000");
  talk.Say({"position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "go infinite"});
  EXPECT_NE(talk.Await("info depth 0 score cp 0"), "");
  EXPECT_EQ(talk.Await("bestmove", milliseconds(50)), "");
  talk.Say("stop");
  EXPECT_EQ(talk.Await("bestmove"), "bestmove 0000");
  EXPECT_EQ(talk.loads(), 0);
}

TEST(EngineTest, BadCommandsAreTold) {
  Conversation talk;
  talk.Say("position startpos moves d2d4");
  for (const char* bad : {"setoption", "setoption name Mode value x",
                          "setoption name UCI_Chess960 value true", "debug maybe", "xyzzy"}) {
    talk.Say(bad);
    EXPECT_THAT(talk.Take(), Contains(StartsWith("info string"))) << bad;
  }
  talk.Say("go nodes many depth 1");
  EXPECT_NE(talk.Await("info string go: nodes 'many'"), "");
  EXPECT_NE(talk.Await("bestmove"), "");
  talk.Take();
  talk.Say({"", "   ", "register later", "ucinewgame", "debug on", "x debug off"});
  EXPECT_TRUE(talk.Take().empty());
  talk.Say("d");
  EXPECT_THAT(talk.Take(), Contains("fen " + ToFen(BoardAfter("startpos moves d2d4"))));
  talk.Say("help");
  EXPECT_GE(talk.Take().size(), 4U);
}

// A move for the position before would be illegal, or worse: legal and wrong.
TEST(EngineTest, ARefusedPositionIsNotPlayed) {
  Conversation talk;
  for (const char* bad : {"position", "position fen x", "position startpos moves e2e4 e2e4",
                          "position fen 8/8/8/8/8/8/8/8 w - - 0 1"}) {
    talk.Say({"position startpos moves d2d4", bad, "go"});
    EXPECT_NE(talk.Await("info string position:"), "") << bad;
    EXPECT_EQ(talk.Await("bestmove"), "bestmove 0000") << bad;
  }
  talk.Say({"position startpos", "go"});
  EXPECT_THAT(talk.Await("bestmove"), StartsWith(Instinct(Board())));
}

TEST(EngineTest, CountsMovesForPerft) {
  Conversation talk;
  talk.Say("go perft 3");
  const auto lines = talk.Take();
  EXPECT_EQ(lines.back(), "Nodes searched: 8902");
  EXPECT_THAT(lines, Contains("e2e4: 600"));
  talk.Say("go mate 3");
  EXPECT_NE(talk.Await("info string go: mate"), "");
  EXPECT_NE(talk.Await("bestmove"), "");
}

TEST(EngineTest, DrawsAnewInEachSearchAndTheSameInEachRunWithASeed) {
  std::vector<uint64_t> seeds[2];
  for (auto& own : seeds) {
    Conversation talk({.seeds = &own});
    talk.Say("setoption name Seed value 7");
    for (const char* line : {"go", "go", "ucinewgame", "go", "setoption name Seed value 1", "go"}) {
      talk.Say(line);
      if (std::string(line) == "go") talk.Await("bestmove");
    }
  }
  EXPECT_EQ(seeds[0], seeds[1]);
  ASSERT_EQ(seeds[0].size(), 4U);
  std::sort(seeds[0].begin(), seeds[0].end());
  EXPECT_EQ(std::unique(seeds[0].begin(), seeds[0].end()), seeds[0].end());
}

TEST(EngineTest, DrawsAreNotTheSameInEachRunWithoutASeed) {
  std::vector<uint64_t> seeds[2];
  for (auto& own : seeds) {
    Conversation talk({.seeds = &own});
    talk.Say("go");
    talk.Await("bestmove");
  }
  EXPECT_NE(seeds[0], seeds[1]);
}

// What is set while a search runs holds for the next one.
TEST(EngineTest, OptionsWaitForTheNextGo) {
  Conversation talk({.node = milliseconds(60000)});
  talk.Say("go infinite");
  talk.Await("info depth");
  talk.Say({"position startpos moves e2e4", "setoption name Mode value instinct", "stop"});
  EXPECT_THAT(talk.Await("bestmove", kSoon), StartsWith(Instinct(Board())));
  talk.Take();
  talk.Say("go");
  EXPECT_EQ(talk.Await("bestmove"), Instinct(BoardAfter("startpos moves e2e4")));
}

TEST(EngineTest, EndsWithQuitAndWhenNobodyListens) {
  Conversation talk({.node = milliseconds(60000)});
  talk.Say("go infinite");
  talk.Await("info depth");
  EXPECT_FALSE(talk.engine().Handle("quit"));
  EXPECT_TRUE(talk.engine().Finish(kSoon));
  EXPECT_THAT(talk.Await("bestmove", milliseconds(0)), StartsWith(Instinct(Board())));
  Conversation loading({.loading = milliseconds(500)});
  loading.Say("go");
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(loading.engine().Finish(milliseconds(10)));
  EXPECT_EQ(loading.Await("bestmove", milliseconds(0)), Blind(Board()));
  Conversation deaf;
  deaf.StopListening();
  EXPECT_FALSE(deaf.engine().Handle("uci"));
}

// --- Anything at all ---

// Another player is another test.
bool NamesAPlayer(std::string_view rest) {
  const auto setting = ParseSetOption(rest);
  if (!setting) return false;
  const std::string name = LowerCase(setting->name);
  return name == "model" || name == "player" || name == "weightsfile";
}

// Says `count` mad lines; every "go" must be answered once, in order, by a move that is legal where
// it was asked and among those asked for, and every pv before it must be legal too.
void TalkMadly(Conversation& talk, uint64_t seed, int count) {
  testing::MadUciLines lines(seed);
  struct Asked {
    std::optional<Board> board;  // Nothing: the position was refused.
    std::vector<Move> allowed;
  };
  std::deque<Asked> asked;
  std::optional<Board> board = Board();
  size_t answers = 0;
  const auto hear = [&] {
    for (const std::string& line : talk.Take()) {
      if (line.starts_with("bestmove")) {
        ASSERT_FALSE(asked.empty());
        const auto [root, allowed] = asked.front();
        asked.pop_front();
        ++answers;
        if (!root || !chess::HasLegalMove(*root)) {
          ASSERT_EQ(line, "bestmove 0000");
          continue;
        }
        const auto move = ParseMove(*root, SplitWords(line).at(1));
        ASSERT_TRUE(move) << line << " in " << ToFen(*root);
        ASSERT_TRUE(allowed.empty() || std::ranges::find(allowed, *move) != allowed.end()) << line;
      } else if (!asked.empty() && asked.front().board) {
        ExpectLegalPv(*asked.front().board, line);
      }
    }
  };
  for (int i = 0; i < count; ++i) {
    const std::string line = lines.Next();
    const Command command = ParseCommand(line);
    if (command.verb == Verb::kQuit) continue;
    if (command.verb == Verb::kPosition) {
      const auto request = ParsePosition(command.rest);
      board.reset();
      if (request) board = request->game.Current();
    }
    if (command.verb == Verb::kGo) {
      const GoRequest go = board ? ParseGo(command.rest, *board) : GoRequest{};
      if (go.perft) continue;
      asked.push_back({board, go.search_moves});
    }
    if (command.verb == Verb::kSetOption && NamesAPlayer(command.rest)) continue;
    talk.Say(line);
    if (i % 256 == 0) hear();
    if (i % 4096 == 0) std::this_thread::sleep_for(milliseconds(20));  // A thought may finish.
  }
  ASSERT_TRUE(talk.engine().Finish(milliseconds(20000)));
  hear();
  EXPECT_TRUE(asked.empty()) << asked.size() << " without an answer";
  EXPECT_GT(answers, static_cast<size_t>(count) / 10);
}

TEST(EngineTest, BearsAnyLines) {
  Conversation quick;
  TalkMadly(quick, 1, 20000);
  Conversation loading({.loading = milliseconds(30)});
  TalkMadly(loading, 2, 20000);
  Conversation slow({.root = milliseconds(1), .node = milliseconds(1)});
  TalkMadly(slow, 3, 10000);
}

TEST(EngineTest, BearsAnyLinesWithARealNetwork) {
  EngineOptions options{.player = DecoderName()};
  options.player.options = {{"threads", "1"}};
  Conversation talk([](const players::PlayerName& name) { return players::MakerFor(name)->Make(); },
                    options);
  talk.Say("isready");
  ASSERT_EQ(talk.Await(""), "readyok");
  TalkMadly(talk, 4, 100000);
}

}  // namespace
}  // namespace kibitz::uci
