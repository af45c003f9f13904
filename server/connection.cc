#include "connection.h"

#include <poll.h>

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "request_head.h"

namespace toto::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Code = boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::size_t kLingerBytes = std::size_t{4} << 20;  // discarded before a close
constexpr milliseconds kLingerTime{1'000};
constexpr std::size_t kSmallAnswer = std::size_t{64} << 10;  // not counted

constexpr std::string_view kStopping =
    "the server is shutting down; try another one or again later";

// A body that grows with the bytes received, not with the announced length.
struct CountedBody {
  // Beast's concept of a body has these names.
  // NOLINTBEGIN(readability-identifier-naming)
  struct value_type {
    std::string bytes = {};
    MemoryShare* memory = nullptr;
  };
  struct reader {
    template <bool isRequest, typename Fields>
    reader(http::header<isRequest, Fields>&, value_type& value) : value_(value) {}
    void init(const boost::optional<std::uint64_t>&, Code& error) { error = {}; }
    template <typename Buffers>
    std::size_t put(const Buffers& buffers, Code& error) {
      const std::size_t size = asio::buffer_size(buffers);
      if (!value_.memory->take(size)) {
        error = make_error_code(boost::system::errc::no_buffer_space);
        return 0;
      }
      for (const auto& piece : boost::beast::buffers_range_ref(buffers)) {
        value_.bytes.append(static_cast<const char*>(piece.data()), piece.size());
      }
      error = {};
      return size;
    }
    void finish(Code& error) { error = {}; }
    value_type& value_;
  };
  // NOLINTEND(readability-identifier-naming)
};

// The answer to a request that could not be read; nothing if the connection has ended.
std::optional<HttpResponse> refusal_of(const Code& error, const HttpOptions& options) {
  if (error == http::error::body_limit) {
    return error_response(413,
                          fmt::format("the body is larger than {} bytes; send fewer series per "
                                      "request or start the server with a larger --max-body",
                                      options.max_body));
  }
  if (error == boost::system::errc::no_buffer_space) {
    return error_response(503, kTooManyBodies);
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return error_response(400, fmt::format("the request line and headers have more than {} bytes",
                                           options.max_header_bytes));
  }
  if (error.category() == make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message) {
    return error_response(400, fmt::format("this is not an HTTP request: {}", error.message()));
  }
  return std::nullopt;
}

// Everything runs on the connection's own strand; other threads use the post_* functions.
template <typename Stream>
class Connection final : public ConnectionBase {
  static constexpr bool kTls = !std::is_same_v<Stream, tcp::socket>;
  using Parser = http::request_parser<CountedBody>;
  using Message = http::response<http::string_body>;

  // An answer being written.
  struct Outgoing {
    explicit Outgoing(Message whole) : message(std::move(whole)), serializer(message) {}
    Message message;
    http::response_serializer<http::string_body> serializer;
  };

 public:
  template <typename... Args>
  Connection(Connections& shared, Args&&... args)
      : ConnectionBase(shared),
        stream_(std::forward<Args>(args)...),
        buffer_(shared.options.max_header_bytes + kReadBytes) {
    Code ignored;
    const tcp::endpoint peer = socket().remote_endpoint(ignored);
    if (!ignored) peer_ = peer.address().to_string();
    socket().set_option(tcp::no_delay(true), ignored);
  }

  void start() {
    asio::post(stream_.get_executor(), [self = self()] { self->begin(); });
  }

  void post_check() override {
    asio::post(stream_.get_executor(), [self = self()] { self->check(); });
  }
  void post_refuse() override {
    asio::post(stream_.get_executor(), [self = self()] { self->refuse_unread(); });
  }
  void post_close() override {
    asio::post(stream_.get_executor(), [self = self()] { self->close(); });
  }

 private:
  void begin() {
    if constexpr (kTls) {
      enter(ConnectionState::handshake, shared_.options.header_timeout);
      stream_.async_handshake(asio::ssl::stream_base::server, [self = self()](Code error) {
        if (!error) return self->wait_for_request();
        const auto code = static_cast<unsigned>(error.value());
        if (ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST) self->refuse_plain();
      });
    } else {
      wait_for_request();
    }
  }

  // Answers plain HTTP on a TLS port in plain HTTP.
  void refuse_plain() {
    request_.peer = peer_;
    request_.received = Clock::now();
    sent_ = error_response(400, "this port speaks TLS, expected a request to https://");
    const auto text = std::make_shared<const std::string>(
        fmt::format("HTTP/1.1 400 Bad Request\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
                    "Connection: close\r\n\r\n{}",
                    sent_.content_type, sent_.body.size(), sent_.body));
    enter(ConnectionState::writing, shared_.options.pause_timeout);
    asio::async_write(socket(), asio::buffer(*text),
                      [self = self(), text](Code error, std::size_t) {
                        self->shared_.handler.answered(self->request_, self->sent_, !error);
                        self->enter(ConnectionState::lingering, kLingerTime);
                        if (!error) self->end_sending();
                      });
  }

  std::shared_ptr<Connection> self() {
    return std::static_pointer_cast<Connection>(shared_from_this());
  }
  tcp::socket& socket() {
    if constexpr (kTls) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  void check() {
    if (state() == ConnectionState::answering) {
      // Also true of a client that has only shut down its sending side: that counts as leaving, as
      // in other servers.
      pollfd ends{.fd = socket().native_handle(), .events = POLLRDHUP, .revents = 0};
      if (::poll(&ends, 1, 0) > 0) gone_->store(true);
      return;
    }
    if (!expired()) return;
    if (is_reading()) {
      interrupt(408, "the request did not arrive in time; send it without pauses");
    } else {
      close();
    }
  }

  void refuse_unread() {
    if (is_reading()) {
      interrupt(503, kStopping);
    } else if (state() == ConnectionState::idle || state() == ConnectionState::handshake) {
      close();
    }
  }

  bool is_reading() const {
    return state() == ConnectionState::header || state() == ConnectionState::body;
  }

  // Cancels the read; this is its answer.
  void interrupt(int status, std::string_view sentence) {
    interruption_ = error_response(status, sentence);
    Code ignored;
    socket().cancel(ignored);
  }

  void close() {
    Code ignored;
    socket().close(ignored);
  }

  // ------------------------------------------------------------------------------------- reading

  void wait_for_request() {
    interruption_.reset();
    gone_.reset();
    answered_now();
    parser_ = std::make_unique<Parser>();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.options.max_header_bytes));
    parser_->body_limit(shared_.options.max_body);
    memory_ = std::make_shared<MemoryShare>(shared_.budget);
    parser_->get().body().memory = memory_.get();
    request_ = {};
    request_.peer = peer_;
    scanned_ = skipped_ = 0;
    num_checks_ = 0;
    if (buffer_.size() > 0) return begin_request();  // pipelined
    enter(ConnectionState::idle,
          shared_.draining ? shared_.options.drain_grace : shared_.options.idle_timeout);
    stream_.async_read_some(buffer_.prepare(4096), [self = self()](Code error, std::size_t size) {
      if (error) return;
      self->buffer_.commit(size);
      self->begin_request();
    });
  }

  void begin_request() {
    request_.received = Clock::now();
    enter(ConnectionState::header, shared_.options.header_timeout);
    read_header();
  }

  std::string_view unread() const {
    return {static_cast<const char*>(buffer_.data().data()), buffer_.size()};
  }

  // Until the head is complete; Beast parses all of it, but does not show how its lines were
  // written.
  void read_header() {
    while (unread().starts_with("\r\n")) {  // RFC 9112: empty lines before a request are ignored
      buffer_.consume(2);
      skipped_ += 2;
      scanned_ = 0;
    }
    constexpr std::string_view kEnd = "\r\n\r\n";
    const std::size_t end = unread().find(kEnd, scanned_);
    if (end != std::string_view::npos) return parse_header(end + kEnd.size());
    scanned_ = unread().size() - std::min(unread().size(), kEnd.size() - 1);
    if (const Code error = check_beginning()) return refuse_reading(error);
    if (unread().size() + skipped_ > shared_.options.max_header_bytes) {
      return refuse_reading(make_error_code(http::error::header_limit));
    }
    stream_.async_read_some(buffer_.prepare(4096), [self = self()](Code error, std::size_t size) {
      if (error) return self->refuse_reading(error);
      self->buffer_.commit(size);
      self->read_header();
    });
  }

  // What is not HTTP is refused with its first bytes or its first line: it may have no end to wait
  // for.
  Code check_beginning() {
    const std::size_t end = unread().find('\n');
    const int wanted = end == std::string_view::npos ? 1 : 2;
    if (unread().empty() || num_checks_ >= wanted) return {};
    if (unread() == "\r") return {};  // half of an empty line before the request
    num_checks_ = wanted;
    Code error;
    Parser beginning;
    beginning.put(asio::const_buffer(unread().data(), std::min(end, unread().size() - 1) + 1),
                  error);
    return error == http::error::need_more ? Code() : error;
  }

  void parse_header(std::size_t size) {
    const std::string_view head = unread().substr(0, size);
    if (auto refusal = refuse_folding(head)) {
      keep_alive_ = false;
      return refuse(std::move(*refusal));
    }
    Code error;
    const std::size_t used = parser_->put(asio::const_buffer(head.data(), head.size()), error);
    if (error) return refuse_reading(error);
    buffer_.consume(used);
    take_header();
  }

  void refuse_reading(const Code& error) {
    std::optional<HttpResponse> refusal =
        interruption_ ? std::move(interruption_) : refusal_of(error, shared_.options);
    if (!refusal) return;
    keep_alive_ = false;
    if (request_.method.empty()) take_header_lines();
    refuse(std::move(*refusal));
  }

  void refuse(HttpResponse refusal) {
    shared_.handler.add_headers(request_, refusal);
    send(std::move(refusal));
  }

  // As far as they were parsed: nothing of a request whose headers never ended.
  void take_header_lines() {
    const auto& message = parser_->get();
    request_.method = std::string(message.method_string());
    RequestTarget target = split_target({message.target().data(), message.target().size()});
    request_.path = std::move(target.path);
    request_.query = std::move(target.query);
    for (const auto& field : message) {
      const bool host = target.authority && field.name() == http::field::host;
      request_.headers.push_back({std::string(field.name_string()),
                                  host ? *target.authority : std::string(field.value())});
    }
    request_.route = shared_.handler.find_route(request_);
  }

  // Beast treats any coding that does not end in "chunked" as an empty body and would read the body
  // as the next request, a way to smuggle requests past a proxy. Only "chunked" is accepted.
  std::optional<HttpResponse> refuse_coding(unsigned version) const {
    const std::size_t count = request_.count("Transfer-Encoding");
    if (count == 0) return std::nullopt;
    const std::string_view coding = request_.header("Transfer-Encoding");
    if (count == 1 && version >= 11 && equal_ignoring_case(coding, "chunked")) {
      return std::nullopt;
    }
    return error_response(
        400, fmt::format("Transfer-Encoding is {} in HTTP/{}.{}, expected \"chunked\" alone, in "
                         "HTTP/1.1",
                         quoted(coding), version / 10, version % 10));
  }

  // Beast accepts equal lengths in one header or several; a proxy in front may not.
  std::optional<HttpResponse> refuse_length() const {
    const std::size_t count = request_.count("Content-Length");
    const std::string_view length = request_.header("Content-Length");
    if (count == 0 || (count == 1 && length.find(',') == length.npos)) return std::nullopt;
    return error_response(400, fmt::format("the request has {} Content-Length headers, the first "
                                           "of them {}; expected one length",
                                           count, quoted(length)));
  }

  void take_header() {
    const auto& message = parser_->get();
    take_header_lines();
    keep_alive_ = message.keep_alive();
    const bool has_body = !parser_->is_done();
    std::optional<HttpResponse> refusal = refuse_coding(message.version());
    if (!refusal) refusal = refuse_length();
    if (!refusal) refusal = refuse_expectation(request_, message.version());
    if (refusal) {
      keep_alive_ = false;  // the end of the request is unknown
      return refuse(std::move(*refusal));
    }
    if (shared_.draining) return refuse(error_response(503, kStopping));
    refusal = shared_.handler.admit(request_);
    if (refusal) {
      keep_alive_ = keep_alive_ && !has_body;  // the body is not read
      return send(std::move(*refusal));
    }
    if (!has_body) return answer();
    parser_->eager(true);  // many small chunks per read
    body_deadline_ = Clock::now() + shared_.options.body_timeout;
    if (!expects_continue(request_, message.version())) return read_body();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    enter(ConnectionState::body, shared_.options.pause_timeout);
    asio::async_write(stream_, asio::buffer(kContinue), [self = self()](Code error, std::size_t) {
      if (!error) self->read_body();
    });
  }

  void read_body() {
    if (parser_->is_done()) return answer();
    enter(ConnectionState::body,
          std::min(Clock::now() + shared_.options.pause_timeout, body_deadline_));
    http::async_read_some(stream_, buffer_, *parser_, [self = self()](Code error, std::size_t) {
      if (error) return self->refuse_reading(error);
      self->read_body();
    });
  }

  // ----------------------------------------------------------------------------------- answering

  void answer() {
    gone_ = std::make_shared<std::atomic<bool>>(false);
    HttpRequest whole = request_;
    whole.body = std::move(parser_->get().body().bytes);
    whole.memory = memory_;
    parser_.reset();
    enter(ConnectionState::answering, Clock::time_point::max());
    shared_.handler.handle(std::move(whole), gone_, [self = self()](HttpResponse response) {
      asio::post(self->stream_.get_executor(),
                 [self, answer = std::move(response)]() mutable { self->send(std::move(answer)); });
    });
  }

  void send(HttpResponse response) {
    release_memory();
    // Large answers stay in memory until the client reads them: they are limited too.
    const std::size_t size = response.body.size();
    if (size > kSmallAnswer && !memory_->take(size)) {
      response =
          error_response(503, "too many large answers are waiting for their clients; try again");
    }
    if (shared_.draining) keep_alive_ = false;
    body_deadline_ = Clock::now() + shared_.options.body_timeout;
    Message out;
    out.result(static_cast<unsigned>(response.status));
    out.version(11);
    out.keep_alive(keep_alive_);
    out.set(http::field::server, fmt::format("toto/{}", version()));
    out.set(http::field::content_type, response.content_type);
    out.set("X-Content-Type-Options", "nosniff");
    for (const HttpHeader& item : response.headers) out.set(item.name, item.value);
    out.content_length(response.body.size());
    if (request_.method != "HEAD") out.body() = std::move(response.body);
    sent_ = std::move(response);
    outgoing_ = std::make_unique<Outgoing>(std::move(out));
    write_more();
  }

  // Piece by piece: a client is dropped for pausing, not for a long answer.
  void write_more() {
    enter(ConnectionState::writing,
          std::min(Clock::now() + shared_.options.pause_timeout, body_deadline_));
    http::async_write_some(stream_, outgoing_->serializer,
                           [self = self()](Code error, std::size_t) {
                             if (!error && !self->outgoing_->serializer.is_done())
                               return self->write_more();
                             self->finish(!error);
                           });
  }

  void finish(bool sent) {
    shared_.handler.answered(request_, sent_, sent && !(gone_ && gone_->load()));
    outgoing_.reset();
    release_memory();
    if (!sent) return;
    if (keep_alive_) return wait_for_request();
    linger();
  }

  // Closing with unread bytes would reset the connection and lose the answer.
  void linger() {
    enter(ConnectionState::lingering, kLingerTime);
    if constexpr (kTls) {
      // Ends with an error while the client is still sending; discard() reads the rest.
      stream_.async_shutdown([self = self()](Code) { self->end_sending(); });
    } else {
      end_sending();
    }
  }
  void end_sending() {
    Code ignored;
    socket().shutdown(tcp::socket::shutdown_send, ignored);
    discard(0);
  }
  void discard(std::size_t so_far) {
    buffer_.clear();
    socket().async_read_some(buffer_.prepare(kReadBytes),
                             [self = self(), so_far](Code error, std::size_t size) {
                               if (!error && so_far + size < kLingerBytes)
                                 self->discard(so_far + size);
                             });
  }

  void release_memory() {
    parser_.reset();
    memory_->release();
  }

  Stream stream_;
  boost::beast::flat_buffer buffer_;
  std::unique_ptr<Parser> parser_;  // while a request is read
  std::unique_ptr<Outgoing> outgoing_;
  HttpRequest request_;
  HttpResponse sent_;
  ClientGone gone_;
  std::string peer_;
  Clock::time_point body_deadline_ = {};           // of the request or the answer
  std::optional<HttpResponse> interruption_ = {};  // why the read was cancelled
  std::shared_ptr<MemoryShare> memory_;
  bool keep_alive_ = false;
  std::size_t scanned_ = 0;  // bytes of the head in which its end was not found
  std::size_t skipped_ = 0;  // bytes of empty lines before it
  int num_checks_ = 0;       // of the beginning: its first bytes, its first line
};

}  // namespace

