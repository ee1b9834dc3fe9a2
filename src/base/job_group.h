// The processes of a job that share work through files on shared storage: who this one is, and
// where they wait for each other. Alone, nothing is waited for.
//
//   const int code = RunInJob([&](JobGroup& job) {
//     for (int part = job.rank(); part < parts; part += job.ranks()) Make(part);
//     job.Meet();
//     return job.first() ? Join(parts) : 0;
//   });
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/job.h"
#include "base/job_watch.h"

namespace kibitz {

class JobGroup {
 public:
  // One process.
  JobGroup() = default;
  // Joins the others; throws Error when they do not come. Of ranks above 0 only warnings are
  // logged.
  explicit JobGroup(const JobPlace& place);

  int rank() const { return place_.rank; }
  int ranks() const { return place_.ranks; }
  // Speaks for all: writes what is one for the job, and reports.
  bool first() const { return rank() == 0; }

  // Waits for all ranks; returns the text of each, by rank. All make the same calls in the same
  // order.
  std::vector<std::string> Meet(const std::string& text = "");

 private:
  friend int RunInJob(const std::function<int(JobGroup& job)>& work);

  JobPlace place_;
  std::unique_ptr<JobWatch> watch_;
};

// Runs the work as a rank of the job that the launcher's variables tell of, and returns its code.
// When a rank fails or dies, the others end with code 1 and a message that names it; after Ctrl-C
// on one, all are interrupted.
int RunInJob(const std::function<int(JobGroup& job)>& work);

}  // namespace kibitz
