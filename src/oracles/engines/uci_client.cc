#include "oracles/engines/uci_client.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using chess::Move;
using chess::MoveStyle;

constexpr int kMaxLines = 512;  // Further ranks are dropped: no position has more moves.

// Whether `line` is the message `word`, alone or with arguments.
bool Is(std::string_view line, std::string_view word) {
  line = Trim(line);
  return line.starts_with(word) &&
         (line.size() == word.size() || line[word.size()] == ' ' || line[word.size()] == '\t');
}

}  // namespace

Board GameSoFar::Current() const {
  Board board = start;
  for (Move move : moves) board = board.After(move);
  return board;
}

std::vector<Board> GameSoFar::Boards() const {
  std::vector<Board> boards = {start};
  for (Move move : moves) boards.push_back(boards.back().After(move));
  return boards;
}

std::string PositionLine(const GameSoFar& game, MoveStyle style) {
  const std::string fen = ToFen(game.start);
  std::string line = fen == chess::kStartFen ? "position startpos" : "position fen " + fen;
  if (!game.moves.empty()) line += " moves";
  Board board = game.start;
  for (Move move : game.moves) {
    line += " " + ToText(board, move, style);
    board = board.After(move);
  }
  return line;
}

std::string GoLine(const Board& board, const Limits& limits, MoveStyle style) {
  std::string line = "go";
  const auto add = [&line](std::string_view key, auto value) {
    line += fmt::format(" {} {}", key, value);
  };
  if (limits.ponder) line += " ponder";
  if (limits.clocks) {
    add("wtime", limits.clocks->white_milliseconds);
    add("btime", limits.clocks->black_milliseconds);
    add("winc", limits.clocks->white_increment);
    add("binc", limits.clocks->black_increment);
    if (limits.clocks->moves_to_go) add("movestogo", *limits.clocks->moves_to_go);
  }
  if (limits.depth) add("depth", *limits.depth);
  if (limits.nodes) add("nodes", *limits.nodes);
  if (limits.mate) add("mate", *limits.mate);
  if (limits.move_milliseconds) add("movetime", *limits.move_milliseconds);
  if (limits.infinite) line += " infinite";
  if (!limits.search_moves.empty()) line += " searchmoves";
  for (Move move : limits.search_moves) line += " " + ToText(board, move, style);
  return line;
}

UciClient::UciClient(EngineSpec spec) : spec_(std::move(spec)) {
  if (spec_.chess960) spec_.options.emplace_back("UCI_Chess960", "true");
  Launch();
}

UciClient::~UciClient() { End(); }

void UciClient::Restart() {
  End();
  Launch();
}

void UciClient::Launch() {
  failed_ = false;
  thinking_ = false;
  finished_.reset();
  unanswered_pings_ = 0;
  options_.clear();
  author_.clear();
  process_ = std::make_unique<LineProcess>(
      ProcessOptions{.command = spec_.command, .folder = spec_.folder});
  name_ = process_->program();
  try {
    Shake();
  } catch (...) {
    process_.reset();
    throw;
  }
}

void UciClient::Shake() {
  const auto deadline = SecondsFromNow(spec_.start_seconds);
  Send("uci");
  while (true) {
    const std::string line = Next(deadline, "uciok");
    if (Is(line, "uciok")) break;
    ReadIdentity(line);
  }
  for (const auto& [name, value] : spec_.options) SendOption(name, value);
  AwaitReady(spec_.start_seconds);
}

void UciClient::ReadIdentity(std::string_view line) {
  line = Trim(line);
  constexpr std::string_view kName = "id name ";
  constexpr std::string_view kAuthor = "id author ";
  if (line.starts_with(kName)) name_ = Trim(line.substr(kName.size()));
  if (line.starts_with(kAuthor)) author_ = Trim(line.substr(kAuthor.size()));
  if (auto option = ParseOption(line)) options_.push_back(std::move(*option));
}

void UciClient::End() {
  if (process_ == nullptr) return;
  constexpr double kQuitSeconds = 1;
  try {
    if (!failed_) {
      process_->Send("quit", SecondsFromNow(kQuitSeconds));
      process_->WaitForEnd(SecondsFromNow(kQuitSeconds));
    }
  } catch (const Error&) {
    // It has ended, does not read, or Ctrl-C was pressed: it is killed.
  }
  process_.reset();
}

