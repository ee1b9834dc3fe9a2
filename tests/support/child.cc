#include "tests/support/child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/check.h"

namespace kibitz::testing {
namespace {

void Redirect(int descriptor, const std::string& path, int flags) {
  if (path.empty()) {
    close(descriptor);
    return;
  }
  const int opened = open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
}

[[noreturn]] void Become(std::vector<char*>& arguments, const ChildOptions& options) {
  constexpr int kWrite = O_WRONLY | O_CREAT | O_APPEND;
  Redirect(STDIN_FILENO, options.in, O_RDONLY);
  Redirect(STDOUT_FILENO, options.out, kWrite);
  Redirect(STDERR_FILENO, options.err, kWrite);
  for (const std::string& entry : options.environment) putenv(const_cast<char*>(entry.c_str()));
  if (options.max_file_bytes > 0) {
    const rlimit limit = {options.max_file_bytes, options.max_file_bytes};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
  }
  std::signal(SIGPIPE, SIG_DFL);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

Child::Child(const std::vector<std::string>& words, const ChildOptions& options) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  CHECK(pid_ >= 0);
  if (pid_ == 0) Become(arguments, options);
}

Child::~Child() {
  if (ended_) return;
  kill(pid_, SIGKILL);
  Wait();
}

bool Child::running() {
  if (ended_) return false;
  int status = 0;
  rusage usage = {};
  if (wait4(pid_, &status, WNOHANG, &usage) != pid_) return true;
  ended_ = true;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  peak_bytes_ = static_cast<uint64_t>(usage.ru_maxrss) << 10;
  return false;
}

bool Child::WaitFor(const std::function<bool()>& condition) {
  for (int i = 0; i < 12000 && running(); ++i) {
    if (condition()) return true;
    usleep(5000);
  }
  return condition();
}

void Child::Kill(int signal) {
  if (!ended_) kill(pid_, signal);
}

int Child::Wait() {
  if (ended_) return code_;
  int status = 0;
  rusage usage = {};
  while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  ended_ = true;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  peak_bytes_ = static_cast<uint64_t>(usage.ru_maxrss) << 10;
  return code_;
}

}  // namespace kibitz::testing
