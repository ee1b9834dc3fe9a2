// A thread pool with little latency for a network's layers, which follow each other within
// microseconds: between two calls its threads spin for a moment before they sleep.
//
//   Team team(4);
//   team.Run(tasks.size(), [&](int64_t i) { Do(tasks[i]); });
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kibitz::nn {

// Waits for a condition: spins for a moment, then sleeps.
class Signal {
 public:
  // Returns when changed() holds.
  template <typename Changed>
  void Await(Changed changed) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (changed()) return;
      Relax();
    }
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, changed);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  // To be called after the change. A waiter counts itself as a sleeper before its last check, so
  // either it sees the change, or Notify sees it.
  void Notify();

 private:
  static constexpr int kSpins = 4000;  // Some tens of microseconds.
  static void Relax();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> sleepers_ = 0;
};

class Team {
 public:
  // `threads` includes the caller's; 0: one for each core.
  explicit Team(int threads = 0);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(i) for every i below count, in any order, and waits. One call at a time; tasks do
  // not throw and do not call Run. A late worker delays nobody.
  void Run(int64_t count, const std::function<void(int64_t)>& task);
  // The same; the caller does all of it where so few multiply-adds are not worth waking others.
  void Run(int64_t count, int64_t multiply_adds, const std::function<void(int64_t)>& task);

 private:
  void Work();
  // Takes tasks of this round until none is left.
  void TakeTasks(uint32_t round);

  std::vector<std::thread> workers_;
  std::atomic<const std::function<void(int64_t)>*> task_ = nullptr;
  uint32_t rounds_ = 0;                              // Calls so far.
  alignas(64) std::atomic<uint64_t> open_ = 0;       // Round << 32 | tasks not taken yet.
  alignas(64) std::atomic<uint32_t> round_ = 0;      // Workers wait for it to change; kEnd: exit.
  alignas(64) std::atomic<int64_t> unfinished_ = 0;  // Tasks of this round.
  Signal started_;
  Signal ended_;
};

}  // namespace kibitz::nn
