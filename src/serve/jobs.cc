#include "serve/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace kibitz::serve {

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string_view NameOf(JobState state) {
  switch (state) {
    case JobState::kWaiting:
      return "waiting";
    case JobState::kRunning:
      return "running";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      return "failed";
    default:
      return "stopped";
  }
}

Job::Job(std::string id, JobText text) : id_(std::move(id)), text_(std::move(text)) {}

JobQueue::JobQueue(const JobQueueOptions& options) : options_(options) {
  for (int i = 0; i < options_.running; ++i) threads_.emplace_back([this] { WorkOn(); });
}

JobQueue::~JobQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const auto& job : jobs_) job->Stop();
    waiting_.clear();
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<Job> JobQueue::Start(JobText text, Work work) {
  const std::lock_guard lock(mutex_);
  if (ending_ || static_cast<int>(waiting_.size()) >= options_.waiting) return nullptr;
  auto job = std::make_shared<Job>(fmt::format("{}", next_id_++), std::move(text));
  job->Send("job", {{"id", job->id()}, {"kind", job->text().kind}, {"ahead", waiting_.size()}});
  jobs_.push_back(job);
  // Only jobs that have ended make room; those that wait or run are bounded already.
  const auto ended = [](const auto& each) { return each->state_ > JobState::kRunning; };
  while (std::count_if(jobs_.begin(), jobs_.end(), ended) > options_.kept) {
    jobs_.erase(std::find_if(jobs_.begin(), jobs_.end(), ended));
  }
  waiting_.push_back({job, std::move(work)});
  wake_.notify_one();
  return job;
}

void JobQueue::WorkOn() {
  while (true) {
    Waiting next;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (ending_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      next.job->state_ = JobState::kRunning;
      TellPlaces();
    }
    RunOne(next);
  }
}

void JobQueue::TellPlaces() {
  for (size_t i = 0; i < waiting_.size(); ++i) waiting_[i].job->Send("waiting", {{"ahead", i}});
}

void JobQueue::RunOne(Waiting& next) {
  Job& job = *next.job;
  JobState state = JobState::kDone;
  try {
    if (!job.stop().stop_requested()) next.work(job);
    if (job.stop().stop_requested()) state = JobState::kStopped;
  } catch (const std::exception& error) {
    state = JobState::kFailed;
    job.Send("error", {{"message", error.what()}});
  }
  {
    const std::lock_guard lock(mutex_);
    job.state_ = state;
  }
  job.Send("end", {{"state", NameOf(state)}});
  job.events()->Close();
}

Reply JobQueue::Watch(const std::shared_ptr<Job>& job) {
  {
    const std::lock_guard lock(mutex_);
    ++job->watchers_;
  }
  return {.events = job->events(), .on_leave = [this, job] { Left(job); }};
}

void JobQueue::Left(const std::shared_ptr<Job>& job) {
  std::shared_ptr<EventLog> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (--job->watchers_ > 0 || job->text().background) return;
    // One that still waits need not be run at all.
    const auto place = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const Waiting& each) { return each.job == job; });
    if (place != waiting_.end()) {
      waiting_.erase(place);
      job->state_ = JobState::kStopped;
      dropped = job->events();
    }
  }
  job->Stop();
  if (dropped) dropped->Close();
}

std::shared_ptr<Job> JobQueue::Find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& job) { return job->id() == id; });
  return found == jobs_.end() ? nullptr : *found;
}

Json JobQueue::List() const {
  const std::lock_guard lock(mutex_);
  Json list = Json::array();
  for (const auto& job : jobs_) {
    list.push_back({{"id", job->id()},
                    {"kind", job->text().kind},
                    {"title", job->text().title},
                    {"state", NameOf(job->state_)},
                    {"watchers", job->watchers_}});
  }
  return list;
}

}  // namespace kibitz::serve
