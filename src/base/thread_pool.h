// A fixed set of threads and two ways to use it: submit a task, or split a loop.
//
//   ThreadPool pool(HardwareThreads());
//   pool.ParallelFor(games.size(), [&](size_t i) { results[i] = Play(games[i]); });
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace kibitz {

// Cores this process may use, at least 1.
int HardwareThreads();

class ThreadPool {
 public:
  // At least one thread.
  explicit ThreadPool(int threads);
  // Finishes what was submitted.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }

  // Runs the task on some thread. Its exception, if any, comes out of the future.
  template <typename Function>
  auto Submit(Function function) -> std::future<std::invoke_result_t<Function>> {
    auto task =
        std::make_shared<std::packaged_task<std::invoke_result_t<Function>()>>(std::move(function));
    auto future = task->get_future();
    Enqueue([task] { (*task)(); });
    return future;
  }

  // Calls body(i) for every i below count, in any order, and waits. After an exception no new
  // calls start, and the first exception is rethrown. Must not be called from a pool thread.
  void ParallelFor(size_t count, const std::function<void(size_t)>& body);

 private:
  void Enqueue(std::function<void()> task);
  void Work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;  // Guarded by mutex_.
  bool stop_ = false;                        // Guarded by mutex_.
  std::vector<std::thread> threads_;
};

}  // namespace kibitz
