// Jobs of several ranks, for tests: under mpirun, or as processes of our own, which a launcher does
// not end when one of them dies.
//
//   const Ran ran = RunCommand(UnderMpirun(3, {"build/kibitz", "policy", "precompute", ...}));
//   const RanksByHand job(2, words, folder);
//   kill(job.child(1), SIGKILL);
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/test_data.h"

namespace kibitz::testing {

using Words = std::vector<std::string>;

Words Joined(Words words, const Words& more);

// The words themselves for one rank.
Words UnderMpirun(int ranks, const Words& words);
bool HasMpirun();

// Ranks as torchrun and srun start them.
class RanksByHand {
 public:
  // `prepare` is called in each process before the program starts.
  RanksByHand(int ranks, const Words& words, const TempFolder& folder,
              const std::function<void(int rank)>& prepare = nullptr);
  pid_t child(int rank) const { return children_[static_cast<size_t>(rank)]; }
  // Waits; the exit code, or minus the signal.
  int Code(int rank) const;
  std::string Errors(int rank) const;

 private:
  std::vector<pid_t> children_;
  std::vector<std::string> errors_;
};

}  // namespace kibitz::testing

// For the top of a test.
#define SKIP_WITHOUT_MPIRUN()                                        \
  if (!::kibitz::testing::HasMpirun()) {                             \
    GTEST_SKIP() << "mpirun (Debian: openmpi-bin) is not installed"; \
  }                                                                  \
  static_assert(true)
