#include "serve/http/event_log.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace kibitz::serve {

bool EventLog::Append(std::string_view event, std::string_view data) {
  std::string text;
  text.reserve(event.size() + data.size() + 16);
  text.append("event: ").append(event).append("\n");
  for (std::string_view line : Split(data, '\n')) text.append("data: ").append(line).append("\n");
  text += '\n';
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || bytes_.size() + text.size() > kMaxBytes) return false;
    bytes_ += text;
    waiting.swap(waiting_);
  }
  Wake(std::move(waiting));
  return true;
}

void EventLog::Close() {
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiting.swap(waiting_);
  }
  Wake(std::move(waiting));
}

EventLog::Piece EventLog::Read(size_t from, size_t limit) const {
  const std::lock_guard lock(mutex_);
  const size_t size = from < bytes_.size() ? std::min(limit, bytes_.size() - from) : 0;
  return {.bytes = size == 0 ? std::string() : bytes_.substr(from, size),
          .end = closed_ && from + size >= bytes_.size()};
}

void EventLog::Wait(size_t from, std::function<void()> wake) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_ && from >= bytes_.size()) {
      waiting_.push_back(std::move(wake));
      return;
    }
  }
  wake();
}

void EventLog::Wake(std::vector<std::function<void()>> waiting) {
  for (const auto& wake : waiting) wake();
}

}  // namespace kibitz::serve
