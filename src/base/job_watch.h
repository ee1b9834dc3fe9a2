// Watches the processes of a job: when one fails, dies or falls silent, all others end within
// seconds with a message that names it. Every rank keeps a connection to rank 0, on a thread of
// its own.
//
//   JobWatch watch(place, [&](int port) { Publish(port); }, [&] { return PublishedPort(); });
//   ...
//   watch.Meet("part 1");           // Waits until all ranks are here.
//   watch.Fail("disk full");        // On an error: the others say so and end.
//   watch.Done();                   // Or at the end of all work.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/job.h"

namespace kibitz {

class JobWatch {
 public:
  // On rank 0 `publish` gets the port to connect to; on the others `port` returns it. Throws Error.
  JobWatch(const JobPlace& place, const std::function<void(int)>& publish,
           const std::function<int()>& port);
  // The same where rank 0 itself listens on the job's port.
  explicit JobWatch(const JobPlace& place);
  // Without Done or Fail before, the others take this rank for dead.
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  // Waits for all ranks, which make the same calls in the same order; returns the text of each, by
  // rank. Throws Error of kind kInterrupted after Ctrl-C.
  std::vector<std::string> Meet(const std::string& text);
  // This rank was interrupted and ends; the others are interrupted as well.
  void Stop();
  void Fail(const std::string& message);
  // Waits for the other ranks, so that none takes this one for dead.
  void Done();

 private:
  struct Shared;
  void Begin(int socket);
  void Say(const std::string& line, bool last);
  void Leave(const std::string& line);
  std::unique_ptr<Shared> shared_;
};

}  // namespace kibitz
