#include "uci/searcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/perft.h"
#include "oracles/search/negamax.h"

namespace kibitz::uci {

using chess::Board;
using chess::Move;
using std::chrono::milliseconds;

namespace {

// What is played when the player was cut off before it saw the position: the best move by material.
std::optional<players::Answer> BlindAnswer(const SearchRequest& request) {
  if (request.refused) return std::nullopt;
  const std::vector<Move>& wanted = request.go.search_moves;
  for (const oracles::ScoredMove& scored : oracles::Negamax(request.game, {.depth = 1}).moves) {
    if (!wanted.empty() && std::ranges::find(wanted, scored.move) == wanted.end()) continue;
    players::Answer answer{.move = scored.move, .nodes = 1};
    answer.lines.push_back({.pv = {scored.move}, .centipawns = scored.score});
    if (scored.score == oracles::kMateScore - 1) {
      answer.lines[0].mate = oracles::Mate{.wins = true, .moves = 1};
    }
    return answer;
  }
  return std::nullopt;
}

// The reply that the best line expects.
std::optional<Move> PonderMove(const players::Answer& answer) {
  if (answer.lines.empty() || answer.lines[0].pv.size() < 2) return std::nullopt;
  return answer.lines[0].pv[1];
}

// The limits for the player. An engine player manages its own clock: it is told `overhead`
// milliseconds less than we have, since its answer still has to pass through us.
oracles::Limits LimitsOf(const GoRequest& go, int64_t overhead) {
  oracles::Limits limits;
  limits.nodes = go.nodes;
  if (go.depth) limits.depth = static_cast<int>(std::min<int64_t>(*go.depth, 1000));
  limits.move_milliseconds = go.movetime;
  if (go.white_time || go.black_time) {
    const int64_t other = go.white_time.value_or(go.black_time.value_or(0));
    const auto left = [&](std::optional<int64_t> time) {
      return std::max<int64_t>(time.value_or(other) - overhead, 1);
    };
    limits.clocks = oracles::Clocks{.white_milliseconds = left(go.white_time),
                                    .black_milliseconds = left(go.black_time),
                                    .white_increment = go.white_increment.value_or(0),
                                    .black_increment = go.black_increment.value_or(0)};
    if (go.moves_to_go) limits.clocks->moves_to_go = static_cast<int>(*go.moves_to_go);
  }
  limits.infinite = go.infinite;
  limits.ponder = go.ponder;
  limits.search_moves = go.search_moves;
  return limits;
}

}  // namespace

Searcher::Searcher(MakePlayer make, Output& output)
    : make_(std::move(make)),
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
  Enqueue({.search = search, .name = search->request.options.player});
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
  {
    const std::lock_guard lock(mutex_);
    if (open_.empty() && loaded_ != options.player) {
      Enqueue({.name = options.player, .ready = true});
      return;
    }
  }
  output_.Say("readyok");
}

void Searcher::Load(const EngineOptions& options,
                    std::function<void(const std::string&)> on_failure) {
  const std::lock_guard lock(mutex_);
  Enqueue({.name = options.player, .on_failure = std::move(on_failure)});
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
  const auto budget = TimeBudgetOf(search.request.go, search.request.game.Current().side_to_move(),
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
  // The worker may be busy loading a player: nobody waits for that.
  if (!search.thinking && open_.front().get() == &search) {
    const auto blind = BlindAnswer(search.request);
    if (blind) Show(search, *blind);
    if (!blind) SayWhyNoMove(search.request);
    Answer(search, blind ? blind->move : std::nullopt);
  }
}

void Searcher::Answer(Search& search, std::optional<Move> move, std::optional<Move> ponder) {
  if (search.answered) return;
  search.answered = true;
  std::erase_if(open_, [&](const auto& open) { return open.get() == &search; });
  const Board board = search.request.game.Current();
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
      LoadOnly(job);
    }
  }
}

