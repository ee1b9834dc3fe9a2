// The whole server over real connections: many thoughts at once, one reader that never reads.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "serve/serve.h"
#include "tests/support/test_data.h"

namespace kibitz::serve {
namespace {

using Clock = std::chrono::steady_clock;

class ServingTest : public ::testing::Test {
 protected:
  ServingTest()
      : serving_(std::make_unique<Serving>(
            ServeOptions{.port = 0,
                         .models = {testing::GoldenPath("decoder/tiny.pt")},
                         .results = results_.path(),
                         .jobs = 2})),
        thread_([this](std::stop_token stop) { serving_->Run(stop); }) {}

  int Connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(serving_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }

  // Sends it and does not wait.
  int Ask(const std::string& line, const std::string& body = "") const {
    const int socket = Connect();
    std::string bytes =
        fmt::format("{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", line, serving_->port());
    if (!body.empty()) {
      bytes += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
    }
    bytes += "\r\n" + body;
    EXPECT_EQ(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return socket;
  }

  // What has come by now, without waiting; false when the other side has closed.
  static bool ReadSome(int socket, std::string& read) {
    char buffer[16384];
    const ssize_t size = ::recv(socket, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (size > 0) read.append(buffer, static_cast<size_t>(size));
    return size != 0;
  }

  // Until the text is there.
  double SecondsOfGet(const std::string& path, std::string_view text) const {
    const auto begun = Clock::now();
    const int socket = Ask("GET " + path);
    std::string read;
    while (read.find(text) == std::string::npos &&
           Clock::now() - begun < std::chrono::seconds(30)) {
      pollfd wait{.fd = socket, .events = POLLIN, .revents = 0};
      ::poll(&wait, 1, 100);
      if (!ReadSome(socket, read)) break;
    }
    EXPECT_NE(read.find(text), std::string::npos) << read.substr(0, 200);
    ::close(socket);
    return std::chrono::duration<double>(Clock::now() - begun).count();
  }

  testing::TempFolder results_;
  std::unique_ptr<Serving> serving_;
  std::jthread thread_;
};

TEST_F(ServingTest, FiftyThoughtsStreamBesideAReaderThatNeverReads) {
  constexpr int kStreams = 50;
  const std::string body = R"({"model": "tiny.pt", "max_variations": 2, "max_depth": 2})";
  const int slow = Ask("POST /api/v1/think", body);
  std::map<int, std::string> streams;
  for (int i = 0; i < kStreams; ++i) streams[Ask("POST /api/v1/think", body)] = "";
  std::vector<double> seconds;
  size_t ended = 0;
  const auto limit = Clock::now() + std::chrono::seconds(600);
  while (ended < streams.size() && Clock::now() < limit) {
    seconds.push_back(SecondsOfGet("/api/v1/state", "\"version\""));
    ended = 0;
    for (auto& [socket, read] : streams) {
      ReadSome(socket, read);
      ended += read.find("event: end") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_EQ(ended, streams.size());
  for (const auto& [socket, read] : streams) {
    EXPECT_NE(read.find("event: final"), std::string::npos) << read;
    ::close(socket);
  }
  ::close(slow);
  // Generous, for machines that do other work; bench/serve has the figures.
  std::sort(seconds.begin(), seconds.end());
  EXPECT_LT(seconds[seconds.size() / 2], 0.5) << seconds.size() << " requests";
}

TEST_F(ServingTest, EndsAtOnceWithWorkUnderWay) {
  const int socket =
      Ask("POST /api/v1/series",
          R"({"first": "negamax?depth=9", "second": "negamax?depth=10", "openings": "named"})");
  std::string read;
  const auto limit = Clock::now() + std::chrono::seconds(30);
  while (read.find("event: start") == std::string::npos && Clock::now() < limit) {
    ReadSome(socket, read);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_NE(read.find("event: start"), std::string::npos) << read;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ReadSome(socket, read);
  ASSERT_EQ(read.find("event: end"), std::string::npos) << read;
  const auto begun = Clock::now();
  thread_.request_stop();
  thread_.join();
  serving_.reset();
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds(5));
  ::close(socket);
}

}  // namespace
}  // namespace kibitz::serve
