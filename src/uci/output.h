// Writes whole lines to the chess program, from any thread, in order.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace kibitz::uci {

class Output {
 public:
  // Writes one line, given without its newline, and flushes it; false when the reader has gone.
  using Write = std::function<bool(std::string_view line)>;

  explicit Output(Write write) : write_(std::move(write)) {}

  void Say(std::string_view line);
  // Writes "info string ...", with control characters replaced by spaces.
  void Remark(std::string_view text);
  // Whether the reader has gone.
  bool closed() const { return closed_; }

 private:
  std::mutex mutex_;
  Write write_;  // Guarded by mutex_.
  std::atomic<bool> closed_{false};
};

}  // namespace kibitz::uci
