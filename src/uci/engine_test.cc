// The engine's side of UCI, in one process: with a network that does as the test says, for its
// worst moments, and with the real one.
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
#include "base/thread_pool.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
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

// What the network does.
struct Behaviour {
  milliseconds loading{0};
  milliseconds root{0};  // Until the position is read.
  milliseconds node{0};  // For each node.
  int variations = 3;    // Of two moves each.
  bool no_model = false;
  bool fails = false;                      // In the middle of a thought.
  bool nonsense = false;                   // Second moves, and the final one, are not legal.
  std::vector<uint64_t>* seeds = nullptr;  // Gets those of the thoughts.
};

// Likes the last legal move most, where an engine that knows nothing plays the first one.
class ObedientThinker final : public Thinker {
 public:
  explicit ObedientThinker(const Behaviour& behaviour) : behaviour_(behaviour) {}

  decoder::Prediction Predict(const Board& board, const decoder::PredictOptions& options) override {
    decoder::Prediction prediction;
    prediction.cancelled = !Pass(behaviour_.root, options.stop);
    if (prediction.cancelled) return prediction;
    if (behaviour_.fails) throw Error("the network is on strike\nand says so");
    prediction.candidates = Candidates(board);
    prediction.chosen = prediction.candidates.front();
    if (options.value) prediction.value = decoder::NodeValue{.wl = 0.5F, .d = 0.3F};
    return prediction;
  }

  decoder::Thought Think(const Board& root, const decoder::ThinkOptions& options,
                         const decoder::ThoughtListener& listener) override {
    decoder::Thought thought;
    thought.root = root;
    if (behaviour_.seeds != nullptr) behaviour_.seeds->push_back(options.seed);
    if (!Pass(behaviour_.root, options.stop)) return thought;
    thought.instinct = Candidates(root);
    listener.on_root(thought);
    const int max = options.max_variations > 0 ? options.max_variations : 100;
    for (int i = 0; i < std::min(behaviour_.variations, max); ++i) {
      if (!AddVariation(thought, static_cast<size_t>(i), options, listener)) return thought;
    }
    if (behaviour_.fails) throw Error("the network is on strike\nand says so");
    thought.end = decoder::ThoughtEnd::kFinished;
    thought.candidates = thought.instinct;
    thought.final_move = thought.instinct.front();
    if (behaviour_.nonsense) thought.final_move->move.reset();
    thought.final_value = decoder::NodeValue{.wl = 0.5F, .d = 0.3F};
    thought.move = thought.candidates.front().move;
    return thought;
  }

 private:
  static bool Pass(milliseconds time, const std::stop_token& stop) {
    const auto end = Clock::now() + time;
    while (!stop.stop_requested()) {
      if (Clock::now() >= end) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }

  static std::vector<decoder::Candidate> Candidates(const Board& board) {
    std::vector<decoder::Candidate> candidates;
    for (Move move : chess::LegalMoves(board)) {
      decoder::Candidate candidate;
      candidate.move = move;
      candidates.push_back(candidate);
    }
    std::reverse(candidates.begin(), candidates.end());
    double probability = 0.5;
    for (auto& candidate : candidates) candidate.probability = probability /= 2;
    return candidates;
  }

  bool AddVariation(decoder::Thought& thought, size_t number, const decoder::ThinkOptions& options,
                    const decoder::ThoughtListener& listener) const {
    std::optional<Board> board = thought.root;
    thought.variations.emplace_back();
    for (int depth = 0; depth < 2 && (options.max_depth == 0 || depth < options.max_depth);
         ++depth) {
      if (!Pass(behaviour_.node, options.stop)) return false;
      const chess::MoveList moves = chess::LegalMoves(*board);
      if (moves.empty()) break;
      auto& node = thought.variations.back().nodes.emplace_back();
      node.value = decoder::NodeValue{.wl = -0.1F * static_cast<float>(number), .d = 0.5F};
      if (!behaviour_.nonsense || depth == 0) {
        node.move = moves[moves.size() - 1 - number % moves.size()];
        board = board->After(*node.move);
        node.after = board;
      }
      listener.on_value(thought);
      if (options.stop.stop_requested()) return false;
    }
    thought.variations.back().ended = true;
    return true;
  }

  const Behaviour behaviour_;
};

class Conversation {
 public:
  explicit Conversation(const Behaviour& behaviour = {})
      : Conversation(
            [behaviour, this](const nn::NetworkOptions&) -> std::unique_ptr<Thinker> {
              ++loads_;
              std::this_thread::sleep_for(behaviour.loading);
              if (behaviour.no_model) throw Error("no.pt: cannot be read");
              return std::make_unique<ObedientThinker>(behaviour);
            },
            {}) {}
  Conversation(LoadThinker load, const EngineOptions& options)
      : engine_(options, std::move(load), [this](std::string_view line) { return Hear(line); }) {}
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
// blindly.
std::string Instinct(const Board& board) {
  const chess::MoveList moves = chess::LegalMoves(board);
  return "bestmove " + ToText(board, moves[moves.size() - 1]);
}
std::string Blind(const Board& board) {
  return "bestmove " + ToText(board, chess::LegalMoves(board)[0]);
}

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
  talk.Say("setoption name Threads value " + std::to_string(HardwareThreads()));
  talk.Say("isready");
  talk.Await("readyok");
  EXPECT_EQ(talk.loads(), 1);
  talk.Say("setoption name Threads value 1000");
  talk.Say("isready");
  talk.Await("readyok");
  EXPECT_EQ(talk.loads(), 2);  // Another number of threads is another network.
}

TEST(EngineTest, ThinksAndPlays) {
  Conversation talk;
  talk.Say({"setoption name UCI_ShowWDL value true", "position startpos moves e2e4", "go"});
  const Board board = *ParsePosition("startpos moves e2e4");
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
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("score cp 89 wdl 600 300 100 nodes 6"));
}

