#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>

namespace kibitz {

int HardwareThreads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) {
  threads_.reserve(static_cast<size_t>(std::max(1, threads)));
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Enqueue(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ThreadPool::Work() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void ThreadPool::ParallelFor(size_t count, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next{0};
  auto run = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) body(i);
    } catch (...) {
      next = count;
      throw;
    }
  };
  std::vector<std::future<void>> workers;
  const size_t width = std::min(count, threads_.size());
  workers.reserve(width);
  for (size_t i = 0; i < width; ++i) workers.push_back(Submit(run));
  std::exception_ptr first;
  for (auto& worker : workers) {
    try {
      worker.get();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace kibitz
