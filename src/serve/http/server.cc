#include "serve/http/server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <list>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "serve/http/beast_request.h"

namespace kibitz::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr size_t kPieceBytes = 32 * 1024;
constexpr size_t kDrainBytes = 256 * 1024;

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// What every response says to browsers. Scripts and styles come from here alone.
const std::pair<const char*, const char*> kSafetyHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src "
     "'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
     "frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

template <typename Message>
void SetHeaders(Message& message, const Response& response) {
  message.set(http::field::content_type, response.type);
  for (const auto& [name, value] : kSafetyHeaders) message.set(name, value);
  message.set(http::field::cache_control, "no-store");
  for (const auto& [name, value] : response.headers) message.set(name, value);
}

// Each connection is a file: as many as the system lets us have.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 8192);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

class Session;

// The event loop and what all connections share. Lives on the loop's thread, but for Handle.
class Server::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(const ServerOptions& options, Check check, Handler handler);

  void Listen();
  void Accept();
  void Run(std::stop_token stop);

  // Counts a session among those that wait for a request, or no more; the longest waiting first.
  void Waits(const std::shared_ptr<Session>& session);
  void WaitsNoMore(Session* session);
  void Left(Session* session) { sessions_.erase(session); }
  void Dropped() { ++dropped_; }

  // Runs the handler on some thread, then `use` on the loop's. False when too many wait.
  bool Handle(Request request, std::function<void(Reply)> use);

  const ServerOptions& options() const { return options_; }
  std::optional<Response> Refuse(const Request& request) const { return check_(request); }
  asio::io_context& loop() { return loop_; }
  int port() const { return acceptor_.local_endpoint().port(); }
  int64_t dropped() const { return dropped_; }

 private:
  int connections() const { return static_cast<int>(sessions_.size()); }
  void MakeRoom();
  void Shutdown();
  Reply Answer(const Request& request) const;

  const ServerOptions options_;
  const Check check_;
  const Handler handler_;
  asio::io_context loop_{1};
  tcp::acceptor acceptor_{loop_};
  asio::steady_timer retry_{loop_};
  std::list<std::weak_ptr<Session>> waiting_;
  std::map<Session*, std::list<std::weak_ptr<Session>>::iterator> places_;
  std::map<Session*, std::weak_ptr<Session>> sessions_;
  int handling_ = 0;
  std::atomic<int64_t> dropped_ = 0;
  std::unique_ptr<ThreadPool> pool_;
};

// One connection: reads a request, has it answered, writes the answer, and so on.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Server::Core> core, tcp::socket socket)
      : core_(std::move(core)), stream_(std::move(socket)), ping_(core_->loop()) {}
  ~Session() {
    Leave();
    core_->WaitsNoMore(this);
    core_->Left(this);
  }

  void ReadHeader();
  void Close();

 private:
  const ServerOptions& options() const { return core_->options(); }
  template <typename Method>
  auto Bound(Method method) {
    return [self = shared_from_this(), method](ErrorCode error, size_t size) {
      (self.get()->*method)(error, size);
    };
  }

  void HeaderRead(ErrorCode error, size_t size);
  void BodyRead(ErrorCode error, size_t size);
  void ReadFailed(ErrorCode error);
  void Use(Reply reply);
  void Send(const Response& response, bool keep);
  template <typename Message>
  void Write(std::shared_ptr<Message> message);
  void Drain();

  void StartStream();
  void WatchClient();
  void StreamMore();
  void WaitForEvents();
  void WritePiece(std::string bytes, bool end);
  void Leave();

  std::shared_ptr<Server::Core> core_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<BeastParser> parser_;
  bool head_ = false;
  bool keep_alive_ = false;
  size_t drained_ = 0;

  // Of a stream of events.
  std::shared_ptr<EventLog> events_;
  std::function<void()> on_leave_;
  size_t sent_ = 0;
  bool writing_ = false;
  bool waits_for_events_ = false;
  std::string piece_;
  std::array<char, 256> watched_{};
  asio::steady_timer ping_;
};

// --- Core ---

Server::Core::Core(const ServerOptions& options, Check check, Handler handler)
    : options_(options), check_(std::move(check)), handler_(std::move(handler)) {}