TEST(EngineTest, ShowsAsManyLinesAsAsked) {
  Conversation talk;
  talk.Say({"setoption name MultiPV value 2", "go"});
  talk.Await("bestmove");
  const auto lines = talk.Take();
  EXPECT_THAT(lines, Contains("info string policy " + Instinct(Board()).substr(9) + " 25.00%"));
  EXPECT_THAT(lines[lines.size() - 3], HasSubstr("multipv 1 score cp 89"));
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("multipv 2 "));
}

TEST(EngineTest, PlaysAtFirstSight) {
  Conversation talk;
  talk.Say({"setoption name Mode value instinct", "setoption name MultiPV value 3", "go"});
  EXPECT_EQ(talk.Await("bestmove"), Instinct(Board()));
  const auto lines = talk.Take();
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_THAT(lines[0], StartsWith("info string policy"));
  EXPECT_THAT(lines[3], HasSubstr("multipv 1 score cp 89 nodes 1"));
  EXPECT_THAT(lines[5], HasSubstr("multipv 3 nodes 1"));
}

TEST(EngineTest, AnswersWithoutANetwork) {
  Conversation talk({.no_model = true});
  talk.Say("isready");
  EXPECT_EQ(talk.Await("info string"), "info string no.pt: cannot be read");
  EXPECT_NE(talk.Await("readyok"), "");
  talk.Say("go");
  EXPECT_NE(talk.Await("info string no.pt"), "");
  EXPECT_EQ(talk.Await("bestmove"), Blind(Board()));
  talk.Say("go searchmoves g1f3");
  EXPECT_EQ(talk.Await("bestmove"), "bestmove g1f3");
}

TEST(EngineTest, AnswersWhenTheNetworkFails) {
  for (const char* mode : {"think", "instinct"}) {
    Conversation talk({.fails = true});
    talk.Say({std::string("setoption name Mode value ") + mode, "go"});
    EXPECT_EQ(talk.Await("info string the"), "info string the network is on strike and says so");
    EXPECT_EQ(talk.Await("bestmove"), Blind(Board()));
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
  const Board second = *ParsePosition("startpos moves e2e4 e7e5");
  const Board third = *ParsePosition("startpos moves d2d4");
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
  EXPECT_EQ(slow.Await("bestmove", milliseconds(200) + kSoon), Blind(Board()));
  EXPECT_GE(Clock::now() - start, milliseconds(195));
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
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr(" nodes 2 "));
  talk.Say("go searchmoves e2e4 a2a3 depth 2");
  const std::string best = talk.Await("bestmove");
  EXPECT_THAT(best, ::testing::AnyOf(StartsWith("bestmove e2e4"), StartsWith("bestmove a2a3")));
  // With a node limit, too, infinite waits.
  talk.Say("go infinite nodes 1");
  EXPECT_EQ(talk.Await("bestmove", milliseconds(100)), "");
  talk.Say("stop");
  EXPECT_NE(talk.Await("bestmove", kSoon), "");
}

