#include "base/log.h"

#include <atomic>
#include <mutex>

#include "base/standard_streams.h"

namespace kibitz {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

struct Stderr {
  std::atomic<LogLevel> level{LogLevel::kInfo};
  std::mutex mutex;
  std::string status;  // Guarded by mutex.
};

Stderr& TheStderr() {
  static Stderr the_stderr;
  return the_stderr;
}

}  // namespace

void SetLogLevel(LogLevel level) { TheStderr().level = level; }
LogLevel GetLogLevel() { return TheStderr().level; }

void LogLine(LogLevel level, std::string_view text) {
  Stderr& err = TheStderr();
  if (level < err.level) return;
  const std::lock_guard lock(err.mutex);
  std::string out;
  if (!err.status.empty()) out += kClearLine;
  if (level == LogLevel::kWarn) out += "warning: ";
  if (level == LogLevel::kDebug) out += "debug: ";
  out += text;
  out += '\n';
  out += err.status;
  PrintToStderr(out);
}

namespace internal {

void SetStatusLine(const std::string& line) {
  Stderr& err = TheStderr();
  const std::lock_guard lock(err.mutex);
  if (line.empty() && err.status.empty()) return;
  err.status = line;
  PrintToStderr(std::string(kClearLine) + line);
}

}  // namespace internal
}  // namespace kibitz