Connections::Place Connections::add(ConnectionBase* connection) {
  const std::lock_guard lock(mutex_);
  return all_.insert(all_.end(), connection);
}

void Connections::remove(Place place) {
  const std::lock_guard lock(mutex_);
  all_.erase(place);
  if (all_.empty()) none_left_.notify_all();
}

void Connections::to_back(Place place) {
  const std::lock_guard lock(mutex_);
  all_.splice(all_.end(), all_, place);
}

std::size_t Connections::size() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

// Evicts first the connection that has been without a complete request for longest, then those slow
// with a body or an answer. A client that keeps asking and being answered is never first.
bool Connections::evict() {
  const auto rank = [](const ConnectionBase& connection) {
    switch (connection.state()) {
      case ConnectionState::answering:
        return 2;
      case ConnectionState::body:
      case ConnectionState::writing:
        return 1;
      default:
        return 0;
    }
  };
  std::shared_ptr<ConnectionBase> chosen;  // freed after the lock
  const std::lock_guard lock(mutex_);
  for (int wanted = 0; wanted < 2 && !chosen; ++wanted) {
    for (ConnectionBase* connection : all_) {
      if (connection->is_evicted || rank(*connection) != wanted) continue;
      chosen = connection->weak_from_this().lock();
      if (chosen) break;
    }
  }
  if (!chosen) return false;
  chosen->is_evicted = true;
  chosen->post_close();
  return true;
}

