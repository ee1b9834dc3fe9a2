// Threads that work together on one thing after another, quickly: between two calls they wait
// awake for a moment before they sleep, as a network's layers follow each other within
// microseconds.
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

// Waiting for a change, awake for a moment and then asleep.
class Signal {
 public:
  // Until changed() holds.
  template <typename Changed>
  void Await(Changed changed) {
    for (int look = 0; look < kLooks; ++look) {
      if (changed()) return;
      Relax();
    }
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, changed);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  // To be called after the change. Whoever is about to sleep has said so before it looks for the
  // last time: either it sees the change, or it is seen here.
  void Notify();

 private:
  static constexpr int kLooks = 4000;  // Some tens of microseconds.
  static void Relax();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> sleepers_ = 0;
};

class Team {
 public:
  // `threads` counts the caller's own; 0: one for each core.
  explicit Team(int threads = 0);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(i) for every i below count, in any order, and waits. One call at a time; tasks do
  // not throw and do not call Run. A worker that is late does not hold the others up.
  void Run(int64_t count, const std::function<void(int64_t)>& task);

 private:
  void Work();
  // Takes tasks of this round until none is left.
  void TakeTasks(uint32_t round);

  std::vector<std::thread> workers_;
  std::atomic<const std::function<void(int64_t)>*> task_ = nullptr;
  uint32_t rounds_ = 0;                              // Calls so far.
  alignas(64) std::atomic<uint64_t> open_ = 0;       // Round << 32 | tasks not taken yet.
  alignas(64) std::atomic<uint32_t> round_ = 0;      // What workers wait for; kEnd: leave.
  alignas(64) std::atomic<int64_t> unfinished_ = 0;  // Tasks of this round.
  Signal started_;
  Signal ended_;
};

}  // namespace kibitz::nn
