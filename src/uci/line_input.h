// Lines from a pipe or terminal, of any length and any bytes, while somebody listens at the other
// end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace kibitz::uci {

class LineInput {
 public:
  // Longer lines are cut here, so that a stream without newlines cannot fill the memory.
  static constexpr size_t kLongestLine = 16 << 20;

  // File descriptors, which stay the caller's. `out` is watched only: when its reader has gone, the
  // input is over too. -1: none.
  explicit LineInput(int in, int out = -1) : in_(in), out_(out) {}

  // The next line without its newline; nothing at the end of the input, when nobody listens, and
  // after Ctrl-C.
  std::optional<std::string> Next();

 private:
  // Waits for bytes and takes them; false at the end.
  bool Fill();

  int in_;
  int out_;
  bool ended_ = false;
  std::string buffer_;
  size_t start_ = 0;      // Of the next line in the buffer.
  size_t searched_ = 0;   // No newline before this place, from start_ on.
  bool cutting_ = false;  // The rest of a line too long is being dropped.
};

}  // namespace kibitz::uci
