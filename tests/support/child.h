// A program that runs beside the test: to kill it, to interrupt it, to start a second one.
//
//   Child child({ProgramPath("kibitz"), "2048", "oracle", "--out", "t.safetensors"});
//   child.WaitFor([&] { return Exists("t.safetensors"); });
//   child.Kill(SIGKILL);
//   EXPECT_EQ(child.Wait(), 128 + SIGKILL);
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace kibitz::testing {

struct ChildOptions {
  // Files for the standard streams; "": none is open, as after `>&-`.
  std::string in = "/dev/null";
  std::string out = "/dev/null";
  std::string err = "/dev/null";
  std::vector<std::string> environment = {};  // Besides the test's own: "NAME=VALUE".
  uint64_t max_file_bytes = 0;                // RLIMIT_FSIZE; 0: none.
};

class Child {
 public:
  explicit Child(const std::vector<std::string>& words, const ChildOptions& options = {});
  // Kills it if it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  // Waits up to a minute until the condition holds or the program ends. Whether it holds.
  bool WaitFor(const std::function<bool()>& condition);
  void Kill(int signal);
  // The exit code, or 128 + the signal that ended it.
  int Wait();
  // Peak resident memory in bytes; known after Wait.
  uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  pid_t pid_ = -1;
  int code_ = -1;
  bool ended_ = false;
  uint64_t peak_bytes_ = 0;
};

}  // namespace kibitz::testing
