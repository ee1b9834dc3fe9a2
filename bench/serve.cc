// The server as visitors feel it: how soon a plain request is answered alone, beside 50 thoughts
// that stream, and beside 1000 connections that send a byte now and then.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "bench/bench.h"
#include "serve/serve.h"

namespace kibitz::bench {
namespace {

constexpr double kAllowed = 100;  // Milliseconds, p99 of a plain GET.

int Connect(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    throw Error::System("cannot connect");
  }
  return socket;
}

void Send(int socket, const std::string& bytes) {
  if (::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) throw Error::System("send");
}

std::string Head(const std::string& line, int port) {
  return fmt::format("{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", line, port);
}

// Reads until the text was seen; false when the server closes first.
bool ReadUntil(int socket, std::string_view text, std::string& read) {
  char buffer[16384];
  while (read.find(text) == std::string::npos) {
    const ssize_t size = ::recv(socket, buffer, sizeof(buffer), 0);
    if (size <= 0) return false;
    read.append(buffer, static_cast<size_t>(size));
  }
  return true;
}

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

// Milliseconds of GET state, each on a connection of its own.
std::vector<double> Ask(int port, int times, Signature& signature) {
  std::vector<double> milliseconds;
  for (int i = 0; i < times; ++i) {
    const Timer timer;
    const int socket = Connect(port);
    Send(socket, Head("GET /api/v1/tokens", port) + "Connection: close\r\n\r\n");
    std::string read;
    ReadUntil(socket, "new_variation", read);
    ::close(socket);
    milliseconds.push_back(1000 * timer.Seconds());
    if (i == 0) signature.Add(read.substr(read.find("\r\n\r\n") + 4, 1000));
  }
  return milliseconds;
}

void ReportTimes(Bench& bench, const std::string& name, const std::vector<double>& milliseconds,
                 uint64_t signature) {
  for (const double share : {0.5, 0.99}) {
    const double value = Quantile(milliseconds, share);
    bench.Report({.name = fmt::format("GET {}, p{:.0f}", name, 100 * share),
                  .value = value,
                  .unit = "ms",
                  .yardstick = kAllowed,
                  .yardstick_name = "allowed",
                  .signature = signature});
    if (value > kAllowed) bench.Fail(name + " takes longer than allowed");
  }
}

void BenchStreams(Bench& bench, int port) {
  const std::string body = R"({"model": "tiny.pt", "max_variations": 8, "max_depth": 6})";
  std::atomic<int> finished = 0;
  std::atomic<int> lost = 0;
  std::vector<std::jthread> viewers;
  const Timer timer;
  for (int i = 0; i < 50; ++i) {
    viewers.emplace_back([&] {
      const int socket = Connect(port);
      Send(socket, Head("POST /api/v1/think", port) +
                       fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                                   body.size(), body));
      std::string read;
      (ReadUntil(socket, "event: end", read) ? finished : lost)++;
      ::close(socket);
    });
  }
  Signature signature;
  std::vector<double> times;
  while (finished + lost < 50) {
    const auto some = Ask(port, 10, signature);
    times.insert(times.end(), some.begin(), some.end());
  }
  bench.Report({.name = "50 thoughts at once, all of them",
                .value = timer.Seconds(),
                .unit = "s",
                .signature = static_cast<uint64_t>(finished)});
  if (lost > 0) bench.Fail(fmt::format("{} of 50 streams were lost", lost.load()));
  ReportTimes(bench, "beside 50 thoughts", times, signature.value());
}

void BenchSlow(Bench& bench, int port) {
  std::vector<int> slow;
  for (int i = 0; i < 1000; ++i) {
    slow.push_back(Connect(port));
    Send(slow.back(), "GET / HTTP/1.1\r\nHo");
  }
  Signature signature;
  const auto times = Ask(port, bench.quick() ? 200 : 2000, signature);
  ReportTimes(bench, "beside 1000 slow connections", times, signature.value());
  for (const int socket : slow) ::close(socket);
}

void Run(Bench& bench) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 8192);
  setrlimit(RLIMIT_NOFILE, &limit);
  serve::ServeOptions options;
  options.port = 0;
  options.models = {KIBITZ_SOURCE_DIR "/tests/golden/decoder/tiny.pt"};
  serve::Serving serving(options);
  std::jthread server([&](std::stop_token stop) { serving.Run(stop); });
  Signature signature;
  const auto alone = Ask(serving.port(), bench.quick() ? 200 : 2000, signature);
  ReportTimes(bench, "alone", alone, signature.value());
  BenchStreams(bench, serving.port());
  BenchSlow(bench, serving.port());
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  kibitz::bench::Bench bench("serve", argc, argv);
  try {
    kibitz::bench::Run(bench);
  } catch (const kibitz::Error& error) {
    bench.Fail(error.message());
  }
  return bench.Finish();
}