void Server::Core::Listen() {
  RaiseFileLimit();
  try {
    const tcp::endpoint endpoint(asio::ip::make_address(options_.host),
                                 static_cast<uint16_t>(options_.port));
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(asio::socket_base::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen();
  } catch (const boost::system::system_error& error) {
    throw Error("cannot listen on {} port {}: {}; choose another --port, 0 for any free one",
                options_.host, options_.port, error.code().message());
  }
}

void Server::Core::Accept() {
  acceptor_.async_accept([this](ErrorCode error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {  // Too many open files, mostly: wait until some are closed.
      retry_.expires_after(std::chrono::milliseconds(50));
      retry_.async_wait([this](ErrorCode stopped) {
        if (!stopped) Accept();
      });
      return;
    }
    if (connections() >= options_.connections) MakeRoom();
    ErrorCode ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    if (connections() < options_.connections + 16) {
      const auto session = std::make_shared<Session>(shared_from_this(), std::move(socket));
      sessions_[session.get()] = session;
      session->ReadHeader();
    } else {
      ++dropped_;
    }
    Accept();
  });
}

void Server::Core::MakeRoom() {
  if (waiting_.empty()) return;
  if (const auto session = waiting_.front().lock()) {
    ++dropped_;
    session->Close();
  }
}

void Server::Core::Waits(const std::shared_ptr<Session>& session) {
  WaitsNoMore(session.get());
  places_[session.get()] = waiting_.insert(waiting_.end(), session);
}

void Server::Core::WaitsNoMore(Session* session) {
  const auto place = places_.find(session);
  if (place == places_.end()) return;
  waiting_.erase(place->second);
  places_.erase(place);
}

Reply Server::Core::Answer(const Request& request) const {
  try {
    return handler_(request);
  } catch (const Error& error) {
    const bool usage = error.kind() == Error::Kind::kUsage;
    return {.response = ErrorResponse(usage ? 400 : 500, error.message())};
  } catch (const std::exception& error) {
    LogWarn("serve: {} {}: {}", request.method, request.path, error.what());
    return {.response = ErrorResponse(500, error.what())};
  }
}

bool Server::Core::Handle(Request request, std::function<void(Reply)> use) {
  if (handling_ >= options_.waiting + options_.handlers) return false;
  ++handling_;
  // On the pool's thread only: the request, the handler, and the post back to the loop.
  pool_->Submit([this, request = std::move(request), use = std::move(use)]() mutable {
    auto reply = std::make_shared<Reply>(Answer(request));
    asio::post(loop_, [this, reply, use = std::move(use)] {
      --handling_;
      use(std::move(*reply));
    });
  });
  return true;
}

void Server::Core::Run(std::stop_token stop) {
  pool_ = std::make_unique<ThreadPool>(options_.handlers);
  Accept();
  {
    const std::stop_callback stopper(stop, [this] { asio::post(loop_, [this] { Shutdown(); }); });
    loop_.run();  // Until nothing is left to wait for.
  }
  pool_.reset();  // Handlers end.
  loop_.restart();
  loop_.poll();  // What they posted finds its connection closed.
}

void Server::Core::Shutdown() {
  ErrorCode ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  for (const auto& [pointer, weak] : std::map(sessions_)) {
    if (const auto session = weak.lock()) session->Close();
  }
}

// --- Session: requests and responses ---

void Session::ReadHeader() {
  parser_.emplace();
  SetLimits(*parser_, options().limits);
  core_->Waits(shared_from_this());
  stream_.expires_after(Milliseconds(options().read_seconds));
  http::async_read_header(stream_, buffer_, *parser_, Bound(&Session::HeaderRead));
}

void Session::HeaderRead(ErrorCode error, size_t) {
  if (error) return ReadFailed(error);
  if (parser_->get()[http::field::expect] == "100-continue") {
    auto go_on = std::make_shared<http::response<http::empty_body>>(http::status::continue_, 11);
    http::async_write(stream_, *go_on,
                      [self = shared_from_this(), go_on](ErrorCode failed, size_t) {
                        if (failed) return self->Close();
                        http::async_read(self->stream_, self->buffer_, *self->parser_,
                                         self->Bound(&Session::BodyRead));
                      });
    return;
  }
  http::async_read(stream_, buffer_, *parser_, Bound(&Session::BodyRead));
}

void Session::ReadFailed(ErrorCode error) {
  if (error == http::error::end_of_stream || error == http::error::partial_message ||
      error == beast::error::timeout || error.category() == asio::error::get_system_category()) {
    if (error == beast::error::timeout) core_->Dropped();
    return Close();
  }
  if (error == http::error::body_limit) {
    return Send(
        ErrorResponse(413, fmt::format("the body is over {} bytes", options().limits.body_bytes)),
        false);
  }
  if (error == http::error::header_limit) {
    return Send(ErrorResponse(431, fmt::format("the headers are over {} bytes",
                                               options().limits.header_bytes)),
                false);
  }
  Send(ErrorResponse(400, error.message()), false);
}

void Session::BodyRead(ErrorCode error, size_t) {
  if (error) return ReadFailed(error);
  core_->WaitsNoMore(this);
  Result<Request> request = RequestOf(parser_->release());
  if (!request) return Send(ErrorResponse(400, request.reason()), false);
  head_ = request->method == "HEAD";
  keep_alive_ = request->keep_alive;
  if (const auto refusal = core_->Refuse(*request)) return Send(*refusal, keep_alive_);
  stream_.expires_never();  // The handler's time is its own.
  const bool taken = core_->Handle(*std::move(request), [self = shared_from_this()](Reply reply) {
    self->Use(std::move(reply));
  });
  if (!taken) Send(ErrorResponse(503, "too many requests at once", "try again"), keep_alive_);
}

void Session::Use(Reply reply) {
  if (reply.events == nullptr) return Send(reply.response, keep_alive_);
  events_ = std::move(reply.events);
  on_leave_ = std::move(reply.on_leave);
  StartStream();
}

void Session::Send(const Response& response, bool keep) {
  core_->WaitsNoMore(this);
  keep_alive_ = keep;
  const auto status = static_cast<http::status>(response.status);
  if (head_) {
    auto message = std::make_shared<http::response<http::empty_body>>(status, 11);
    SetHeaders(*message, response);
    message->content_length(response.body.size());
    return Write(std::move(message));
  }
  auto message = std::make_shared<http::response<http::string_body>>(status, 11);
  SetHeaders(*message, response);
  message->body() = response.body;
  message->prepare_payload();
  Write(std::move(message));
}

template <typename Message>
void Session::Write(std::shared_ptr<Message> message) {
  message->keep_alive(keep_alive_);
  stream_.expires_after(Milliseconds(options().write_seconds));
  http::async_write(stream_, *message,
                    [self = shared_from_this(), message](ErrorCode error, size_t) {
                      if (error) return self->Close();
                      if (self->keep_alive_) return self->ReadHeader();
                      ErrorCode ignored;
                      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                      self->stream_.expires_after(std::chrono::seconds(1));
                      self->Drain();
                    });
}

// Reads what the client still sends, for a moment: closing at once would reset the connection, and
// the client would not see why.
void Session::Drain() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this()](ErrorCode error, size_t size) {
                            self->drained_ += size;
                            if (error || self->drained_ > kDrainBytes) return self->Close();
                            self->Drain();
                          });
}

