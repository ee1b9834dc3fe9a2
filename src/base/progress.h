// Progress of long work on stderr: a bar with rate and time left on a terminal, a plain line now
// and then elsewhere, nothing with --quiet. Add() is cheap and may be called from any thread.
//
//   Progress progress("games", total);
//   while (PlayOne()) progress.Add(1);
//   progress.Finish();   // prints the closing line; without it (an exception) the bar disappears
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace kibitz {

class Progress {
 public:
  struct Options {
    enum class Mode { kAuto, kBar, kLines, kSilent };
    Mode mode = Mode::kAuto;   // Auto: silent by log level, a bar on a terminal, else lines.
    double line_seconds = 10;  // Between plain lines.
    uint64_t start = 0;        // Done before this process began, as AddKept has it.
    double max_seconds = 0;    // A time limit, for the time left; 0: none.
    // Where text goes; default stderr. The second argument tells a status line from a full one.
    std::function<void(const std::string& text, bool status)> write = {};
  };

  // `unit` is what is counted ("games"); total 0 means unknown.
  Progress(std::string unit, uint64_t total);
  Progress(std::string unit, uint64_t total, Options options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Add(0) only shows the note and the time anew.
  void Add(uint64_t count);
  // Done by an earlier run and only read back: counts in the share, not in the rate.
  void AddKept(uint64_t count);
  // For a total that is known only after the start.
  void SetTotal(uint64_t total) { total_ = total; }
  // Text shown after the figures, such as a loss.
  void SetNote(std::string note);
  void Finish();

  // Those before the start included.
  uint64_t done() const { return done_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::string Line(double seconds) const;
  void Draw(Clock::time_point now);

  const std::string unit_;
  std::atomic<uint64_t> total_;
  Options options_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<uint64_t> done_{0};
  std::atomic<uint64_t> kept_{0};      // Of them.
  std::atomic<int64_t> next_draw_ms_;  // Since start_.
  std::mutex mutex_;
  std::string note_;  // Guarded by mutex_.
  bool finished_ = false;
};

}  // namespace kibitz
