#include "uci/searcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/random.h"
#include "base/thread_pool.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"

namespace kibitz::uci {
namespace {

using chess::Board;
using chess::Move;
using decoder::Thought;
using std::chrono::milliseconds;

// The number of threads is put in: a program that sets the default must not make it load again.
nn::NetworkOptions NetworkOf(const EngineOptions& options) {
  nn::NetworkOptions network = options.network;
  if (network.threads == 0) network.threads = HardwareThreads();
  return network;
}

// When nothing is known: any allowed move.
std::optional<Move> AnyMove(const Board& board, Allowed allowed) {
  if (!allowed.empty()) return allowed.front();
  const chess::MoveList moves = chess::LegalMoves(board);
  if (moves.empty()) return std::nullopt;
  return moves[0];
}

// The smaller of two limits, where 0 is none.
int Smaller(int option, std::optional<int64_t> limit) {
  if (!limit) return option;
  const int asked = static_cast<int>(std::min<int64_t>(*limit, 1 << 20));
  return option == 0 ? asked : std::min(option, asked);
}

// The reply that the best line expects.
std::optional<Move> PonderMove(std::span<const Line> lines) {
  if (lines.empty() || lines[0].pv.size() < 2) return std::nullopt;
  return lines[0].pv[1];
}

// Another for each search, the same in each run.
uint64_t SeedOf(const SearchRequest& request) {
  return Rng({.seed = static_cast<uint64_t>(request.options.seed),
              .sample = request.number,
              .purpose = Purpose("uci")})
      .Next();
}

}  // namespace

Searcher::Searcher(LoadThinker load, Output& output)
    : load_(std::move(load)),
      output_(output),
      worker_([this] { Work(); }),
      watch_([this] { Watch(); }) {}

Searcher::~Searcher() {
  {
    const std::lock_guard lock(mutex_);
    StopAll();
    closing_ = true;
  }
  work_.notify_all();
  alarm_change_.notify_all();
  worker_.join();
  watch_.join();
}

void Searcher::Go(SearchRequest request) {
  auto search = std::make_shared<Search>();
  search->request = std::move(request);
  search->start = Clock::now();
  const std::lock_guard lock(mutex_);
  StopAll();
  search->pondering = search->request.go.ponder;
  if (!search->pondering) SetBudget(*search, search->start);
  open_.push_back(search);
  Enqueue({search, NetworkOf(search->request.options)});
}

void Searcher::Stop() {
  const std::lock_guard lock(mutex_);
  StopAll();
}

void Searcher::PonderHit() {
  const std::lock_guard lock(mutex_);
  if (open_.empty() || !open_.back()->pondering) return;
  open_.back()->pondering = false;
  SetBudget(*open_.back(), Clock::now());
  change_.notify_all();
}

void Searcher::Ready(const EngineOptions& options) {
  const nn::NetworkOptions network = NetworkOf(options);
  {
    const std::lock_guard lock(mutex_);
    if (open_.empty() && loaded_ != network) {
      Enqueue({nullptr, network});
      return;
    }
  }
  output_.Say("readyok");
}

bool Searcher::Finish(milliseconds patience) {
  std::unique_lock lock(mutex_);
  StopAll();
  // What is only to be loaded need not be any more.
  std::erase_if(jobs_, [](const Job& job) { return job.search == nullptr; });
  return change_.wait_for(lock, patience, [&] { return jobs_.empty() && !working_; });
}

void Searcher::Enqueue(Job job) {
  // While a network is loaded a hasty program may ask and stop any number of times.
  std::erase_if(jobs_,
                [](const Job& old) { return old.search != nullptr && old.search->answered; });
  jobs_.push_back(std::move(job));
  work_.notify_all();
}

// The clock.

void Searcher::SetBudget(Search& search, Clock::time_point from) {
  const auto budget = TimeBudgetOf(search.request.go, search.request.board.side_to_move(),
                                   milliseconds(search.request.options.move_overhead));
  if (!budget) return;
  search.soft = from + budget->soft;
  search.hard = from + budget->hard;
  alarm_ = search.soft;
  alarm_change_.notify_all();
}

void Searcher::Watch() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (!alarm_) {
      alarm_change_.wait(lock);
    } else if (Clock::now() >= *alarm_) {
      alarm_.reset();
      Ring();
    } else {
      const Clock::time_point until = *alarm_;
      alarm_change_.wait_until(lock, until);
    }
  }
}