TEST(EngineTest, CutsAndCountsWhatIsNotLegal) {
  Conversation talk({.nonsense = true});
  talk.Say({"debug on", "go"});
  EXPECT_EQ(talk.Await("bestmove"), Instinct(Board()));
  const auto lines = talk.Take();
  EXPECT_THAT(lines, Contains("info string 3 moves of the variations were not legal and were cut"));
  EXPECT_THAT(lines, Contains(StartsWith("info string 3 variations, ")));
  for (const std::string& line : lines) ExpectLegalPv(Board(), line);
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

TEST(EngineTest, BadCommandsChangeNothing) {
  Conversation talk;
  talk.Say("position startpos moves d2d4");
  const Board board = talk.engine().board();
  for (const char* bad :
       {"position", "position fen x", "position startpos moves e2e4 e2e4",
        "position fen 8/8/8/8/8/8/8/8 w - - 0 1", "setoption", "setoption name Mode value x",
        "setoption name UCI_Chess960 value true", "debug maybe", "xyzzy"}) {
    talk.Say(bad);
    EXPECT_THAT(talk.Take(), Contains(StartsWith("info string"))) << bad;
    EXPECT_EQ(talk.engine().board(), board) << bad;
  }
  talk.Say("go nodes many depth 1");
  EXPECT_NE(talk.Await("info string go: nodes 'many'"), "");
  EXPECT_NE(talk.Await("bestmove"), "");
  talk.Take();
  talk.Say({"", "   ", "register later", "ucinewgame", "debug on", "x debug off"});
  EXPECT_TRUE(talk.Take().empty());
  talk.Say("d");
  EXPECT_THAT(talk.Take(), Contains("fen " + ToFen(board)));
  talk.Say("help");
  EXPECT_GE(talk.Take().size(), 4U);
}

TEST(EngineTest, DrawsAnewInEachSearchAndTheSameInEachRun) {
  std::vector<uint64_t> seeds[2];
  for (auto& own : seeds) {
    Conversation talk({.seeds = &own});
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

// What is set while a search runs holds for the next one.
TEST(EngineTest, SettingsWaitForTheNextGo) {
  Conversation talk({.node = milliseconds(60000)});
  talk.Say("go infinite");
  talk.Await("info depth");
  talk.Say({"position startpos moves e2e4", "setoption name Mode value instinct", "stop"});
  EXPECT_THAT(talk.Await("bestmove", kSoon), StartsWith(Instinct(Board())));
  talk.Take();
  talk.Say("go");
  EXPECT_EQ(talk.Await("bestmove"), Instinct(*ParsePosition("startpos moves e2e4")));
  EXPECT_THAT(talk.Take(), Contains(StartsWith("info string policy")));
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

// Says `count` mad lines; every "go" must be answered once, in order, by a move that is legal where
// it was asked and among those asked for, and every pv before it must be legal too.
void TalkMadly(Conversation& talk, uint64_t seed, int count) {
  testing::MadUciLines lines(seed);
  struct Asked {
    Board board;
    std::vector<Move> allowed;
  };
  std::deque<Asked> asked;
  size_t answers = 0;
  const auto hear = [&] {
    for (const std::string& line : talk.Take()) {
      if (line.starts_with("bestmove")) {
        ASSERT_FALSE(asked.empty());
        const auto [board, allowed] = asked.front();
        asked.pop_front();
        ++answers;
        const std::string_view move = SplitWords(line).at(1);
        if (!chess::HasLegalMove(board)) {
          ASSERT_EQ(line, "bestmove 0000");
          continue;
        }
        ASSERT_TRUE(ParseMove(board, move)) << line << " in " << ToFen(board);
        ASSERT_TRUE(IsAllowed(allowed, *ParseMove(board, move))) << line;
      } else if (!asked.empty()) {
        ExpectLegalPv(asked.front().board, line);
      }
    }
  };
  for (int i = 0; i < count; ++i) {
    const std::string line = lines.Next();
    const Command command = ParseCommand(line);
    if (command.verb == Verb::kQuit) continue;
    if (command.verb == Verb::kGo) {
      const Board board = talk.engine().board();
      asked.push_back({board, ParseGo(command.rest, board).search_moves});
    }
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
  Conversation nonsense({.loading = milliseconds(30), .nonsense = true});
  TalkMadly(nonsense, 2, 20000);
  Conversation slow({.root = milliseconds(1), .node = milliseconds(1)});
  TalkMadly(slow, 3, 10000);
}

TEST(EngineTest, BearsAnyLinesWithARealNetwork) {
  EngineOptions options;
  options.network.path = testing::GoldenPath("decoder/tiny.pt");
  options.network.threads = 1;
  Conversation talk(LoadDecoder, options);
  talk.Say("isready");
  ASSERT_EQ(talk.Await(""), "readyok");
  TalkMadly(talk, 4, 100000);
}

}  // namespace
}  // namespace kibitz::uci
