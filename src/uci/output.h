// Lines to the chess program, from any thread, whole and in order.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace kibitz::uci {

class Output {
 public:
  // Takes one line without its newline, and shows it at once; false when nobody listens any more.
  using Write = std::function<bool(std::string_view line)>;

  explicit Output(Write write) : write_(std::move(write)) {}

  void Say(std::string_view line);
  // "info string ...", control characters made blanks.
  void Remark(std::string_view text);
  // Nobody listens.
  bool closed() const { return closed_; }

 private:
  std::mutex mutex_;
  Write write_;  // Guarded by mutex_.
  std::atomic<bool> closed_{false};
};

}  // namespace kibitz::uci
