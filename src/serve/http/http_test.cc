// From bytes to replies: the parser, the gate, logs of events, and a server under attack.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "serve/http/event_log.h"
#include "serve/http/gate.h"
#include "serve/http/request_parser.h"
#include "serve/http/server.h"

namespace kibitz::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Get(const std::string& target, const std::string& headers = "Host: here\r\n") {
  return "GET " + target + " HTTP/1.1\r\n" + headers + "\r\n";
}

TEST(RequestParserTest, DecodesPathAndQuery) {
  const auto request = ParseRequest(Get("/a%20b/c?x=1%262&y=a+b&empty"));
  ASSERT_TRUE(request) << request.reason();
  EXPECT_EQ(request->path, "/a b/c");
  EXPECT_EQ(request->Query("x"), "1&2");
  EXPECT_EQ(request->Query("y"), "a b");
  EXPECT_EQ(request->Query("empty"), "");
}

TEST(RequestParserTest, RefusesPathsThatLeave) {
  for (const char* target : {"/../etc/passwd", "/a/../b", "/%2e%2e/x", "/a//b", "/./a", "/a%00b",
                             "/a%0ab", "/%zz", "/%2", "a/b", "http://other/", "*"}) {
    EXPECT_FALSE(ParseRequest(Get(target))) << target;
  }
}

