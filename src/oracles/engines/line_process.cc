#include "oracles/engines/line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"

namespace kibitz::oracles {
namespace {

using std::chrono::milliseconds;

constexpr size_t kRemembered = 8;
constexpr size_t kRememberedBytes = 200;  // Of each line.

// A write to a program that has ended must be an error, not a SIGPIPE that ends us. The signal is
// blocked for this thread only, and consumed if the write raised it.
class NoBrokenPipeSignal {
 public:
  NoBrokenPipeSignal() {
    sigemptyset(&broken_pipe_);
    sigaddset(&broken_pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &broken_pipe_, &before_);
  }
  ~NoBrokenPipeSignal() {
    const timespec now{};
    while (!was_pending_ && sigtimedwait(&broken_pipe_, nullptr, &now) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipeSignal(const NoBrokenPipeSignal&) = delete;
  NoBrokenPipeSignal& operator=(const NoBrokenPipeSignal&) = delete;

 private:
  sigset_t broken_pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

void SetNonBlocking(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) {
    throw Error::System("cannot prepare a pipe");
  }
}

// Signal mask and process group of the child.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&value_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&value_, &none);
    sigset_t usual;
    sigemptyset(&usual);
    for (int signal : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&usual, signal);
    posix_spawnattr_setsigdefault(&value_, &usual);
    posix_spawnattr_setpgroup(&value_, 0);
    posix_spawnattr_setflags(
        &value_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&value_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &value_; }

 private:
  posix_spawnattr_t value_;
};

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&value_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&value_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &value_; }

 private:
  posix_spawn_file_actions_t value_;
};

}  // namespace

Clock::time_point SecondsFromNow(double seconds) {
  constexpr double kForever = 1e8;  // Three years; more would overflow the clock one day.
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::clamp(seconds, 0.0, kForever)));
}

