// A UCI engine as a child process: starts it, asks about positions, ends it.
//
//   UciClient engine({.command = {"stockfish"}, .options = {{"MultiPV", "3"}}});
//   Answer answer = engine.Ask({.start = board}, {.nodes = 100000});
//   std::optional<int> centipawns = answer.lines[0].score->centipawns;     // For the side to move.
//
// An engine that crashes, hangs or answers nonsense causes an Error with the engine's name, what we
// waited for and its last lines; after that only Restart and the destructor may be called. One
// thread at a time. uci_pool.h has several engines and restarts them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "games/chess/board.h"
#include "oracles/engines/line_process.h"
#include "oracles/engines/uci_text.h"

namespace kibitz::oracles {

struct EngineSpec {
  std::vector<std::string> command;                               // Program and its arguments.
  std::vector<std::pair<std::string, std::string>> options = {};  // Set in this order.
  std::string folder = {};                                        // To start in; "": ours.
  bool chess960 = false;      // Castling as king takes rook; sets UCI_Chess960.
  double start_seconds = 30;  // To say uciok, and then, networks loaded, readyok.
  double answer_seconds = 5;  // To say readyok, and bestmove after stop.
  // After so long without output while it searches, we send isready, which it must answer.
  double silence_seconds = 30;
};

// Where a game began and the moves since; the engine sees repetitions.
struct GameSoFar {
  chess::Board start;
  std::vector<chess::Move> moves = {};

  chess::Board Current() const;
  // Every position, the start first.
  std::vector<chess::Board> Boards() const;
};

struct Clocks {
  int64_t white_milliseconds = 0;
  int64_t black_milliseconds = 0;
  int64_t white_increment = 0;  // Milliseconds a move.
  int64_t black_increment = 0;
  std::optional<int> moves_to_go = {};
};

struct Limits {
  std::optional<int64_t> nodes = {};
  std::optional<int> depth = {};
  std::optional<int> mate = {};
  std::optional<int64_t> move_milliseconds = {};
  std::optional<Clocks> clocks = {};
  bool infinite = false;                       // Until Stop.
  bool ponder = false;                         // Until PonderHit or Stop.
  std::vector<chess::Move> search_moves = {};  // Empty: all.
  // Our own limit for Ask, after which it sends stop. Nothing: the time that the other limits give
  // the engine, and no limit where they give none.
  std::optional<double> seconds = {};
};

// The engine's last line of one MultiPV rank. A bound does not replace an exact score.
struct AnswerLine {
  int depth = 0;
  std::optional<MoverScore> score;
  std::vector<chess::Move> pv;  // Legal move by move.
};

struct Answer {
  std::optional<chess::Move> move;  // Nothing only where there is no legal move.
  std::optional<chess::Move> ponder;
  std::vector<AnswerLine> lines;  // By rank, best first; as many as the engine sent.
  // The last exact line of each root move, in the engine's last order, `move` first if it has one:
  // a stopped engine has often changed ranks since it scored a move. Empty only when it has scored
  // nothing.
  std::vector<AnswerLine> candidates;
  int64_t nodes = 0;
  int64_t milliseconds = 0;  // As the engine counts.
  bool stopped = false;      // By Ask's time limit.
};

class UciClient {
 public:
  using OnInfo = std::function<void(const Info&)>;

  // Starts the engine, reads what it can do and sets the options. Throws Error.
  explicit UciClient(EngineSpec spec);
  // Sends quit and waits a moment; kills an engine that still runs or has failed.
  ~UciClient();
  UciClient(const UciClient&) = delete;
  UciClient& operator=(const UciClient&) = delete;

  // As the engine names itself; the program where it does not.
  const std::string& name() const { return name_; }
  const std::string& author() const { return author_; }
  std::span<const UciOption> options() const { return options_; }
  // Names are compared without case, as UCI says; null when it has none of this name.
  const UciOption* FindOption(std::string_view name) const;
  pid_t pid() const { return process_->pid(); }

  // Checked against what the engine declared. Kept over a Restart. Not while it thinks.
  void SetOption(const std::string& name, const std::string& value);
  void NewGame();
  // Asks isready and waits for the answer; also while it thinks.
  void Ping();

  // One question from start to end. Not with `infinite` or `ponder`.
  Answer Ask(const GameSoFar& game, const Limits& limits, const OnInfo& on_info = {});

  // The same in steps, for pondering and analysis. Between Start and the Answer it thinks.
  void Start(const GameSoFar& game, const Limits& limits, OnInfo on_info = {});
  // The answer; nothing when none has come after so many seconds.
  std::optional<Answer> Wait(double seconds);
  void Stop();
  void PonderHit();
  bool thinking() const { return thinking_; }

  // Ends the engine in any state and starts it again with the same options.
  void Restart();

 private:
  void Launch();
  void Shake();
  void ReadIdentity(std::string_view line);
  void SendOption(const std::string& name, const std::string& value);
  void End();
  void Send(const std::string& line);
  // The next line; throws when none comes in time.
  std::string Next(Clock::time_point deadline, std::string_view awaited);
  void AwaitReady(double seconds);
  // While it thinks: handles info lines and the answer.
  void Take(std::string_view line);
  void TakeInfo(std::string_view line);
  void NoteCandidate(size_t rank, const AnswerLine& line);
  void ListCandidates();
  void WatchSilence();
  // Seconds after which Ask sends stop.
  std::optional<double> TimeFor(const Limits& limits) const;
  [[noreturn]] void Fail(std::string_view what);

  EngineSpec spec_;
  std::unique_ptr<LineProcess> process_;
  std::string name_;
  std::string author_;
  std::vector<UciOption> options_;

  bool failed_ = false;
  bool thinking_ = false;
  chess::Board board_;                // The position it thinks about.
  Answer answer_;                     // As far as it has come.
  std::vector<chess::Move> ranking_;  // Root moves by rank, by the last info lines.
  std::vector<AnswerLine> exact_;     // The last exact line of each root move, newest last.
  std::optional<Answer> finished_;
  OnInfo on_info_;
  Clock::time_point heard_;  // When it last wrote a line.
  bool pinged_ = false;      // Since then.
  int unanswered_pings_ = 0;
};

// The "position" and "go" lines of a question.
std::string PositionLine(const GameSoFar& game, chess::MoveStyle style);
std::string GoLine(const chess::Board& board, const Limits& limits, chess::MoveStyle style);

}  // namespace kibitz::oracles