void Searcher::Ring() {
  if (open_.empty() || !open_.back()->soft) return;
  Search& search = *open_.back();
  if (!search.root_read && Clock::now() < *search.hard) {
    search.soft_over = true;
    alarm_ = search.hard;
    return;
  }
  Cut(search);
}

void Searcher::StopAll() {
  const auto searches = open_;  // Cut takes those away that it can answer.
  for (const auto& search : searches) Cut(*search);
}

void Searcher::Cut(Search& search) {
  search.stopped = true;
  search.cancel.request_stop();
  change_.notify_all();
  // The worker may be busy loading a network: nobody waits for that.
  if (!search.thinking && open_.front().get() == &search) {
    Answer(search, AnyMove(search.request.board, search.allowed()));
  }
}

void Searcher::Answer(Search& search, std::optional<Move> move, std::optional<Move> ponder) {
  if (search.answered) return;
  search.answered = true;
  std::erase_if(open_, [&](const auto& open) { return open.get() == &search; });
  const Board& board = search.request.board;
  // A position without legal moves is answered by UCI's null move.
  std::string line = "bestmove " + (move ? ToText(board, *move) : std::string("0000"));
  if (move && ponder) line += " ponder " + ToText(board.After(*move), *ponder);
  output_.Say(line);
  change_.notify_all();
}

// The worker.

void Searcher::Work() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      working_ = false;
      change_.notify_all();
      work_.wait(lock, [&] { return closing_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      if (closing_ && job.search == nullptr) continue;
      working_ = true;
    }
    if (job.search != nullptr) {
      Run(*job.search);
    } else {
      LoadForReady(job.network);
    }
  }
}

void Searcher::LoadForReady(const nn::NetworkOptions& network) {
  try {
    Loaded(network);
  } catch (const std::exception& error) {
    output_.Remark(error.what());
  }
  output_.Say("readyok");
}

Thinker& Searcher::Loaded(const nn::NetworkOptions& network) {
  {
    const std::lock_guard lock(mutex_);
    if (loaded_ == network) return *thinker_;
    loaded_.reset();
  }
  thinker_.reset();  // Two may not fit into memory.
  thinker_ = load_(network);
  const std::lock_guard lock(mutex_);
  loaded_ = network;
  return *thinker_;
}

void Searcher::Run(Search& search) {
  const Board& board = search.request.board;
  std::vector<Line> lines;
  try {
    if (!chess::HasLegalMove(board)) {
      output_.Say(board.InCheck() ? "info depth 0 score mate 0" : "info depth 0 score cp 0");
    } else if (IsWanted(search)) {
      Thinker& thinker = Loaded(NetworkOf(search.request.options));
      const bool instinct = search.request.options.mode == Mode::kInstinct;
      if (BeginThinking(search)) {
        lines = instinct ? Predict(thinker, search) : Think(thinker, search);
      }
    }
  } catch (const std::exception& error) {
    output_.Remark(error.what());
  }
  WaitUntilAsked(search);
  std::optional<Move> move = AnyMove(board, search.allowed());
  if (!lines.empty()) move = lines[0].pv[0];
  const std::lock_guard lock(mutex_);
  Answer(search, move, PonderMove(lines));
}

