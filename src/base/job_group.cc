#include "base/job_group.h"

#include "base/error.h"
#include "base/log.h"

namespace kibitz {

JobGroup::JobGroup(const JobPlace& place) : place_(place) {
  if (place_.ranks == 1) return;
  watch_ = std::make_unique<JobWatch>(place_);
  if (!first() && GetLogLevel() < LogLevel::kWarn) SetLogLevel(LogLevel::kWarn);
  LogInfo("{} ranks, started by {}", place_.ranks, place_.launcher);
}

std::vector<std::string> JobGroup::Meet(const std::string& text) {
  return watch_ ? watch_->Meet(text) : std::vector{text};
}

int RunInJob(const std::function<int(JobGroup& job)>& work) {
  JobGroup job(PlaceInJob());
  try {
    const int code = work(job);
    if (job.watch_) job.watch_->Done();
    return code;
  } catch (const Error& error) {
    if (job.watch_ && error.kind() == Error::Kind::kInterrupted) job.watch_->Stop();
    if (job.watch_) job.watch_->Fail(error.message());
    throw;
  } catch (const std::exception& error) {
    if (job.watch_) job.watch_->Fail(error.what());
    throw;
  }
}

}  // namespace kibitz
