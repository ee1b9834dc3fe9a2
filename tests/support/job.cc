#include "tests/support/job.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "oracles/engines/line_process.h"

namespace kibitz::testing {

Words Joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

bool HasMpirun() { return !oracles::FindProgram("mpirun").empty(); }

Words UnderMpirun(int ranks, const Words& words) {
  if (ranks == 1) return words;
  return Joined({oracles::FindProgram("mpirun"), "--allow-run-as-root", "--oversubscribe", "--mca",
                 "plm", "isolated", "-n", std::to_string(ranks)},
                words);
}

RanksByHand::RanksByHand(int ranks, const Words& words, const TempFolder& folder,
                         const std::function<void(int rank)>& prepare) {
  static std::atomic<int> jobs = 0;
  const int port = 20'000 + (getpid() * 16 + jobs++) % 10'000;
  for (int rank = 0; rank < ranks; ++rank) {
    errors_.push_back(folder.File(fmt::format("rank{}.err", rank)));
    const pid_t child = fork();
    if (child == 0) {
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
      setenv("MASTER_ADDR", "127.0.0.1", 1);
      setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
      (void)freopen("/dev/null", "w", stdout);
      (void)freopen(errors_.back().c_str(), "w", stderr);
      if (prepare) prepare(rank);
      std::vector<char*> arguments;
      for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    children_.push_back(child);
  }
}

int RanksByHand::Code(int rank) const {
  int status = 0;
  waitpid(child(rank), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string RanksByHand::Errors(int rank) const {
  return ReadWhole(errors_[static_cast<size_t>(rank)]);
}

}  // namespace kibitz::testing