std::vector<Line> Searcher::Think(Thinker& thinker, Search& search) {
  const SearchRequest& request = search.request;
  const decoder::ThinkOptions options{
      .final_temperature = request.options.temperature,
      .max_variations = request.options.max_variations,
      .max_depth = Smaller(request.options.max_depth, request.go.depth),
      .seed = SeedOf(request),
      .stop = search.cancel.get_token()};
  const decoder::ThoughtListener listener{
      .on_root = [&](const Thought& thought) { RootWasRead(search, thought); },
      .on_value = [&](const Thought& thought) { ValueWasWritten(search, thought); }};
  const Thought thought = thinker.Think(request.board, options, listener);
  RemarkOn(search, thought);
  const auto best = uci::MoveOf(thought, search.allowed());
  if (!best) return {};
  std::vector<Line> lines = LinesOf(thought, search.allowed(), best);
  Show(search, lines, NodesOf(thought));
  return lines;
}

void Searcher::RootWasRead(Search& search, const Thought& thought) {
  {
    const std::lock_guard lock(mutex_);
    search.root_read = true;
    if (search.soft_over) Cut(search);
  }
  const auto max = static_cast<size_t>(search.request.options.multipv);
  if (max > 1) {
    SayAll(PolicyLines(search.request.board, thought.instinct, search.allowed(), max));
  }
  for (const decoder::Candidate& candidate : thought.instinct) {
    if (!candidate.move || !IsAllowed(search.allowed(), *candidate.move)) continue;
    const Line line{{*candidate.move}, {}};
    Show(search, {&line, 1}, 0);
    return;
  }
}

void Searcher::ValueWasWritten(Search& search, const Thought& thought) {
  const int64_t nodes = NodesOf(thought);
  const auto& max = search.request.go.nodes;
  if (max && nodes >= *max) search.cancel.request_stop();
  Show(search, LinesOf(thought, search.allowed()), nodes);
}

std::vector<Line> Searcher::Predict(Thinker& thinker, Search& search) {
  const SearchRequest& request = search.request;
  const decoder::Prediction prediction =
      thinker.Predict(request.board, {.temperature = request.options.temperature,
                                      .legal_only = true,
                                      .value = true,
                                      .seed = SeedOf(request),
                                      .stop = search.cancel.get_token()});
  const auto chosen = uci::MoveOf(prediction, search.allowed());
  if (!chosen) return {};
  const auto max = static_cast<size_t>(request.options.multipv);
  std::vector<Line> lines = LinesOf(prediction, search.allowed(), *chosen);
  SayAll(PolicyLines(request.board, prediction.candidates, search.allowed(), max));
  Show(search, lines, 1);
  return lines;
}

void Searcher::Show(const Search& search, std::span<const Line> lines, int64_t nodes) {
  const auto passed = std::chrono::duration_cast<milliseconds>(Clock::now() - search.start);
  SayAll(InfoLines(search.request.board, lines,
                   {.nodes = nodes,
                    .milliseconds = passed.count(),
                    .max_lines = static_cast<size_t>(search.request.options.multipv),
                    .show_wdl = search.request.options.show_wdl}));
}

void Searcher::RemarkOn(const Search& search, const Thought& thought) {
  if (const int64_t beyond = MovesBeyond(thought); beyond > 0) {
    output_.Remark(fmt::format("{} moves of the variations were not legal and were cut", beyond));
  }
  if (!search.request.debug) return;
  const decoder::ThoughtStats& stats = thought.stats;
  output_.Remark(fmt::format(
      "{} variations, {} tokens in {} passes, {} of {} drafted tokens accepted, {:.3f} s",
      thought.variations.size(), stats.written_tokens, stats.passes, stats.accepted_tokens,
      stats.drafted_tokens, stats.seconds));
}

void Searcher::SayAll(std::span<const std::string> lines) {
  for (const std::string& line : lines) output_.Say(line);
}

bool Searcher::IsWanted(const Search& search) {
  const std::lock_guard lock(mutex_);
  return !search.answered && !search.stopped;
}

bool Searcher::BeginThinking(Search& search) {
  const std::lock_guard lock(mutex_);
  search.thinking = !search.answered && !search.stopped;
  return search.thinking;
}

void Searcher::WaitUntilAsked(Search& search) {
  std::unique_lock lock(mutex_);
  change_.wait(
      lock, [&] { return search.stopped || (!search.pondering && !search.request.go.infinite); });
}

}  // namespace kibitz::uci