void Searcher::LoadOnly(const Job& job) {
  try {
    Loaded(job.name);
  } catch (const std::exception& error) {
    output_.Remark(error.what());
    if (job.on_failure) job.on_failure(error.what());
  }
  if (job.ready) output_.Say("readyok");
}

players::Player& Searcher::Loaded(const players::PlayerName& name) {
  {
    const std::lock_guard lock(mutex_);
    if (loaded_ == name) return *player_;
    loaded_.reset();
  }
  if (name == players::PlayerName{}) {
    throw Error("nobody plays: set the option Model, or start with 'kibitz uci PLAYER'");
  }
  player_.reset();  // Two may not fit into memory; networks are kept by those who make players.
  player_ = make_(name);
  const std::lock_guard lock(mutex_);
  loaded_ = name;
  return *player_;
}

void Searcher::Run(Search& search) {
  std::optional<players::Answer> answer;
  bool broken = false;
  try {
    if (IsWanted(search) && !SayWhyNoMove(search.request)) {
      players::Player& player = Loaded(search.request.options.player);
      if (search.request.new_game) player.NewGame();
      if (BeginThinking(search)) answer = Play(player, search);
    }
  } catch (const std::exception& error) {
    output_.Remark(error.what());
    answer = search.known;
    broken = !answer;
  }
  if (!ClaimAnswer(search)) return;
  // Whoever measures must see that nobody plays: a game on other moves would pass for the player's.
  if (!answer && !broken) answer = BlindAnswer(search.request);
  if (answer) Show(search, *answer);
  WaitUntilAsked(search);
  const std::lock_guard lock(mutex_);
  if (answer) {
    Answer(search, answer->move, PonderMove(*answer));
  } else {
    Answer(search, std::nullopt);
  }
}

std::optional<players::Answer> Searcher::Play(players::Player& player, Search& search) {
  const SearchRequest& request = search.request;
  const auto on_progress = [&](const players::Answer& answer) {
    {
      const std::lock_guard lock(mutex_);
      search.root_read = true;
      if (search.soft_over) Cut(search);
    }
    search.known = answer;
    Show(search, answer);
  };
  players::Answer answer =
      player.Play({.game = request.game,
                   .limits = LimitsOf(request.go, request.options.move_overhead),
                   .lines = request.options.multipv,
                   .seed = request.seed,
                   .stop = search.cancel.get_token()},
                  on_progress);
  for (const std::string& remark : answer.remarks) output_.Remark(remark);
  if (!answer.move) return search.known;
  if (request.options.verbose_move_stats) {
    SayAll(MoveStatsLines(request.game.Current(), answer));
  }
  return answer;
}

void Searcher::Show(const Search& search, const players::Answer& answer) {
  const auto passed = std::chrono::duration_cast<milliseconds>(Clock::now() - search.start);
  SayAll(InfoLines(search.request.game, answer,
                   {.milliseconds = passed.count(),
                    .max_lines = static_cast<size_t>(search.request.options.multipv),
                    .show_wdl = search.request.options.show_wdl}));
}

void Searcher::SayAll(const std::vector<std::string>& lines) {
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

bool Searcher::SayWhyNoMove(const SearchRequest& request) {
  const Board board = request.game.Current();
  if (request.refused) {
    output_.Remark("go: the last position was refused");
  } else if (!chess::HasLegalMove(board)) {
    output_.Say(board.InCheck() ? "info depth 0 score mate 0" : "info depth 0 score cp 0");
  } else {
    return false;
  }
  return true;
}

bool Searcher::ClaimAnswer(Search& search) {
  const std::lock_guard lock(mutex_);
  search.thinking = true;
  return !search.answered;
}

void Searcher::WaitUntilAsked(Search& search) {
  std::unique_lock lock(mutex_);
  change_.wait(
      lock, [&] { return search.stopped || (!search.pondering && !search.request.go.infinite); });
}

}  // namespace kibitz::uci