std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  const std::string folders = std::string(path != nullptr ? path : "") + ":/usr/games";
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  for (std::string_view folder : Split(folders, ':')) {
    std::string program = std::string(folder) + "/" + name;
    if (!folder.empty() && access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

LineProcess::Descriptor& LineProcess::Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

void LineProcess::Descriptor::Close() {
  if (number_ >= 0) close(number_);
  number_ = -1;
}

LineProcess::LineProcess(ProcessOptions options) : options_(std::move(options)) {
  CHECK(!options_.command.empty());
  Pipe in = MakePipe();
  Pipe out = MakePipe();
  Pipe err = MakePipe();
  for (int ours : {in.write.number(), out.read.number(), err.read.number()}) SetNonBlocking(ours);
  Spawn(in, out, err);
  in_ = std::move(in.write);
  out_.from = std::move(out.read);
  err_.from = std::move(err.read);
}

LineProcess::~LineProcess() {
  // Until we wait for the leader, its process id cannot be reused for another group.
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Both ends are above 2, so that neither collides with the child's stdin, stdout and stderr.
LineProcess::Pipe LineProcess::MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error::System("cannot make a pipe");
  Pipe result{Descriptor(ends[0]), Descriptor(ends[1])};
  for (Descriptor* end : {&result.read, &result.write}) {
    if (end->number() > STDERR_FILENO) continue;
    *end = Descriptor(fcntl(end->number(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!end->open()) throw Error::System("cannot make a pipe");
  }
  return result;
}

void LineProcess::Spawn(Pipe& in, Pipe& out, Pipe& err) {
  SpawnActions actions;
  posix_spawn_file_actions_adddup2(actions.get(), in.read.number(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), out.write.number(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), err.write.number(), STDERR_FILENO);
  if (!options_.folder.empty()) {
    posix_spawn_file_actions_addchdir_np(actions.get(), options_.folder.c_str());
  }
  std::vector<char*> words;
  words.reserve(options_.command.size() + 1);
  for (std::string& word : options_.command) words.push_back(word.data());
  words.push_back(nullptr);
  const SpawnAttributes attributes;
  const int error =
      posix_spawnp(&pid_, words[0], actions.get(), attributes.get(), words.data(), environ);
  if (error != 0) {
    throw Error("cannot start {}{}: {}; is it installed?", Quoted(program()),
                options_.folder.empty() ? "" : " in " + options_.folder, std::strerror(error));
  }
}

void LineProcess::Send(std::string_view line, Clock::time_point deadline) {
  CHECK(line.find('\n') == std::string_view::npos);
  Remember('>', line);
  unsent_ += line;
  unsent_ += '\n';
  while (!unsent_.empty()) {
    ThrowIfInterrupted();
    if (!in_.open()) throw Error("{} {}", program(), HowItEnded());
    if (Clock::now() >= deadline) throw Error("{} does not read what it is sent", program());
    Pump(deadline);
  }
}

std::optional<std::string> LineProcess::Read(Clock::time_point deadline) {
  while (lines_.empty()) {
    ThrowIfInterrupted();
    if (!out_.from.open()) throw Error("{} {}", program(), HowItEnded());
    const bool late = Clock::now() >= deadline;
    Pump(deadline);
    if (late && lines_.empty()) return std::nullopt;
  }
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

void LineProcess::Pump(Clock::time_point deadline) {
  // Wakes now and then to check for Ctrl-C, which may have been delivered to another thread.
  constexpr milliseconds kSlice{100};
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  const auto wait = std::clamp(left, milliseconds{0}, kSlice);
  std::array<pollfd, 3> polls = {
      {{out_.from.number(), POLLIN, 0},
       {err_.from.number(), POLLIN, 0},
       {unsent_.empty() ? -1 : in_.number(), POLLOUT, 0}}};  // poll ignores descriptors below 0.
  if (poll(polls.data(), polls.size(), static_cast<int>(wait.count())) <= 0) return;
  if (polls[0].revents != 0) ReadSome(out_, '<');
  if (polls[1].revents != 0) ReadSome(err_, '!');
  if (polls[2].revents != 0) WriteSome();
}

void LineProcess::WriteSome() {
  const NoBrokenPipeSignal guard;
  const ssize_t count = write(in_.number(), unsent_.data(), unsent_.size());
  if (count >= 0) {
    unsent_.erase(0, static_cast<size_t>(count));
  } else if (errno != EAGAIN && errno != EINTR) {
    in_.Close();
  }
}

void LineProcess::ReadSome(Incoming& incoming, char mark) {
  std::array<char, 65536> buffer;
  const ssize_t count = read(incoming.from.number(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    if (!incoming.partial.empty()) TakeLine(incoming, mark);
    incoming.from.Close();
    return;
  }
  std::string_view bytes(buffer.data(), static_cast<size_t>(count));
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    incoming.partial += piece.substr(0, kLongestLine - incoming.partial.size());
    if (newline == std::string_view::npos) return;
    TakeLine(incoming, mark);
    bytes.remove_prefix(newline + 1);
  }
}

void LineProcess::TakeLine(Incoming& incoming, char mark) {
  if (incoming.partial.ends_with('\r')) incoming.partial.pop_back();
  Remember(mark, incoming.partial);
  if (mark == '<') lines_.push_back(std::move(incoming.partial));
  incoming.partial.clear();
}

void LineProcess::Remember(char mark, std::string_view line) {
  last_.push_back(fmt::format("{} {}", mark, line.substr(0, kRememberedBytes)));
  if (last_.size() > kRemembered) last_.pop_front();
}

std::string LineProcess::LastLines() const {
  std::string text;
  for (const std::string& line : last_) text += "\n  " + Quoted(line, kRememberedBytes);
  return text;
}

bool LineProcess::HasEnded() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

bool LineProcess::WaitForEnd(Clock::time_point deadline) {
  in_.Close();
  unsent_.clear();
  while (!HasEnded()) {
    if (Clock::now() >= deadline) return false;
    // A full pipe must not keep it from ending.
    if (out_.from.open() || err_.from.open()) {
      Pump(std::min(deadline, Clock::now() + milliseconds(5)));
      lines_.clear();
    } else {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  return true;
}

std::string LineProcess::HowItEnded() {
  const auto deadline = SecondsFromNow(1);
  while (!HasEnded()) {
    if (Clock::now() >= deadline) return "closed its pipes but still runs";
    std::this_thread::sleep_for(milliseconds(1));
  }
  if (err_.from.open()) ReadSome(err_, '!');  // What it wrote last.
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (info.si_code == CLD_EXITED) return fmt::format("ended with code {}", info.si_status);
  return fmt::format("was ended by signal {} ({})", info.si_status, strsignal(info.si_status));
}

}  // namespace kibitz::oracles
