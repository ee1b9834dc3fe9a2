// Several engines of one kind, asked from any thread. An engine that fails is restarted and asked
// again; the others continue.
//
//   UciPool pool({.command = {"stockfish"}}, {.engines = 4});
//   threads.ParallelFor(n, [&](size_t i) { labels[i] = pool.Ask({.start = boards[i]}, limits); });
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "oracles/engines/uci_client.h"

namespace kibitz::oracles {

struct PoolOptions {
  int engines = 1;
  int tries = 3;  // Of one question, each with a new engine; then its Error is thrown.
  // ucinewgame before each question or row of questions, so that answers do not depend on the
  // questions before.
  bool forget = true;
  // Why an answer is unusable; "" when it is usable. An unusable answer counts as a failure.
  std::function<std::string(const Answer&)> fault_of = {};
};

class UciPool {
 public:
  UciPool(EngineSpec spec, const PoolOptions& options);

  // Waits for a free engine; engines start when they are first needed. Throws Error.
  Answer Ask(const GameSoFar& game, const Limits& limits);
  // All by one engine, in order, with one ucinewgame before the first. When it fails, another one
  // is asked all of them.
  std::vector<Answer> AskInOrder(std::span<const GameSoFar> games, const Limits& limits);

  // Engines that have failed and were ended so far.
  int failures() const { return failures_; }

 private:
  std::unique_ptr<UciClient> Take();
  void GiveBack(std::unique_ptr<UciClient> engine);

  const EngineSpec spec_;
  const PoolOptions options_;
  std::atomic<int> failures_{0};
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<UciClient>> free_;  // Guarded by mutex_; null: not started.
};

}  // namespace kibitz::oracles
