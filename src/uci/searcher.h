// Searches on its own thread and answers every "go" with exactly one "bestmove": in the order of
// the requests, soon after a stop, also while the network loads or when it cannot be loaded.
//
// Three threads: the caller's (requests), the worker (the network), the alarm (time limits). One
// mutex guards what they share; a search answers once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "games/chess/board.h"
#include "uci/command.h"
#include "uci/options.h"
#include "uci/output.h"
#include "uci/report.h"
#include "uci/thinker.h"
#include "uci/time_budget.h"

namespace kibitz::uci {

struct SearchRequest {
  chess::Board board;
  GoRequest go;
  EngineOptions options;  // As they were when it began.
  uint64_t number = 0;    // Of the search, for its draws.
  bool debug = false;     // More remarks.
};

class Searcher {
 public:
  // `output` must outlive it.
  Searcher(LoadThinker load, Output& output);
  // Stops everything, answers, and waits for the worker.
  ~Searcher();
  Searcher(const Searcher&) = delete;
  Searcher& operator=(const Searcher&) = delete;

  // Starts a search; one that is running is stopped and answers first.
  void Go(SearchRequest request);
  // Stops and answers the running search.
  void Stop();
  void PonderHit();
  // Answers "readyok": at once while a search runs or when the network is loaded, else once it is.
  void Ready(const EngineOptions& options);

  // Stops, and waits at most `patience` for the worker. Whether it has finished.
  bool Finish(std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;

  struct Search {
    SearchRequest request;
    Clock::time_point start;
    std::stop_source cancel;  // Of the network's work.
    // From here on guarded by Searcher::mutex_.
    bool thinking = false;  // The worker runs it, and answers soon after a cancel.
    bool answered = false;
    bool stopped = false;    // By the chess program or the clock.
    bool pondering = false;  // No answer before "ponderhit" or "stop".
    bool root_read = false;  // The network has read the position.
    bool soft_over = false;
    std::optional<Clock::time_point> soft;
    std::optional<Clock::time_point> hard;

    Allowed allowed() const { return request.go.search_moves; }
  };
  // A search; without one, only loads the network.
  struct Job {
    std::shared_ptr<Search> search;
    nn::NetworkOptions network;
  };

  // On the worker's thread.
  void Work();
  void Run(Search& search);
  Thinker& Loaded(const nn::NetworkOptions& network);
  void LoadForReady(const nn::NetworkOptions& network);
  // The candidates, the move to play first; none when stopped before the network read the root.
  std::vector<Line> Think(Thinker& thinker, Search& search);
  std::vector<Line> Predict(Thinker& thinker, Search& search);
  void RootWasRead(Search& search, const decoder::Thought& thought);
  void ValueWasWritten(Search& search, const decoder::Thought& thought);
  void Show(const Search& search, std::span<const Line> lines, int64_t nodes);
  void RemarkOn(const Search& search, const decoder::Thought& thought);
  void SayAll(std::span<const std::string> lines);
  bool IsWanted(const Search& search);
  bool BeginThinking(Search& search);
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

  LoadThinker load_;
  Output& output_;

  std::mutex mutex_;
  std::condition_variable work_;    // A new job, or the end.
  std::condition_variable change_;  // A search was stopped, hit or answered; the worker is done.
  std::condition_variable alarm_change_;
  std::deque<Job> jobs_;
  std::deque<std::shared_ptr<Search>> open_;  // Not answered yet, oldest first.
  std::optional<nn::NetworkOptions> loaded_;
  std::optional<Clock::time_point> alarm_;
  bool working_ = false;
  bool closing_ = false;

  std::unique_ptr<Thinker> thinker_;  // The worker's own.
  std::thread worker_;
  std::thread watch_;
};

}  // namespace kibitz::uci
