// Reads lines of any length and any bytes from a pipe or terminal, until the reader of the output
// has gone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace kibitz::uci {

class LineInput {
 public:
  // Longer lines are cut here, so that a stream without newlines cannot fill the memory.
  static constexpr size_t kLongestLine = 16 << 20;

  // File descriptors, owned by the caller. `out` is only watched: when its reader has gone, the
  // input ends too. -1: none.
  explicit LineInput(int in, int out = -1) : in_(in), out_(out) {}

  // The next line without its newline; nothing at the end of the input, when the reader of `out`
  // has gone, and after Ctrl-C.
  std::optional<std::string> Next();

 private:
  // Waits for bytes and appends them to the buffer; false at the end.
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