void Session::Close() {
  Leave();
  ping_.cancel();
  ErrorCode ignored;
  stream_.socket().close(ignored);
}

// --- Session: a stream of events ---

void Session::StartStream() {
  WatchClient();
  auto header = std::make_shared<http::response<http::empty_body>>(http::status::ok, 11);
  SetHeaders(*header, {.type = "text/event-stream"});
  header->keep_alive(false);
  const auto serializer = std::make_shared<http::response_serializer<http::empty_body>>(*header);
  writing_ = true;
  stream_.expires_after(Milliseconds(options().write_seconds));
  http::async_write_header(
      stream_, *serializer,
      [self = shared_from_this(), header, serializer](ErrorCode error, size_t) {
        self->writing_ = false;
        if (error) return self->Close();
        self->StreamMore();
      });
}

// A client that closes its side has gone; what it still sends does not matter.
void Session::WatchClient() {
  stream_.expires_never();
  stream_.async_read_some(asio::buffer(watched_),
                          [self = shared_from_this()](ErrorCode error, size_t) {
                            if (error) return self->Close();
                            self->WatchClient();
                          });
}

void Session::StreamMore() {
  if (writing_ || events_ == nullptr) return;
  EventLog::Piece piece = events_->Read(sent_, kPieceBytes);
  if (piece.bytes.empty() && !piece.end) return WaitForEvents();
  ping_.cancel();
  if (piece.bytes.empty()) return Close();
  sent_ += piece.bytes.size();
  WritePiece(std::move(piece.bytes), piece.end);
}

void Session::WaitForEvents() {
  ping_.expires_after(Milliseconds(options().ping_seconds));
  ping_.async_wait([self = shared_from_this()](ErrorCode error) {
    if (!error && !self->writing_ && self->events_) self->WritePiece(": ping\n\n", false);
  });
  if (std::exchange(waits_for_events_, true)) return;
  events_->Wait(sent_, [weak = weak_from_this(), core = core_] {
    asio::post(core->loop(), [weak] {
      const auto self = weak.lock();
      if (!self) return;
      self->waits_for_events_ = false;
      self->StreamMore();
    });
  });
}

void Session::WritePiece(std::string bytes, bool end) {
  piece_ = std::move(bytes);
  writing_ = true;
  stream_.expires_after(Milliseconds(options().write_seconds));
  asio::async_write(stream_, asio::buffer(piece_),
                    [self = shared_from_this(), end](ErrorCode error, size_t) {
                      self->writing_ = false;
                      if (error == beast::error::timeout) self->core_->Dropped();
                      if (!error && !end) return self->StreamMore();
                      ErrorCode ignored;
                      self->stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
                      self->Close();
                    });
}

void Session::Leave() {
  events_.reset();
  if (const auto on_leave = std::exchange(on_leave_, nullptr)) on_leave();
}

// --- Server ---

Server::Server(const ServerOptions& options, Check check, Handler handler)
    : core_(std::make_shared<Core>(options, std::move(check), std::move(handler))) {
  core_->Listen();
}

Server::~Server() = default;

int Server::port() const { return core_->port(); }
int64_t Server::dropped() const { return core_->dropped(); }
void Server::Run(std::stop_token stop) { core_->Run(std::move(stop)); }

}  // namespace kibitz::serve
