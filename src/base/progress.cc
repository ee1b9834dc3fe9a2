#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace kibitz {
namespace {

constexpr int64_t kBarMilliseconds = 100;
constexpr int kBarWidth = 24;

Progress::Options::Mode Resolve(Progress::Options::Mode mode) {
  using Mode = Progress::Options::Mode;
  if (mode != Mode::kAuto) return mode;
  if (GetLogLevel() > LogLevel::kInfo) return Mode::kSilent;
  return isatty(STDERR_FILENO) != 0 ? Mode::kBar : Mode::kLines;
}

}  // namespace

Progress::Progress(std::string unit, uint64_t total)
    : Progress(std::move(unit), total, Options()) {}

Progress::Progress(std::string unit, uint64_t total, Options options)
    : unit_(std::move(unit)), total_(total), options_(std::move(options)) {
  options_.mode = Resolve(options_.mode);
  done_ = options_.start;
  kept_ = options_.start;
  next_draw_ms_ = options_.mode == Options::Mode::kBar
                      ? kBarMilliseconds
                      : static_cast<int64_t>(options_.line_seconds * 1000);
  if (!options_.write) {
    options_.write = [](const std::string& text, bool status) {
      if (status) {
        internal::SetStatusLine(text);
      } else {
        LogLine(LogLevel::kInfo, text);
      }
    };
  }
}

Progress::~Progress() {
  if (!finished_ && options_.mode == Options::Mode::kBar) options_.write("", true);
}

void Progress::Add(uint64_t count) {
  done_ += count;
  if (options_.mode == Options::Mode::kSilent) return;
  const auto now = Clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - start_).count();
  int64_t due = next_draw_ms_;
  if (ms < due) return;
  const int64_t gap = options_.mode == Options::Mode::kBar
                          ? kBarMilliseconds
                          : static_cast<int64_t>(options_.line_seconds * 1000);
  // Only the thread that advances the time of the next drawing draws.
  if (next_draw_ms_.compare_exchange_strong(due, ms + gap)) Draw(now);
}

void Progress::AddKept(uint64_t count) {
  kept_ += count;
  Add(count);
}

void Progress::SetNote(std::string note) {
  const std::lock_guard lock(mutex_);
  note_ = std::move(note);
}

void Progress::Draw(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  options_.write(Line(seconds), options_.mode == Options::Mode::kBar);
}

// "games [=====>      ] 41%  12.3k/30k  1.02k/s  ETA 0:17  loss 2.31"
std::string Progress::Line(double seconds) const {
  const uint64_t done = done_;
  const uint64_t total = total_;
  const double rate = seconds > 0 ? static_cast<double>(done - kept_) / seconds : 0;
  std::string line = unit_;
  if (total > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    if (options_.mode == Options::Mode::kBar) {
      const auto filled = static_cast<size_t>(share * kBarWidth);
      std::string bar(filled, '=');
      if (filled < kBarWidth) bar += '>';
      bar.resize(kBarWidth, ' ');
      line += " [" + bar + "]";
    }
    line += fmt::format(" {:.0f}%  {}/{}", share * 100, HumanCount(static_cast<double>(done)),
                        HumanCount(static_cast<double>(total)));
  } else {
    line += " " + HumanCount(static_cast<double>(done));
  }
  line += fmt::format("  {}/s", HumanCount(rate));
  std::optional<double> left;
  if (total > done && rate > 0) left = static_cast<double>(total - done) / rate;
  if (options_.max_seconds > 0) {
    const double limit = std::max(0.0, options_.max_seconds - seconds);
    left = std::min(left.value_or(limit), limit);
  }
  if (left) line += "  ETA " + HumanSeconds(*left);
  if (!note_.empty()) line += "  " + note_;
  return line;
}

void Progress::Finish() {
  if (std::exchange(finished_, true) || options_.mode == Options::Mode::kSilent) return;
  const std::lock_guard lock(mutex_);
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (options_.mode == Options::Mode::kBar) options_.write("", true);
  const auto here = static_cast<double>(done_ - kept_);
  options_.write(
      fmt::format("{} {} in {} ({}/s){}", HumanCount(here), unit_, HumanSeconds(seconds),
                  HumanCount(here / std::max(seconds, 1e-9)), note_.empty() ? "" : "  " + note_),
      false);
}

}  // namespace kibitz
