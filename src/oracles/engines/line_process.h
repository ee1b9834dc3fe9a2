// A child process that reads and writes lines, such as a chess engine: connected by pipes, without
// a shell, in a process group of its own, so that only we receive Ctrl-C and nothing it starts
// outlives it.
//
//   LineProcess engine({.command = {"stockfish"}});
//   engine.Send("uci", SecondsFromNow(1));
//   while (auto line = engine.Read(SecondsFromNow(5))) ...
//
// One thread at a time. The two sides cannot deadlock: we keep reading while a long line is sent.
// The end of its standard error is kept for error messages.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kibitz::oracles {

using Clock = std::chrono::steady_clock;

// Never, for absurdly many seconds.
Clock::time_point SecondsFromNow(double seconds);

// The path of an installed program; "" when there is none. Looks also where Debian puts games.
std::string FindProgram(const std::string& name);

struct ProcessOptions {
  std::vector<std::string> command;  // Program, looked up in PATH, and its arguments.
  std::string folder = {};           // To start in; "": ours.
};

class LineProcess {
 public:
  // Longer lines are truncated.
  static constexpr size_t kLongestLine = 1 << 20;

  // Throws Error when the program cannot be started.
  explicit LineProcess(ProcessOptions options);
  // Ends the whole process group at once.
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  // `line` has no newline. Throws Error when the program has ended, or does not read until then.
  void Send(std::string_view line, Clock::time_point deadline);
  // Nothing when no line came until then. Throws Error when the program has ended and everything
  // it wrote was read, and after Ctrl-C.
  std::optional<std::string> Read(Clock::time_point deadline);

  // Closes its input and waits for it to end by itself; false when it did not.
  bool WaitForEnd(Clock::time_point deadline);

  // "stockfish", for error messages.
  const std::string& program() const { return options_.command.front(); }
  pid_t pid() const { return pid_; }
  // The last lines both ways, for error messages: "> uci", "< id name x", "! text on stderr".
  std::string LastLines() const;

 private:
  // Our end of a pipe; closed by the destructor.
  class Descriptor {
   public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() { Close(); }
    Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
    Descriptor& operator=(Descriptor&& other) noexcept;

    int number() const { return number_; }
    bool open() const { return number_ >= 0; }
    void Close();

   private:
    int number_ = -1;
  };
  struct Pipe {
    Descriptor read;
    Descriptor write;
  };
  // A pipe we read lines from.
  struct Incoming {
    Descriptor from;
    std::string partial;  // The line that has not ended yet.
  };

  static Pipe MakePipe();
  void Spawn(Pipe& in, Pipe& out, Pipe& err);
  // Waits until something can be read or written, at most until the deadline, and does it.
  void Pump(Clock::time_point deadline);
  void WriteSome();
  void ReadSome(Incoming& incoming, char mark);
  void TakeLine(Incoming& incoming, char mark);
  void Remember(char mark, std::string_view line);
  bool HasEnded() const;
  // "exited with code 3"; waits a moment for a program that is about to.
  std::string HowItEnded();

  ProcessOptions options_;
  pid_t pid_ = -1;
  Descriptor in_;
  std::string unsent_;
  Incoming out_;
  Incoming err_;
  std::deque<std::string> lines_;  // Read and not yet asked for.
  std::deque<std::string> last_;   // For LastLines.
};

}  // namespace kibitz::oracles
