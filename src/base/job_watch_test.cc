#include "base/job_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/interrupt.h"

namespace kibitz {
namespace {

// Ranks as processes of their own; each runs `work` and ends with its code.
class Job {
 public:
  Job(int ranks, const std::function<int(int rank, JobWatch& watch)>& work) {
    int port_pipe[2];
    if (pipe(port_pipe) != 0) return;
    for (int rank = 0; rank < ranks; ++rank) {
      int errors[2];
      if (pipe(errors) != 0) return;
      const pid_t child = fork();
      if (child == 0) {
        dup2(errors[1], STDERR_FILENO);
        CatchInterrupts();  // First, as programs do: another rank may be interrupted at any time.
        JobPlace place;
        place.rank = rank;
        place.ranks = ranks;
        JobWatch watch(
            place,
            [&](int port) {
              for (int i = 1; i < ranks; ++i) (void)!write(port_pipe[1], &port, sizeof(port));
            },
            [&] {
              int port = 0;
              (void)!read(port_pipe[0], &port, sizeof(port));
              return port;
            });
        _exit(work(rank, watch));
      }
      close(errors[1]);
      children_.push_back(child);
      errors_.push_back(errors[0]);
    }
    close(port_pipe[0]);
    close(port_pipe[1]);
  }

  pid_t child(int rank) const { return children_[static_cast<size_t>(rank)]; }
  // Exit code, or minus the signal.
  int Code(int rank) const {
    int status = 0;
    waitpid(child(rank), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string Errors(int rank) const {
    std::string text;
    char buffer[1024];
    for (ssize_t count; (count = read(errors_[static_cast<size_t>(rank)], buffer, 1024)) > 0;) {
      text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }

 private:
  std::vector<pid_t> children_;
  std::vector<int> errors_;
};

int WaitLong() {
  std::this_thread::sleep_for(std::chrono::seconds(60));
  return 7;
}

TEST(JobWatchTest, AllEndWell) {
  const Job job(3, [](int rank, JobWatch& watch) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100 * rank));
    watch.Done();
    return 0;
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(job.Code(rank), 0);
    EXPECT_EQ(job.Errors(rank), "");
  }
}

TEST(JobWatchTest, AKilledRankEndsTheOthers) {
  for (int killed = 0; killed < 3; ++killed) {
    const Job job(3, [](int, JobWatch&) { return WaitLong(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const auto start = std::chrono::steady_clock::now();
    kill(job.child(killed), SIGKILL);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(job.Code(rank), rank == killed ? -SIGKILL : 1);
      if (rank == killed) continue;
      const std::string text = job.Errors(rank);
      EXPECT_NE(text.find("rank " + std::to_string(killed)), std::string::npos) << text;
      EXPECT_NE(text.find("died"), std::string::npos) << text;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  }
}

TEST(JobWatchTest, ASilentRankEndsTheOthers) {
  const Job job(2, [](int, JobWatch&) { return WaitLong(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(job.child(1), SIGSTOP);
  EXPECT_EQ(job.Code(0), 1);
  EXPECT_NE(job.Errors(0).find("rank 1"), std::string::npos);
  kill(job.child(1), SIGKILL);
  job.Code(1);
}

TEST(JobWatchTest, RanksMeetAndTellEachOther) {
  const Job job(3, [](int rank, JobWatch& watch) {
    for (int i = 0; i < 100; ++i) {
      const std::string text = std::to_string(rank) + " \"\n" + std::string(100 * i, 'x');
      if (rank == i % 3) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const std::vector<std::string> all = watch.Meet(text);
      if (all.size() != 3 || all[static_cast<size_t>(rank)] != text) return 3;
      for (size_t other = 0; other < 3; ++other) {
        if (all[other] != std::to_string(other) + text.substr(1)) return 4;
      }
    }
    watch.Done();
    return 0;
  });
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(job.Code(rank), 0) << job.Errors(rank);
}

TEST(JobWatchTest, OneThatIsInterruptedInterruptsAll) {
  for (const int stopped : {0, 1}) {
    const Job job(3, [stopped](int rank, JobWatch& watch) {
      if (rank != stopped) {
        for (int i = 0; i < 1000 && !Interrupted(); ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      }
      watch.Stop();
      return rank == stopped || Interrupted() ? 130 : 1;
    });
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(job.Code(rank), 130);
      EXPECT_EQ(job.Errors(rank), "");
    }
  }
}

TEST(JobWatchTest, AnErrorIsToldToAll) {
  const Job job(3, [](int rank, JobWatch& watch) {
    if (rank != 2) return WaitLong();
    watch.Fail("no space left on /scratch");
    return 5;
  });
  EXPECT_EQ(job.Code(2), 5);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job.Code(rank), 1);
    const std::string text = job.Errors(rank);
    EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
    EXPECT_NE(text.find("no space left on /scratch"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace kibitz
