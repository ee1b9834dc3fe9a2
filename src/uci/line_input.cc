#include "uci/line_input.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/interrupt.h"

namespace kibitz::uci {

std::optional<std::string> LineInput::Next() {
  while (true) {
    const size_t newline = buffer_.find('\n', searched_);
    if (newline != std::string::npos) {
      std::string line = buffer_.substr(start_, newline - start_);
      start_ = searched_ = newline + 1;
      if (!std::exchange(cutting_, false)) return line;
      continue;  // It was the rest of a line that is already out.
    }
    searched_ = buffer_.size();
    buffer_.erase(0, start_);
    searched_ -= start_;
    start_ = 0;
    if (cutting_) {
      buffer_.clear();
      searched_ = 0;
    } else if (buffer_.size() >= kLongestLine) {
      cutting_ = true;
      searched_ = 0;
      return std::exchange(buffer_, {});
    }
    if (!Fill()) break;
  }
  // The last line may lack its newline.
  if (buffer_.empty() || Interrupted()) return std::nullopt;
  searched_ = 0;
  return std::exchange(buffer_, {});
}

bool LineInput::Fill() {
  while (!ended_ && !Interrupted()) {
    // A signal may come to another thread, or just before the call: look now and then.
    constexpr int kLookMilliseconds = 250;
    std::array<pollfd, 2> polls = {{{in_, POLLIN, 0}, {out_, 0, 0}}};
    const int ready = poll(polls.data(), polls.size(), kLookMilliseconds);
    if (ready <= 0) continue;
    if ((polls[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) ended_ = true;
    if (ended_ || polls[0].revents == 0) continue;
    std::array<char, 65536> bytes;
    const ssize_t count = read(in_, bytes.data(), bytes.size());
    if (count > 0) {
      buffer_.append(bytes.data(), static_cast<size_t>(count));
      return true;
    }
    if (count == 0 || (errno != EINTR && errno != EAGAIN)) ended_ = true;
  }
  return false;
}

}  // namespace kibitz::uci
