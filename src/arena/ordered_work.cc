#include "arena/ordered_work.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"

namespace kibitz::arena {
namespace {

constexpr int64_t kRoundPieces = 32;  // Of a rank, between exchanges where the work may end early.

class Crew {
 public:
  Crew(int64_t first, int64_t count, const WorkOptions& options, const DoPiece& work)
      : options_(options),
        work_(work),
        next_(first),
        end_(first + count),
        working_(options.threads) {}

  // False when `take` had enough.
  bool Run(int64_t first, const TakeResult& take) {
    int64_t number = first;
    bool more = true;
    const bool shared = options_.journal != nullptr && options_.journal->shared();
    // What the journal has first: it may be enough, and then nothing is begun.
    const bool reports = !shared || options_.journal->ranks();
    for (; reports && more && number < end_ && Kept(number) != nullptr; ++number) {
      more = take(number, *Kept(number));
      if (options_.progress != nullptr) options_.progress->AddKept(1);
    }
    if (!more || number == end_) return more;
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < options_.threads; ++worker) {
      threads.emplace_back([this, worker] { Work(worker); });
    }
    if (shared) {
      AwaitOwn();
      threads.clear();
      if (failure_) std::rethrow_exception(failure_);
      options_.journal->Exchange();
    }
    for (; more && number < end_; ++number) {
      const std::optional<Json> result = Await(number);
      more = result && take(number, *result);
      if (result && options_.progress != nullptr) Count(number);
    }
    stop_.request_stop();
    threads.clear();  // Joins.
    if (failure_) std::rethrow_exception(failure_);
    return more;
  }

 private:
  // Until all pieces of this process are done, or a failure.
  void AwaitOwn() {
    std::unique_lock lock(mutex_);
    while (working_ > 0) {
      if (Interrupted() && !failure_) Interrupt();
      finished_.wait_for(lock, std::chrono::milliseconds(50));
    }
  }

  void Interrupt() {
    failure_ = std::make_exception_ptr(
        Error("interrupted; what is finished is kept where --out was given: the same command "
              "goes on from there",
              Error::Kind::kInterrupted));
    stop_.request_stop();
  }

  // Of the journal; null when it has none.
  const Json* Kept(int64_t number) const {
    return options_.journal == nullptr ? nullptr : options_.journal->Find(number);
  }

  void Count(int64_t number) {
    if (Kept(number) != nullptr) {
      options_.progress->AddKept(1);
    } else {
      options_.progress->Add(1);
    }
  }

  // Nothing after a failure, Ctrl-C or the options' stop.
  std::optional<Json> Await(int64_t number) {
    if (const Json* known = Kept(number)) return *known;
    std::unique_lock lock(mutex_);
    while (true) {
      if (const auto found = done_.find(number); found != done_.end()) {
        std::optional<Json> result = std::move(found->second);
        done_.erase(found);
        return result;
      }
      if (failure_) return std::nullopt;
      if (options_.stop.stop_requested()) {
        stop_.request_stop();
        return std::nullopt;
      }
      if (Interrupted()) {
        Interrupt();
        return std::nullopt;
      }
      if (working_ == 0) {
        throw Error("piece {} is in the journal of no rank; is --out on storage that all share?",
                    number);
      }
      finished_.wait_for(lock, std::chrono::milliseconds(50));
    }
  }

  std::optional<int64_t> Claim() {
    const std::lock_guard lock(mutex_);
    const auto passed = [this](int64_t number) {
      return Kept(number) != nullptr ||
             (options_.journal != nullptr && !options_.journal->Mine(number));
    };
    while (next_ < end_ && passed(next_)) ++next_;
    if (next_ >= end_ || stop_.stop_requested() || failure_) return std::nullopt;
    return next_++;
  }

  void Work(int worker) {
    WorkThrough(worker);
    const std::lock_guard lock(mutex_);
    --working_;
    finished_.notify_all();
  }

  void WorkThrough(int worker) {
    try {
      while (const std::optional<int64_t> number = Claim()) {
        std::optional<Json> result =
            work_({.number = *number, .worker = worker, .stop = stop_.get_token()});
        if (!result) return;
        if (options_.journal != nullptr) options_.journal->Append(*number, *result);
        const std::lock_guard lock(mutex_);
        done_.emplace(*number, std::move(*result));
        finished_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_.request_stop();
      finished_.notify_all();
    }
  }

  const WorkOptions& options_;
  const DoPiece& work_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable finished_;
  int64_t next_;  // Guarded by mutex_, as all below.
  const int64_t end_;
  std::map<int64_t, Json> done_;  // Not taken yet.
  int working_ = 0;               // Threads.
  std::exception_ptr failure_;
};

}  // namespace

void DoInOrder(int64_t first, int64_t count, const WorkOptions& options, const DoPiece& work,
               const TakeResult& take) {
  CHECK(options.threads >= 1);
  const bool ranks = options.journal != nullptr && options.journal->ranks();
  const int64_t end = first + count;
  const int64_t round =
      ranks && options.ends_early ? kRoundPieces * options.journal->processes() : count;
  for (int64_t begin = first; begin < end; begin += round) {
    Crew crew(begin, std::min(round, end - begin), options, work);
    if (!crew.Run(begin, take)) return;
  }
}

}  // namespace kibitz::arena
