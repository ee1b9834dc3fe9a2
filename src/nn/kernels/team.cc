#include "nn/kernels/team.h"

#include "base/check.h"
#include "base/thread_pool.h"

namespace kibitz::nn {
namespace {

// Never the number of a round.
constexpr uint32_t kEnd = 0xffffffff;
// About two microseconds of one thread.
constexpr int64_t kFewMultiplyAdds = int64_t{1} << 17;

}  // namespace

void Signal::Relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

void Signal::Notify() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_relaxed) == 0) return;
  { const std::lock_guard lock(mutex_); }
  wake_.notify_all();
}

Team::Team(int threads) {
  if (threads <= 0) threads = HardwareThreads();
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { Work(); });
}

Team::~Team() {
  round_.store(kEnd, std::memory_order_release);
  started_.Notify();
  for (auto& worker : workers_) worker.join();
}

void Team::Run(int64_t count, const std::function<void(int64_t)>& task) {
  if (workers_.empty() || count <= 1) {
    for (int64_t i = 0; i < count; ++i) task(i);
    return;
  }
  CHECK(count < int64_t{1} << 32);
  rounds_ = rounds_ + 1 == kEnd ? 1 : rounds_ + 1;
  task_.store(&task, std::memory_order_relaxed);
  unfinished_.store(count, std::memory_order_relaxed);
  open_.store(uint64_t{rounds_} << 32 | static_cast<uint64_t>(count), std::memory_order_release);
  round_.store(rounds_, std::memory_order_release);
  started_.Notify();
  TakeTasks(rounds_);
  ended_.Await([&] { return unfinished_.load(std::memory_order_acquire) == 0; });
}

void Team::Run(int64_t count, int64_t multiply_adds, const std::function<void(int64_t)>& task) {
  if (multiply_adds >= kFewMultiplyAdds) return Run(count, task);
  for (int64_t i = 0; i < count; ++i) task(i);
}

// Run does not return while a worker holds a task. A late worker finds another round or no open
// task: both are in one atomic, so it cannot mix two rounds.
void Team::TakeTasks(uint32_t round) {
  uint64_t open = open_.load(std::memory_order_acquire);
  while (open >> 32 == round && (open & 0xffffffff) != 0) {
    if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel)) continue;
    (*task_.load(std::memory_order_relaxed))(static_cast<int64_t>(open & 0xffffffff) - 1);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) ended_.Notify();
    open = open_.load(std::memory_order_acquire);
  }
}

void Team::Work() {
  uint32_t round = 0;
  while (true) {
    started_.Await([&] { return round_.load(std::memory_order_acquire) != round; });
    round = round_.load(std::memory_order_acquire);
    if (round == kEnd) return;
    TakeTasks(round);
  }
}

}  // namespace kibitz::nn