TEST(RequestParserTest, RefusesWhatProxiesReadInTwoWays) {
  EXPECT_FALSE(ParseRequest(Get("/", "Host: a\r\nHost: b\r\n")));
  EXPECT_FALSE(ParseRequest(Get("/", "")));
  EXPECT_FALSE(
      ParseRequest("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
  EXPECT_FALSE(ParseRequest("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -2\r\n\r\n"));
  EXPECT_FALSE(
      ParseRequest("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nab"));
}

TEST(RequestParserTest, ReadsChunks) {
  const auto request = ParseRequest(
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  ASSERT_TRUE(request) << request.reason();
  EXPECT_EQ(request->body, "abc");
}

TEST(RequestParserTest, KeepsToItsLimits) {
  const std::string many(100'000, 'x');
  EXPECT_FALSE(ParseRequest(Get("/", "Host: a\r\nX: " + many + "\r\n")));
  EXPECT_FALSE(ParseRequest("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n"));
}

Request From(const std::string& method, const std::string& path,
             std::map<std::string, std::string> headers) {
  Request request;
  request.method = method;
  request.path = path;
  headers.try_emplace("host", "127.0.0.1:80");
  request.headers = std::move(headers);
  return request;
}

int StatusOf(const Gate& gate, const Request& request) {
  const auto refusal = gate.Refuse(request);
  return refusal ? refusal->status : 200;
}

TEST(GateTest, KnowsItsNames) {
  const Gate gate({.hosts = {"127.0.0.1:80", "localhost:80"}});
  EXPECT_EQ(StatusOf(gate, From("GET", "/", {})), 200);
  EXPECT_EQ(StatusOf(gate, From("GET", "/", {{"host", "LOCALHOST:80"}})), 200);
  EXPECT_EQ(StatusOf(gate, From("GET", "/", {{"host", "evil.example:80"}})), 421);
  EXPECT_EQ(StatusOf(gate, From("GET", "/", {{"host", "192.168.0.1:80"}})), 421);
  const Gate open({.any_address = true});
  EXPECT_EQ(StatusOf(open, From("GET", "/", {{"host", "192.168.0.1:80"}})), 200);
  EXPECT_EQ(StatusOf(open, From("GET", "/", {{"host", "evil.example"}})), 421);
}

TEST(GateTest, RefusesOtherSites) {
  const Gate gate({.hosts = {"127.0.0.1:80"}});
  const std::string json = "application/json";
  EXPECT_EQ(StatusOf(gate, From("POST", "/api/v1/x", {{"content-type", json}})), 200);
  EXPECT_EQ(StatusOf(gate, From("POST", "/api/v1/x",
                                {{"content-type", json}, {"origin", "http://127.0.0.1:80"}})),
            200);
  EXPECT_EQ(StatusOf(gate, From("POST", "/api/v1/x",
                                {{"content-type", json}, {"origin", "http://evil.example"}})),
            403);
  EXPECT_EQ(StatusOf(gate, From("POST", "/api/v1/x", {{"content-type", json}, {"origin", "null"}})),
            403);
  EXPECT_EQ(StatusOf(gate, From("GET", "/api/v1/x", {{"sec-fetch-site", "cross-site"}})), 403);
  // A link from elsewhere may open the page.
  EXPECT_EQ(StatusOf(gate, From("GET", "/think", {{"sec-fetch-site", "cross-site"}})), 200);
  // A form of another site can send text, not JSON.
  EXPECT_EQ(StatusOf(gate, From("POST", "/api/v1/x", {{"content-type", "text/plain"}})), 415);
}

TEST(GateTest, AsksForTheToken) {
  const Gate gate({.hosts = {"127.0.0.1:80"}, .token = "secret"});
  EXPECT_EQ(StatusOf(gate, From("GET", "/", {})), 401);
  EXPECT_EQ(StatusOf(gate, From("GET", "/api/v1/x", {{"authorization", "Bearer secret"}})), 200);
  EXPECT_EQ(StatusOf(gate, From("GET", "/api/v1/x", {{"authorization", "Bearer secre"}})), 401);
  EXPECT_EQ(StatusOf(gate, From("GET", "/api/v1/x", {{"cookie", "a=b; kibitz=secret"}})), 200);
  Request opened = From("GET", "/think", {});
  opened.query["token"] = "secret";
  const auto answer = gate.Refuse(opened);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 303);
  // A token in an address of the interface would end up in logs.
  opened.path = "/api/v1/x";
  EXPECT_EQ(StatusOf(gate, opened), 401);
}

TEST(GateTest, ComparesSecretsWhole) {
  EXPECT_TRUE(SameSecret("abc", "abc"));
  EXPECT_FALSE(SameSecret("", "abc"));
  EXPECT_FALSE(SameSecret("abc", ""));
  EXPECT_FALSE(SameSecret("abcabc", "abc"));
}

TEST(EventLogTest, ReadersReadAtTheirOwnPace) {
  EventLog log;
  int woken = 0;
  log.Wait(0, [&] { ++woken; });
  EXPECT_EQ(woken, 0);
  EXPECT_TRUE(log.Append("a", "1\n2"));
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(log.Read(0, 100).bytes, "event: a\ndata: 1\ndata: 2\n\n");
  EXPECT_EQ(log.Read(0, 5).bytes, "event");
  EXPECT_FALSE(log.Read(0, 100).end);
  log.Close();
  EXPECT_FALSE(log.Append("b", ""));
  EXPECT_FALSE(log.Read(0, 5).end);
  EXPECT_TRUE(log.Read(5, 100).end);
  log.Wait(1000, [&] { ++woken; });
  EXPECT_EQ(woken, 2);
}

TEST(EventLogTest, HasALimit) {
  EventLog log;
  const std::string mega(size_t{1} << 20, 'x');
  int taken = 0;
  while (taken < 100 && log.Append("a", mega)) ++taken;
  EXPECT_EQ(taken, 7);
}

// A server on a free port, and raw connections to it.
class ServerTest : public ::testing::Test {
 protected:
  void Start(ServerOptions options = {}) {
    options.port = 0;
    server_ = std::make_unique<Server>(
        options, [](const Request&) { return std::nullopt; },
        [this](const Request& request) { return Handle(request); });
    thread_ = std::jthread([this](std::stop_token stop) { server_->Run(stop); });
  }

  Reply Handle(const Request& request) {
    if (request.path == "/stream") {
      return {.events = log_, .on_leave = [this] { ++left_; }};
    }
    if (request.path == "/throw") throw Error::Usage("wrong {}", "usage");
    return {.response = {.type = "text/plain", .body = request.method + " " + request.body}};
  }

  int Connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }

  static void Send(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // Until the text is there, the other side closes, or the time is over.
  static std::string ReadUntil(int socket, std::string_view text, int milliseconds = 10'000) {
    std::string read;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    size_t searched = 0;  // So far in vain.
    while (read.find(text, searched) == std::string::npos &&
           std::chrono::steady_clock::now() < end) {
      searched = read.size() < text.size() ? 0 : read.size() - text.size();
      pollfd wait{.fd = socket, .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t size = ::recv(socket, buffer, sizeof(buffer), 0);
      if (size <= 0) break;
      read.append(buffer, static_cast<size_t>(size));
    }
    return read;
  }

  std::string Ask(const std::string& bytes, std::string_view until = "\r\n\r\n") const {
    const int socket = Connect();
    Send(socket, bytes);
    std::string answer = ReadUntil(socket, until);
    ::close(socket);
    return answer;
  }

  bool Answers() const { return Ask(Get("/ok"), "GET").starts_with("HTTP/1.1 200"); }

  std::shared_ptr<EventLog> log_ = std::make_shared<EventLog>();
  std::atomic<int> left_ = 0;
  std::unique_ptr<Server> server_;
  std::jthread thread_;
};

TEST_F(ServerTest, AnswersAndKeepsTheConnection) {
  Start();
  const int socket = Connect();
  for (int i = 0; i < 3; ++i) {
    Send(socket, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    const std::string answer = ReadUntil(socket, "POST hi");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none'"));
  }
  ::close(socket);
  EXPECT_THAT(Ask(Get("/throw"), "wrong usage"), StartsWith("HTTP/1.1 400"));
  const std::string head = Ask("HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "none");
  EXPECT_THAT(head, HasSubstr("Content-Length: 5"));
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
}

TEST_F(ServerTest, RefusesHostileRequests) {
  Start();
  std::string headers;
  for (int i = 0; i < 100'000; ++i) headers += "X-" + std::to_string(i) + ": 1\r\n";
  EXPECT_THAT(Ask(Get("/", headers)), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1073741824\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "fffffffffffffffffff\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask(Get("/../../etc/passwd")), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("\x16\x03\x01 not HTTP at all\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  // A body that has no end: chunk after chunk.
  std::string chunks = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 40; ++i) chunks += "8000\r\n" + std::string(0x8000, 'x') + "\r\n";
  EXPECT_THAT(Ask(chunks), StartsWith("HTTP/1.1 413"));
  EXPECT_TRUE(Answers());
}

TEST_F(ServerTest, OutlivesAThousandSlowConnections) {
  Start({.read_seconds = 2, .connections = 600});
  std::vector<int> slow;
  for (int i = 0; i < 1000; ++i) {
    slow.push_back(Connect());
    Send(slow.back(), i % 2 == 0 ? "GET / HT" : "POST / HTTP/1.1\r\nHost: a\r\nContent-Le");
  }
  EXPECT_TRUE(Answers());
  // A byte now and then does not win time.
  for (int i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    for (const int socket : slow) Send(socket, "x");
  }
  int closed = 0;
  for (const int socket : slow) {
    char byte = 0;
    const ssize_t size = ::recv(socket, &byte, 1, MSG_DONTWAIT);
    closed += size == 0 || (size < 0 && errno == ECONNRESET) ? 1 : 0;
    ::close(socket);
  }
  EXPECT_EQ(closed, 1000);
  EXPECT_GE(server_->dropped(), 1000);
  EXPECT_TRUE(Answers());
}

TEST_F(ServerTest, StreamsToManyAndNoticesWhoLeaves) {
  Start();
  log_->Append("first", "1");
  std::vector<int> sockets;
  for (int i = 0; i < 50; ++i) {
    sockets.push_back(Connect());
    Send(sockets.back(), Get("/stream"));
    EXPECT_THAT(ReadUntil(sockets.back(), "data: 1\n\n"), HasSubstr("text/event-stream"));
  }
  ::close(sockets[0]);
  for (int i = 0; i < 100 && left_ == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(left_, 1);
  log_->Append("second", "2");
  for (size_t i = 1; i < sockets.size(); ++i) {
    EXPECT_THAT(ReadUntil(sockets[i], "data: 2\n\n"), HasSubstr("event: second"));
  }
  log_->Close();
  for (size_t i = 1; i < sockets.size(); ++i) {
    char byte = 0;
    EXPECT_EQ(::recv(sockets[i], &byte, 1, 0), 0);
    ::close(sockets[i]);
  }
  for (int i = 0; i < 100 && left_ < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(left_, 50);
}

TEST_F(ServerTest, ASlowReaderDelaysNobodyAndIsDropped) {
  Start({.write_seconds = 3});
  for (int i = 0; i < 7; ++i) log_->Append("big", std::string(size_t{1} << 20, 'x'));
  const int slow = Connect();
  Send(slow, Get("/stream"));
  const int quick = Connect();
  Send(quick, Get("/stream"));
  log_->Close();
  std::string all;
  for (std::string piece = " "; !piece.empty(); all += piece)
    piece = ReadUntil(quick, "\n\n", 2000);
  EXPECT_GT(all.size(), size_t{7} << 20);
  for (int i = 0; i < 100 && left_ < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(left_, 2);
  ::close(slow);
  ::close(quick);
}

TEST_F(ServerTest, StopsWithOpenStreams) {
  Start();
  const int socket = Connect();
  Send(socket, Get("/stream"));
  ReadUntil(socket, "\r\n\r\n");
  thread_.request_stop();
  thread_.join();
  EXPECT_EQ(left_, 1);
  ::close(socket);
}

TEST_F(ServerTest, CanBeStartedAgainAtOnce) {
  Start();
  const int streaming = Connect();
  Send(streaming, Get("/stream"));
  ReadUntil(streaming, "\r\n\r\n");
  const int idle = Connect();
  Send(idle, Get("/ok"));
  ReadUntil(idle, "GET");
  const int port = server_->port();
  const auto begun = std::chrono::steady_clock::now();
  thread_.request_stop();
  thread_.join();
  server_.reset();
  // The connections of the first server are not gone: its side waits in TIME_WAIT.
  EXPECT_NO_THROW(Server(
      {.port = port}, [](const Request&) { return std::nullopt; },
      [](const Request&) { return Reply{}; }));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  ::close(streaming);
  ::close(idle);
}

TEST(ServerErrorTest, SaysThatAPortIsTaken) {
  const auto pass = [](const Request&) { return std::nullopt; };
  const auto handle = [](const Request&) { return Reply{}; };
  const Server first({.port = 0}, pass, handle);
  try {
    const Server second({.port = first.port()}, pass, handle);
    FAIL() << "two servers on one port";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("--port"));
  }
}

}  // namespace
}  // namespace kibitz::serve
