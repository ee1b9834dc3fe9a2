#include "arena/watchdog.h"

#include <algorithm>
#include <utility>

namespace kibitz::arena {

Watchdog::Watchdog(std::stop_token abandon)
    : abandon_(std::move(abandon)), on_abandon_(abandon_, [this] { StopNow(); }) {
  thread_ = std::thread([this] { Watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::stop_token Watchdog::Arm(TimePoint deadline) {
  const std::lock_guard lock(mutex_);
  source_ = std::stop_source();
  if (abandon_.stop_requested()) source_.request_stop();
  armed_ = true;
  deadline_ = deadline;
  // It wakes by itself for later deadlines.
  if (deadline < sleeps_until_) changed_.notify_all();
  return source_.get_token();
}

void Watchdog::Disarm() {
  const std::lock_guard lock(mutex_);
  armed_ = false;
}

void Watchdog::StopNow() {
  const std::lock_guard lock(mutex_);
  source_.request_stop();
}

void Watchdog::Watch() {
  std::unique_lock lock(mutex_);
  while (!quit_) {
    if (!armed_) {
      // Nothing to watch. The deadline before is as good a time to look again as any: only a move
      // with an earlier one must wake us.
      sleeps_until_ =
          std::max(deadline_, std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
    } else if (std::chrono::steady_clock::now() >= deadline_) {
      source_.request_stop();
      armed_ = false;
      continue;
    } else {
      sleeps_until_ = deadline_;
    }
    changed_.wait_until(lock, sleeps_until_);
    sleeps_until_ = TimePoint::min();  // Awake: it looks at everything.
  }
}

}  // namespace kibitz::arena
