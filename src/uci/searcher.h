// Thinks on a thread of its own and answers every search with exactly one "bestmove", whatever
// happens: in the order of the requests, within a moment of a stop, also while the network is still
// being loaded or cannot be.
//
// Three threads meet here: the caller's (requests), the worker's (the network), the alarm's (time
// limits). What they share is guarded by one mutex; a search answers once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "games/chess/board.h"
#include "players/player.h"
#include "uci/command.h"
#include "uci/options.h"
#include "uci/output.h"
#include "uci/report.h"
#include "uci/time_budget.h"

namespace kibitz::uci {

struct SearchRequest {
  oracles::GameSoFar game;
  bool refused = false;  // There is no game: "position" was refused. Answered by 0000.
  GoRequest go;
  EngineOptions options;  // As they were when it began.
  uint64_t seed = 0;      // Of this search's random draws.
  bool new_game = false;  // The player is to forget the game before.
  bool debug = false;     // More remarks.
};

// Loads the player of this name; throws Error.
using MakePlayer = std::function<std::unique_ptr<players::Player>(const players::PlayerName&)>;

class Searcher {
 public:
  // `output` must outlive it.
  Searcher(MakePlayer make, Output& output);
  // Stops everything, answers, and waits for the worker.
  ~Searcher();
  Searcher(const Searcher&) = delete;
  Searcher& operator=(const Searcher&) = delete;

  // Begins a search; one that runs is stopped and answers first.
  void Go(SearchRequest request);
  // Answers what runs.
  void Stop();
  void PonderHit();
  // Says "readyok": at once while a search runs or the network is there, else when it is loaded.
  void Ready(const EngineOptions& options);
  // Loads the player now. `on_failure`, if any, gets the message when it cannot be used.
  void Load(const EngineOptions& options, std::function<void(const std::string&)> on_failure);

  // Stops, and waits at most so long for the worker; whether it is done.
  bool Finish(std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;

  struct Search {
    SearchRequest request;
    Clock::time_point start;
    std::stop_source cancel;  // Of the network's work.
    // From here on guarded by Searcher::mutex_.
    bool thinking = false;  // The worker has it, and will answer soon after a cancel.
    bool answered = false;
    bool stopped = false;    // By the other side or the clock.
    bool pondering = false;  // No answer before the hit or a stop.
    bool root_read = false;  // The network has seen the position.
    bool soft_over = false;
    std::optional<Clock::time_point> soft;
    std::optional<Clock::time_point> hard;

    // The worker's own.
    std::optional<players::Answer> known;  // The last that the player told.
  };
  // A search, or without one the loading of a player.
  struct Job {
    std::shared_ptr<Search> search = {};
    players::PlayerName name = {};
    bool ready = false;  // Say readyok when it is loaded.
    std::function<void(const std::string&)> on_failure = {};
  };

  // On the worker's thread.
  void Work();
  void Run(Search& search);
  players::Player& Loaded(const players::PlayerName& name);
  void LoadOnly(const Job& job);
  // What the player answers; nothing when it was cut off before it saw the position.
  std::optional<players::Answer> Play(players::Player& player, Search& search);
  void Show(const Search& search, const players::Answer& answer);
  // Says why there is no move to play: the position was refused, or the game is over.
  bool SayWhyNoMove(const SearchRequest& request);
  void SayAll(const std::vector<std::string>& lines);
  bool IsWanted(const Search& search);
  bool BeginThinking(Search& search);
  bool ClaimAnswer(Search& search);  // False: it was answered already.
  void WaitUntilAsked(Search& search);

  // On the alarm's thread.
  void Watch();

  // With mutex_ held.
  void SetBudget(Search& search, Clock::time_point from);
  void Ring();
  void Cut(Search& search);
  void StopAll();
  void Answer(Search& search, std::optional<chess::Move> move,
              std::optional<chess::Move> ponder = {});
  void Enqueue(Job job);

  MakePlayer make_;
  Output& output_;

  std::mutex mutex_;
  std::condition_variable work_;    // A job came, or the end.
  std::condition_variable change_;  // A search was stopped, hit or answered; the worker is done.
  std::condition_variable alarm_change_;
  std::deque<Job> jobs_;
  std::deque<std::shared_ptr<Search>> open_;  // Not answered yet, oldest first.
  std::optional<players::PlayerName> loaded_;
  std::optional<Clock::time_point> alarm_;
  bool working_ = false;
  bool closing_ = false;

  std::unique_ptr<players::Player> player_;  // The worker's own.
  std::thread worker_;
  std::thread watch_;
};

}  // namespace kibitz::uci
