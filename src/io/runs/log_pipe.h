// Passes a run's metrics to a program of the user's, line by line on its standard input, without
// ever waiting for it: a thread of its own writes, a full queue drops lines, and a program that
// ends early is noticed once and forgotten.
//
//   LogPipe pipe("python3 examples/wandb_log.py");
//   pipe.Write("{\"step\": 10, \"loss\": 2.31}");   // Without a newline; returns at once.
//
// The shell runs the command, in a process group of its own: Ctrl-C reaches the run alone, and the
// program sees the end of its input when the run is over.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace kibitz::io {

struct LogPipeOptions {
  size_t max_lines = 10'000;   // That wait; more are dropped.
  double finish_seconds = 10;  // At the end, for the lines that wait and for the program to end.
};

class LogPipe {
 public:
  // Throws Error when the shell cannot be started. What the command writes goes to our stderr.
  explicit LogPipe(const std::string& command, const LogPipeOptions& options = {});
  // Closes the program's input, waits for it, and ends it after finish_seconds.
  ~LogPipe();
  LogPipe(const LogPipe&) = delete;
  LogPipe& operator=(const LogPipe&) = delete;

  void Write(std::string line);
  // Lines that the program did not get so far: the queue was full, or it had ended.
  uint64_t dropped() const;

 private:
  void Start();
  void Work();
  // False when the program does not read any more, or not in time at the end.
  bool Send(std::string_view text);
  void EndProgram();

  const std::string command_;
  const LogPipeOptions options_;
  pid_t child_ = -1;
  int input_ = -1;  // The program's; ours to write, not blocking.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::string> lines_;  // Guarded by mutex_.
  uint64_t dropped_ = 0;           // Guarded by mutex_.
  bool stop_ = false;              // Guarded by mutex_.
  bool gone_ = false;              // Guarded by mutex_: the program has ended.
  std::thread thread_;
};

}  // namespace kibitz::io
