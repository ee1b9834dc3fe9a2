#include "uci/output.h"

namespace kibitz::uci {

void Output::Say(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (!closed_ && !write_(line)) closed_ = true;
}

void Output::Remark(std::string_view text) {
  std::string line = "info string ";
  for (char c : text) line += static_cast<unsigned char>(c) < ' ' || c == 127 ? ' ' : c;
  Say(line);
}

}  // namespace kibitz::uci