template <typename Act>
void Connections::for_each(const Act& act) {
  std::vector<std::shared_ptr<ConnectionBase>> held;  // freed after the lock
  const std::lock_guard lock(mutex_);
  for (ConnectionBase* connection : all_) {
    if (auto alive = connection->weak_from_this().lock()) {
      act(*alive);
      held.push_back(std::move(alive));
    }
  }
}

void Connections::check() {
  const Clock::time_point now = Clock::now();
  for_each([now](ConnectionBase& connection) {
    if (connection.needs_check(now)) connection.post_check();
  });
}

void Connections::refuse_unread() {
  for_each([](ConnectionBase& connection) { connection.post_refuse(); });
}

void Connections::listening_ended() {
  const std::lock_guard lock(mutex_);
  listening_ = false;
  none_left_.notify_all();
}

bool Connections::wait_until_none(milliseconds time) {
  std::unique_lock lock(mutex_);
  return none_left_.wait_for(lock, time, [this] { return all_.empty() && !listening_; });
}

void start_connection(Connections& shared, tcp::socket socket) {
  std::make_shared<Connection<tcp::socket>>(shared, std::move(socket))->start();
}

void start_connection(Connections& shared, tcp::socket socket, asio::ssl::context& tls) {
  using Secure = asio::ssl::stream<tcp::socket>;
  std::make_shared<Connection<Secure>>(shared, std::move(socket), tls)->start();
}

}  // namespace toto::server
