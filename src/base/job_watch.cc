#include "base/job_watch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/text.h"

namespace kibitz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTickMilliseconds = 250;  // A sign of life each.
constexpr double kSilentSeconds = 6;    // Without one.
constexpr double kJoinSeconds = 60;
constexpr double kDoneSeconds = 10;
constexpr double kLastSeconds = 2;  // For the other side to read why.

// Lines between the ranks: "hello RANK HOST", "." as a sign of life, "meet TEXT" to rank 0 and "met
// [TEXT, ...]" from it, "done", "stopped", "failed TEXT".
struct Peer {
  int rank = 0;
  int socket = -1;
  std::string host;
  std::string received;  // An unfinished line.
  double silent = 0;     // Seconds, while this process was running.
  bool done = false;
  bool closed = false;
  std::optional<std::string> here;  // What it said at the meeting that is under way.
};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

bool SendLine(int socket, const std::string& line) {
  const std::string text = line + "\n";
  return send(socket, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

// The whole lines that are there; nothing when the connection is closed.
std::optional<std::vector<std::string>> ReadLines(Peer& peer) {
  char buffer[4096];
  const ssize_t count = recv(peer.socket, buffer, sizeof(buffer), MSG_DONTWAIT);
  const bool closed = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
  if (count > 0) peer.received.append(buffer, static_cast<size_t>(count));
  std::vector<std::string> lines;
  for (size_t end = peer.received.find('\n'); end != std::string::npos;
       end = peer.received.find('\n')) {
    lines.push_back(peer.received.substr(0, end));
    peer.received.erase(0, end + 1);
  }
  if (closed && lines.empty()) return std::nullopt;
  return lines;
}

// Sends a last line and waits until the other side has closed: a connection that ends with unread
// input is reset, and the line may be lost.
void SendLast(const Peer& peer, const std::string& line) {
  SendLine(peer.socket, line);
  shutdown(peer.socket, SHUT_WR);
  const auto start = Clock::now();
  char buffer[4096];
  while (SecondsSince(start) < kLastSeconds) {
    pollfd waiting = {peer.socket, POLLIN, 0};
    if (poll(&waiting, 1, 100) > 0 && recv(peer.socket, buffer, sizeof(buffer), 0) <= 0) return;
  }
}

// On any free port when it is 0.
int Listen(int& port) {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_any;
  address.sin6_port = htons(static_cast<uint16_t>(port));
  const int off = 0;
  const int on = 1;
  socklen_t size = sizeof(address);
  if (socket < 0 || setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0 ||
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(socket, 128) != 0 ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw Error(
        "cannot listen for the other ranks on port {}: {}; set MASTER_PORT to a free port of this "
        "machine",
        port, std::strerror(errno));
  }
  port = ntohs(address.sin6_port);
  return socket;
}

int ConnectTo(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) throw Error("cannot find rank 0 at {}: {}", host, gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int socket = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (socket < 0) continue;
    if (connect(socket, at->ai_addr, at->ai_addrlen) == 0) return socket;
    close(socket);
  }
  throw Error("cannot connect to rank 0 at {}, port {}: {}", host, port, std::strerror(errno));
}

// Tries until rank 0 listens.
int ConnectSoon(const JobPlace& place) {
  const auto start = Clock::now();
  while (true) {
    try {
      return ConnectTo(place.address, place.port);
    } catch (const Error& error) {
      if (SecondsSince(start) > kJoinSeconds) {
        throw Error(
            "rank {} of {} cannot join the others: {}; set MASTER_ADDR to the machine of rank 0 "
            "and "
            "MASTER_PORT to a free port there",
            place.rank, place.ranks, error.message());
      }
    }
    ThrowIfInterrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// The other ranks' hello, on rank 0.
std::vector<Peer> AcceptAll(int listener, int count) {
  std::vector<Peer> peers;
  const auto start = Clock::now();
  while (static_cast<int>(peers.size()) < count) {
    pollfd waiting = {listener, POLLIN, 0};
    if (SecondsSince(start) > kJoinSeconds) {
      throw Error("{} of {} other ranks joined within {} s", peers.size(), count, kJoinSeconds);
    }
    ThrowIfInterrupted();
    if (poll(&waiting, 1, 1000) <= 0) continue;
    Peer peer;
    peer.socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer.socket < 0) continue;
    const auto asked = Clock::now();
    for (bool known = false; !known && SecondsSince(asked) < 5;) {
      pollfd reading = {peer.socket, POLLIN, 0};
      if (poll(&reading, 1, 1000) <= 0) continue;
      const auto lines = ReadLines(peer);
      if (!lines) break;
      if (lines->empty()) continue;
      const auto words = Split(lines->front(), ' ');
      const auto rank =
          words.size() == 3 && words[0] == "hello" ? ParseInt(words[1]) : std::nullopt;
      if (!rank || *rank < 1 || *rank > count) break;
      peer.rank = static_cast<int>(*rank);
      peer.host = words[2];
      for (size_t i = 1; i < lines->size(); ++i) peer.received += (*lines)[i] + "\n";
      known = true;
    }
    if (peer.rank == 0) {  // A stranger.
      close(peer.socket);
      continue;
    }
    peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace

struct JobWatch::Shared {
  JobPlace place;
  std::vector<Peer> peers;  // Of rank 0: all others; of another: rank 0.
  std::mutex mutex;         // Guards sending, what is written to peers, and:
  bool finished = false;    // Done or Fail was called here.
  std::optional<std::vector<std::string>> met;
  std::condition_variable changed;
  std::atomic<bool> stop = false;
  std::jthread thread;

  void Run();
  void Look(Peer& peer);
  void Take(Peer& peer, const std::string& line);
  // Says who failed, tells the others and ends this process.
  [[noreturn]] void End(const Peer* from, const std::string& message);
};

void JobWatch::Shared::End(const Peer* from, const std::string& message) {
  internal::SetStatusLine("");
  const std::string text = fmt::format("kibitz: {}; rank {} ends too\n", message, place.rank);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  for (const Peer& peer : peers) {
    if (&peer != from && !peer.closed) SendLast(peer, "failed " + message);
  }
  _exit(1);
}

void JobWatch::Shared::Look(Peer& peer) {
  if (peer.closed) return;
  const auto lines = ReadLines(peer);
  const std::string who = fmt::format("rank {} on {}", peer.rank, peer.host);
  if (!lines) {
    const std::lock_guard lock(mutex);
    peer.closed = true;
    changed.notify_all();
    if (!peer.done && !finished) End(&peer, who + " died without a message");
    return;
  }
  if (!lines->empty()) peer.silent = 0;
  for (const std::string& line : *lines) Take(peer, line);
  const std::lock_guard lock(mutex);
  if (peer.silent > kSilentSeconds && !peer.done && !finished) {
    End(&peer, fmt::format("{} was silent for {:.0f} s: its machine or the network is down", who,
                           kSilentSeconds));
  }
}

void JobWatch::Shared::Take(Peer& peer, const std::string& line) {
  if (line.starts_with("failed ")) {
    const std::string text = line.substr(7);
    // What rank 0 passes on names the rank already.
    End(&peer, place.rank == 0 ? fmt::format("rank {} on {} failed: {}", peer.rank, peer.host, text)
                               : text);
  }
  const std::lock_guard lock(mutex);
  if (line.starts_with("meet ")) peer.here = line.substr(5);
  if (line.starts_with("met ")) met = nlohmann::json::parse(line.substr(4));
  if (line == "done" || line == "stopped") peer.done = true;
  if (line == "stopped" && !Interrupted()) {
    for (const Peer& other : peers) {
      if (&other != &peer && !other.closed) SendLine(other.socket, line);
    }
    raise(SIGTERM);
  }
  changed.notify_all();
}

void JobWatch::Shared::Run() {
  auto last = Clock::now();
  while (!stop) {
    std::vector<pollfd> waiting;
    for (const Peer& peer : peers) {
      if (!peer.closed) waiting.push_back({peer.socket, POLLIN, 0});
    }
    poll(waiting.data(), waiting.size(), kTickMilliseconds);
    // A process that was stopped for a while has not heard the others: that time does not count.
    const double seconds = std::min(1.0, SecondsSince(last));
    if (SecondsSince(last) * 1000 >= kTickMilliseconds) {
      const std::lock_guard lock(mutex);
      for (const Peer& peer : peers) {
        if (!peer.closed) SendLine(peer.socket, ".");
      }
      last = Clock::now();
      for (Peer& peer : peers) peer.silent += seconds;
    }
    for (Peer& peer : peers) Look(peer);
  }
}

JobWatch::JobWatch(const JobPlace& place, const std::function<void(int)>& publish,
                   const std::function<int()>& port)
    : shared_(std::make_unique<Shared>()) {
  shared_->place = place;
  if (place.rank == 0) {
    int listened = 0;
    const int listener = Listen(listened);
    publish(listened);
    Begin(listener);
  } else {
    Begin(ConnectTo(place.address, port()));
  }
}

JobWatch::JobWatch(const JobPlace& place) : shared_(std::make_unique<Shared>()) {
  shared_->place = place;
  int port = place.port;
  Begin(place.rank == 0 ? Listen(port) : ConnectSoon(place));
}

// With the listener of rank 0, or another's connection to it.
void JobWatch::Begin(int socket) {
  const JobPlace& place = shared_->place;
  if (place.rank == 0) {
    shared_->peers = AcceptAll(socket, place.ranks - 1);
    close(socket);
  } else {
    Peer root;
    root.socket = socket;
    root.host = place.address;
    SendLine(root.socket, fmt::format("hello {} {}", place.rank, HostName()));
    shared_->peers.push_back(std::move(root));
  }
  shared_->thread = std::jthread([this] { shared_->Run(); });
}

JobWatch::~JobWatch() {
  shared_->stop = true;
  shared_->thread.join();
  for (const Peer& peer : shared_->peers) close(peer.socket);
}

std::vector<std::string> JobWatch::Meet(const std::string& text) {
  const nlohmann::json own = text;
  std::unique_lock lock(shared_->mutex);
  const auto wait = [&](const std::function<bool()>& ready) {
    while (!ready()) {
      if (Interrupted()) {
        lock.unlock();
        ThrowIfInterrupted();
      }
      shared_->changed.wait_for(lock, std::chrono::milliseconds(50));
    }
  };
  if (shared_->place.rank > 0) {
    SendLine(shared_->peers[0].socket, "meet " + own.dump());
    wait([&] { return shared_->met.has_value(); });
    return *std::exchange(shared_->met, std::nullopt);
  }
  wait([&] {
    return std::ranges::all_of(shared_->peers,
                               [](const Peer& peer) { return peer.here.has_value(); });
  });
  std::vector<std::string> texts(shared_->peers.size() + 1);
  texts[0] = text;
  for (Peer& peer : shared_->peers) {
    texts[static_cast<size_t>(peer.rank)] =
        nlohmann::json::parse(*std::exchange(peer.here, std::nullopt)).get<std::string>();
  }
  const std::string line = "met " + nlohmann::json(texts).dump();
  for (const Peer& peer : shared_->peers) SendLine(peer.socket, line);
  return texts;
}

// Only the first call tells the others. `last`: and the connections end.
void JobWatch::Say(const std::string& line, bool last) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->finished) return;
  shared_->finished = true;
  shared_->stop = last;
  for (const Peer& peer : shared_->peers) {
    if (last) {
      SendLast(peer, line);
    } else {
      SendLine(peer.socket, line);
    }
  }
}

// Waits for the others' end.
void JobWatch::Leave(const std::string& line) {
  Say(line, false);
  std::unique_lock lock(shared_->mutex);
  const auto over = [&] {
    return std::ranges::all_of(shared_->peers,
                               [](const Peer& peer) { return peer.done || peer.closed; });
  };
  shared_->changed.wait_for(lock, std::chrono::duration<double>(kDoneSeconds), over);
}

void JobWatch::Fail(const std::string& message) {
  std::string line = shared_->place.rank == 0 ? fmt::format("failed rank 0 failed: {}", message)
                                              : fmt::format("failed {}", message);
  std::ranges::replace(line, '\n', ' ');
  Say(line, true);
}

void JobWatch::Stop() { Leave("stopped"); }

void JobWatch::Done() { Leave("done"); }

}  // namespace kibitz
