// A job of several processes that work on one task, on one machine or many: which of them this
// process is, as its launcher says in the environment (mpirun, srun, torchrun).
//
//   const JobPlace place = PlaceInJob();
//   if (place.ranks > 1) LogInfo("rank {} of {}", place.rank, place.ranks);
#pragma once

#include <functional>
#include <string>

namespace kibitz {

struct JobPlace {
  int rank = 0;          // From 0.
  int ranks = 1;         // Processes of the job.
  std::string launcher;  // "mpirun", "srun" or "torchrun"; empty: started alone.
  // Where rank 0 can be met: MASTER_ADDR and MASTER_PORT, or what the launcher's variables tell.
  std::string address = "127.0.0.1";
  int port = 0;
};

// The value of an environment variable, or nullptr.
using Environment = std::function<const char*(const char* name)>;

// Throws Error where the variables contradict each other.
JobPlace PlaceInJob();
JobPlace PlaceInJob(const Environment& environment);

}  // namespace kibitz