void UciClient::Fail(std::string_view what) {
  failed_ = true;
  throw Error("engine {}: {}; its last lines were{}", name_, what, process_->LastLines());
}

void UciClient::Send(const std::string& line) {
  CHECK(process_ != nullptr);
  try {
    process_->Send(line, SecondsFromNow(spec_.answer_seconds));
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::kInterrupted) throw;
    Fail(fmt::format("{} (it was being sent {})", error.message(), Quoted(line, 60)));
  }
}

std::string UciClient::Next(Clock::time_point deadline, std::string_view awaited) {
  std::optional<std::string> line;
  try {
    line = process_->Read(deadline);
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::kInterrupted) throw;
    Fail(fmt::format("{} while {} was awaited", error.message(), awaited));
  }
  if (!line) Fail(fmt::format("it hangs: {} was awaited in vain", awaited));
  return std::move(*line);
}

const UciOption* UciClient::FindOption(std::string_view name) const {
  const std::string wanted = LowerCase(name);
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const UciOption& option) {
    return LowerCase(option.name) == wanted;
  });
  return found == options_.end() ? nullptr : &*found;
}

void UciClient::SetOption(const std::string& name, const std::string& value) {
  CHECK(!thinking_);
  SendOption(name, value);
  AwaitReady(spec_.start_seconds);  // A new network may have to be loaded.
  const std::string wanted = LowerCase(name);
  std::erase_if(spec_.options, [&](const auto& old) { return LowerCase(old.first) == wanted; });
  spec_.options.emplace_back(name, value);
}

void UciClient::SendOption(const std::string& name, const std::string& value) {
  const UciOption* option = FindOption(name);
  if (option == nullptr) {
    std::vector<std::string> names;
    for (const UciOption& known : options_) names.push_back(known.name);
    const auto nearest = NearestName(name, names);
    throw Error("engine {} has no option {}{}", name_, Quoted(name),
                nearest ? fmt::format("; did you mean {}?", *nearest) : std::string());
  }
  if (const std::string reason = WhyNot(*option, value); !reason.empty()) {
    throw Error("engine {}, option {}: {} is not taken: {}", name_, option->name, Quoted(value),
                reason);
  }
  const bool button = option->type == UciOption::Type::kButton;
  Send(fmt::format("setoption name {}{}", option->name, button ? "" : " value " + value));
}

void UciClient::NewGame() {
  CHECK(!thinking_);
  Send("ucinewgame");
  AwaitReady(spec_.start_seconds);
}

void UciClient::Ping() { AwaitReady(spec_.answer_seconds); }

void UciClient::AwaitReady(double seconds) {
  const auto deadline = SecondsFromNow(seconds);
  Send("isready");
  ++unanswered_pings_;
  while (unanswered_pings_ > 0) {
    const std::string line = Next(deadline, "readyok");
    if (Is(line, "readyok")) {
      --unanswered_pings_;
    } else if (thinking_ && !finished_) {
      Take(line);
    }
  }
}

Answer UciClient::Ask(const GameSoFar& game, const Limits& limits, const OnInfo& on_info) {
  CHECK(!limits.infinite && !limits.ponder);
  Start(game, limits, on_info);
  const auto seconds = TimeFor(limits);
  while (true) {
    if (auto answer = Wait(seconds.value_or(spec_.silence_seconds))) return *answer;
    if (seconds) break;
  }
  Stop();
  auto answer = Wait(spec_.answer_seconds);
  if (!answer) Fail("it hangs: bestmove was awaited in vain after stop");
  answer->stopped = true;
  return *answer;
}

std::optional<double> UciClient::TimeFor(const Limits& limits) const {
  if (limits.seconds) return limits.seconds;
  if (limits.move_milliseconds) {
    return static_cast<double>(*limits.move_milliseconds) / 1000 + spec_.answer_seconds;
  }
  if (!limits.clocks) return std::nullopt;
  const bool white = board_.side_to_move() == chess::Color::kWhite;
  const Clocks& clocks = *limits.clocks;
  const int64_t left = white ? clocks.white_milliseconds : clocks.black_milliseconds;
  return static_cast<double>(std::max<int64_t>(left, 0)) / 1000 + spec_.answer_seconds;
}

