// A stop that comes at a deadline, or when the whole game is not wanted any more, for one thread
// that asks players for moves. Arming it costs a microsecond.
//
//   Watchdog watchdog(abandon);
//   const Answer answer = player.Play({.stop = watchdog.Arm(deadline)});
//   watchdog.Disarm();
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace kibitz::arena {

class Watchdog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Watchdog(std::stop_token abandon);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  std::stop_token Arm(TimePoint deadline);
  void Disarm();
  bool abandoned() const { return abandon_.stop_requested(); }

 private:
  void Watch();
  void StopNow();

  std::stop_token abandon_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::stop_source source_;  // Of the current move. Guarded by mutex_, as all below.
  bool armed_ = false;
  bool quit_ = false;
  TimePoint deadline_ = {};
  TimePoint sleeps_until_ = TimePoint::max();
  std::stop_callback<std::function<void()>> on_abandon_;
  std::thread thread_;
};

}  // namespace kibitz::arena
