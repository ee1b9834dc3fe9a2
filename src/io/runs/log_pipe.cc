#include "io/runs/log_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/log.h"

extern char** environ;

namespace kibitz::io {
namespace {

constexpr int kPollMilliseconds = 50;

// Writes to a closed pipe give EPIPE on this thread, not a signal.
void BlockPipeSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

LogPipe::LogPipe(const std::string& command, const LogPipeOptions& options)
    : command_(command), options_(options) {
  Start();
  thread_ = std::thread([this] { Work(); });
}

void LogPipe::Start() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error::System("cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  const std::shared_ptr<void> freed(nullptr, [&](void*) {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(ends[0]);
  });
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string shell = "/bin/sh";
  std::string flag = "-c";
  std::string command = command_;
  const std::array<char*, 4> words = {shell.data(), flag.data(), command.data(), nullptr};
  const int failed =
      posix_spawn(&child_, shell.c_str(), &actions, &attributes, words.data(), environ);
  if (failed != 0) {
    close(ends[1]);
    throw Error("cannot run the log command '{}': {}", command_, std::strerror(failed));
  }
  input_ = ends[1];
  fcntl(input_, F_SETFL, O_NONBLOCK);
}

LogPipe::~LogPipe() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
  EndProgram();
  if (dropped_ > 0) LogWarn("the log command '{}' missed {} lines", command_, dropped_);
}

void LogPipe::Write(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_ || lines_.size() >= options_.max_lines) {
      ++dropped_;
      return;
    }
    lines_.push_back(std::move(line));
  }
  wake_.notify_one();
}

uint64_t LogPipe::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void LogPipe::Work() {
  BlockPipeSignal();
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || !lines_.empty(); });
    if (lines_.empty()) return;
    const std::string text = std::move(lines_.front()) + "\n";
    lines_.pop_front();
    lock.unlock();
    const bool sent = Send(text);
    lock.lock();
    if (sent) continue;
    gone_ = true;
    dropped_ += 1 + lines_.size();
    lines_.clear();
    if (!stop_) LogWarn("the log command '{}' does not read any more; the run goes on", command_);
    return;
  }
}

bool LogPipe::Send(std::string_view text) {
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> waited{0};
  while (!text.empty()) {
    const ssize_t count = write(input_, text.data(), text.size());
    if (count > 0) {
      text.remove_prefix(static_cast<size_t>(count));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    const auto before = Clock::now();
    pollfd ready{.fd = input_, .events = POLLOUT, .revents = 0};
    poll(&ready, 1, kPollMilliseconds);
    const std::lock_guard lock(mutex_);
    if (!stop_) continue;
    waited += Clock::now() - before;
    if (waited.count() > options_.finish_seconds) return false;
  }
  return true;
}

void LogPipe::EndProgram() {
  close(input_);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.finish_seconds);
  int status = 0;
  while (waitpid(child_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      LogWarn("the log command '{}' did not end by itself; it is stopped", command_);
      kill(-child_, SIGKILL);
      waitpid(child_, &status, 0);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    LogWarn("the log command '{}' ended with code {}", command_, WEXITSTATUS(status));
  }
}

}  // namespace kibitz::io
