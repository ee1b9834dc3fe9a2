// What the program tells people while it works: lines on stderr, never on stdout.
//
//   LogWarn("{}: {} rows skipped", path, count);
//
// A process has one stderr, so the level is the one process-wide state: main() sets it from
// --quiet and --verbose. A progress bar in flight is cleared before a line and drawn again after.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace kibitz {

enum class LogLevel { kDebug, kInfo, kWarn, kSilent };

void SetLogLevel(LogLevel level);
LogLevel GetLogLevel();

void LogLine(LogLevel level, std::string_view text);

template <typename... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogWarn(fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kWarn, fmt::format(format, std::forward<Args>(args)...));
}

namespace internal {
// One unfinished line at the bottom of the terminal, owned by the progress bar; "" clears it.
void SetStatusLine(const std::string& line);
}  // namespace internal

}  // namespace kibitz
