// A stream of server-sent events, kept whole: one writer, and any number of readers that each read
// at their own pace. A slow reader delays nobody, and one who comes late starts at the beginning.
//
//   EventLog log;
//   log.Append("node", R"({"move": "e2e4"})");   // event: node, data: {...}
//   log.Close();
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kibitz::serve {

class EventLog {
 public:
  // `data` may have several lines. False once the log is closed or has `max_bytes`.
  bool Append(std::string_view event, std::string_view data);
  // No more events. Readers end when they have read all.
  void Close();

  struct Piece {
    std::string bytes;
    bool end = false;  // The log is closed and this is its last piece.
  };
  // At most `limit` bytes from offset `from`; without bytes there is nothing new yet.
  Piece Read(size_t from, size_t limit) const;
  // Calls `wake` once there is more than `from` bytes or the log is closed: now, or later on the
  // writer's thread.
  void Wait(size_t from, std::function<void()> wake);

  static constexpr size_t kMaxBytes = size_t{8} << 20;

 private:
  void Wake(std::vector<std::function<void()>> waiting);

  mutable std::mutex mutex_;
  std::string bytes_;  // Guarded by mutex_, as all below.
  bool closed_ = false;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace kibitz::serve