void UciClient::Start(const GameSoFar& game, const Limits& limits, OnInfo on_info) {
  CHECK(!thinking_);
  const MoveStyle style = spec_.chess960 ? MoveStyle::kUciRook : MoveStyle::kUci;
  board_ = game.Current();
  answer_ = {};
  ranking_.clear();
  exact_.clear();
  finished_.reset();
  on_info_ = std::move(on_info);
  Send(PositionLine(game, style));
  Send(GoLine(board_, limits, style));
  thinking_ = true;
  heard_ = Clock::now();
  pinged_ = false;
}

std::optional<Answer> UciClient::Wait(double seconds) {
  CHECK(thinking_);
  const auto deadline = SecondsFromNow(seconds);
  while (!finished_) {
    const auto silence = heard_ + (SecondsFromNow(spec_.silence_seconds) - Clock::now());
    std::optional<std::string> line;
    try {
      line = process_->Read(std::min(deadline, silence));
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::kInterrupted) throw;
      Fail(fmt::format("{} while bestmove was awaited", error.message()));
    }
    if (line) Take(*line);
    // Looked at after every line: an engine may write without end.
    if (!finished_ && Clock::now() >= deadline) return std::nullopt;
    if (!line) WatchSilence();
  }
  thinking_ = false;
  return std::exchange(finished_, std::nullopt);
}

void UciClient::WatchSilence() {
  if (pinged_) Fail("it hangs: it thinks and answers isready no more");
  Send("isready");
  ++unanswered_pings_;
  pinged_ = true;
  heard_ = Clock::now();
}

void UciClient::Take(std::string_view line) {
  heard_ = Clock::now();
  pinged_ = false;
  if (Is(line, "info")) {
    TakeInfo(line);
  } else if (Is(line, "readyok")) {
    unanswered_pings_ = std::max(0, unanswered_pings_ - 1);
  } else if (Is(line, "bestmove")) {
    const auto best = ParseBestMove(line, board_);
    if (!best) Fail("its answer is no legal move: " + best.reason());
    if (!best->move && chess::HasLegalMove(board_)) {
      Fail(fmt::format("it found no move in {}, which has some", ToFen(board_)));
    }
    answer_.move = best->move;
    answer_.ponder = best->ponder;
    ListCandidates();
    finished_ = std::move(answer_);
  }
}

void UciClient::TakeInfo(std::string_view line) {
  const Info info = ParseInfo(line, board_);
  if (info.nodes) answer_.nodes = *info.nodes;
  if (info.milliseconds) answer_.milliseconds = *info.milliseconds;
  const int rank = info.multipv.value_or(1);
  if (rank >= 1 && rank <= kMaxLines && (info.score || !info.pv.empty())) {
    answer_.lines.resize(std::max(answer_.lines.size(), static_cast<size_t>(rank)));
    AnswerLine& kept = answer_.lines[static_cast<size_t>(rank) - 1];
    const bool exact = info.score && info.score->bound == Bound::kExact;
    const bool had_exact = kept.score && kept.score->bound == Bound::kExact;
    const AnswerLine said{info.depth.value_or(0), info.score, info.pv};
    if (exact || !had_exact) kept = said;
    if (!info.pv.empty()) NoteCandidate(static_cast<size_t>(rank), said);
  }
  if (on_info_) on_info_(info);
}

void UciClient::NoteCandidate(size_t rank, const AnswerLine& line) {
  ranking_.resize(std::max(ranking_.size(), rank));
  ranking_[rank - 1] = line.pv[0];
  if (!line.score || line.score->bound != Bound::kExact) return;
  std::erase_if(exact_, [&](const AnswerLine& other) { return other.pv[0] == line.pv[0]; });
  exact_.push_back(line);
}

void UciClient::ListCandidates() {
  if (answer_.move) ranking_.insert(ranking_.begin(), *answer_.move);
  for (Move move : ranking_) {
    const auto line = std::find_if(exact_.begin(), exact_.end(),
                                   [&](const AnswerLine& other) { return other.pv[0] == move; });
    if (line == exact_.end()) continue;
    answer_.candidates.push_back(std::move(*line));
    exact_.erase(line);
  }
  // If it switched to moves that it had no time to score: the last one that it scored.
  if (answer_.candidates.empty() && !exact_.empty()) answer_.candidates = {exact_.back()};
}

void UciClient::Stop() {
  if (thinking_ && !finished_) Send("stop");
}

void UciClient::PonderHit() {
  if (thinking_ && !finished_) Send("ponderhit");
}

}  // namespace kibitz::oracles
