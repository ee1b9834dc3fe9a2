// Long work that clients watch: thoughts, moves, series of games. A bounded number runs, a bounded
// number waits, and work that nobody watches any more is stopped.
//
//   JobQueue jobs({.running = 2});
//   auto job = jobs.Start({.kind = "think"}, [](Job& self) { self.Send("done", {}); });
//   Reply reply = jobs.Watch(job);   // Streams its events.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "serve/http/event_log.h"
#include "serve/http/message.h"

namespace kibitz::serve {

using Json = nlohmann::ordered_json;

// As every reply writes JSON: on one line, bytes that are no UTF-8 replaced.
std::string Dump(const Json& json);

struct JobText {
  std::string kind = {};    // "think", "move", ...
  std::string title = {};   // For people.
  bool background = false;  // Goes on when nobody watches.
};

enum class JobState : uint8_t { kWaiting, kRunning, kDone, kFailed, kStopped };
std::string_view NameOf(JobState state);

class Job {
 public:
  Job(std::string id, JobText text);

  const std::string& id() const { return id_; }
  const JobText& text() const { return text_; }
  std::stop_token stop() const { return stop_.get_token(); }
  void Stop() { stop_.request_stop(); }
  // An event for all who watch.
  void Send(std::string_view event, const Json& data) { events_->Append(event, Dump(data)); }
  const std::shared_ptr<EventLog>& events() const { return events_; }

 private:
  friend class JobQueue;
  const std::string id_;
  const JobText text_;
  std::stop_source stop_;
  std::shared_ptr<EventLog> events_ = std::make_shared<EventLog>();
  // Guarded by the queue's mutex.
  JobState state_ = JobState::kWaiting;
  int watchers_ = 0;
};

struct JobQueueOptions {
  int running = 2;   // At once.
  int waiting = 64;  // At most; more get 503.
  int kept = 32;     // Finished ones that can still be read.
};

class JobQueue {
 public:
  using Work = std::function<void(Job&)>;

  explicit JobQueue(const JobQueueOptions& options);
  // Stops all.
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  // The event "job" with its id comes first. An Error that `work` throws becomes the event "error".
  // Nothing when too many wait.
  std::shared_ptr<Job> Start(JobText text, Work work);
  // A reply with the job's events from the first on. When the last who watches leaves, the job is
  // stopped, unless it is a background job.
  Reply Watch(const std::shared_ptr<Job>& job);
  std::shared_ptr<Job> Find(const std::string& id) const;
  Json List() const;

 private:
  struct Waiting {
    std::shared_ptr<Job> job;
    Work work;
  };
  void WorkOn();
  void RunOne(Waiting& next);
  void Left(const std::shared_ptr<Job>& job);
  void TellPlaces();  // With mutex_ held.

  const JobQueueOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Waiting> waiting_;             // Guarded by mutex_, as all below.
  std::vector<std::shared_ptr<Job>> jobs_;  // Oldest first.
  uint64_t next_id_ = 1;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kibitz::serve
