#include "http.h"

#include <poll.h>

// Asio 1.74 uses std::exchange without asking for it.
#include <utility>

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "io/json.h"

namespace toto::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Code = boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds kTick{50};
constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::size_t kLingerBytes = std::size_t{4} << 20;  // thrown away before a close
constexpr milliseconds kLingerTime{1'000};

// Bytes of all bodies in memory. What does not fit is refused, whoever sent it.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t most) : most_(most) {}
  bool take(std::size_t bytes) {
    if (used_.fetch_add(bytes) + bytes <= most_) return true;
    give_back(bytes);
    return false;
  }
  void give_back(std::size_t bytes) { used_.fetch_sub(bytes); }

 private:
  std::size_t most_;
  std::atomic<std::size_t> used_{0};
};

// A body that grows with what has arrived, not with what was announced.
struct CountedBody {
  struct value_type {
    std::string bytes = {};
    BodyBudget* budget = nullptr;
    std::size_t taken = 0;
  };
  struct reader {
    template <bool isRequest, typename Fields>
    reader(http::header<isRequest, Fields>&, value_type& value) : value_(value) {}
    void init(const boost::optional<std::uint64_t>&, Code& error) { error = {}; }
    template <typename Buffers>
    std::size_t put(const Buffers& buffers, Code& error) {
      const std::size_t size = asio::buffer_size(buffers);
      if (!value_.budget->take(size)) {
        error = make_error_code(boost::system::errc::no_buffer_space);
        return 0;
      }
      value_.taken += size;
      for (const auto& piece : boost::beast::buffers_range_ref(buffers)) {
        value_.bytes.append(static_cast<const char*>(piece.data()), piece.size());
      }
      error = {};
      return size;
    }
    void finish(Code& error) { error = {}; }
    value_type& value_;
  };
};

enum class State { handshake, idle, header, body, answering, writing, lingering };

class ConnectionBase;

// What all connections share. Locks are held for a few instructions only.
struct Shared {
  Shared(const HttpOptions& wanted, HttpHandler& who)
      : options(wanted), handler(who), budget(wanted.max_bodies) {}
  const HttpOptions options;
  HttpHandler& handler;
  BodyBudget budget;
  std::atomic<bool> draining{false};
  std::mutex mutex;
  std::condition_variable none_left;
  std::list<ConnectionBase*> connections;  // oldest first
};

// The part of a connection that other threads look at.
class ConnectionBase : public std::enable_shared_from_this<ConnectionBase> {
 public:
  explicit ConnectionBase(Shared& shared) : shared_(shared) {
    const std::lock_guard lock(shared_.mutex);
    place_ = shared_.connections.insert(shared_.connections.end(), this);
  }
  virtual ~ConnectionBase() {
    const std::lock_guard lock(shared_.mutex);
    shared_.connections.erase(place_);
    if (shared_.connections.empty()) shared_.none_left.notify_all();
  }
  ConnectionBase(const ConnectionBase&) = delete;
  ConnectionBase& operator=(const ConnectionBase&) = delete;

  virtual void post_check() = 0;  // has check() called where the connection's handlers run
  virtual void post_close() = 0;

  State state() const { return state_.load(); }
  bool needs_check(Clock::time_point now) const {
    return now.time_since_epoch().count() >= deadline_.load() || state() == State::answering;
  }
  bool waits_for_client() const {
    return state() == State::idle || state() == State::header || state() == State::handshake ||
           state() == State::lingering;
  }

 protected:
  void enter(State state, milliseconds time) { enter(state, Clock::now() + time); }
  void enter(State state, Clock::time_point deadline) {
    state_.store(state);
    deadline_.store(deadline.time_since_epoch().count());
  }
  bool expired() const { return Clock::now().time_since_epoch().count() >= deadline_.load(); }

  Shared& shared_;

 private:
  std::list<ConnectionBase*>::iterator place_;
  std::atomic<State> state_{State::handshake};
  std::atomic<Clock::rep> deadline_{Clock::time_point::max().time_since_epoch().count()};
};

// Why a request could not be read, as an answer; nothing if the connection is simply over.
std::optional<Response> refusal_of(const Code& error, bool timed_out, const HttpOptions& options) {
  if (timed_out) {
    return error_response(408, "the request did not arrive in time; send it without pauses");
  }
  if (error == http::error::body_limit) {
    return error_response(413, fmt::format("the body is larger than {} bytes; send fewer series at "
                                           "once or start the server with a larger --max-body",
                                           options.max_body));
  }
  if (error == boost::system::errc::no_buffer_space) {
    return error_response(503, "too many large requests at once; try again");
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return error_response(400, fmt::format("the request line and headers have more than {} bytes",
                                           options.max_header_bytes));
  }
  if (error.category() == make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message) {
    return error_response(400, fmt::format("this is no HTTP request: {}", error.message()));
  }
  return std::nullopt;
}

// One client. Everything runs on the connection's own strand; `check` is how other threads reach
// it.
template <typename Stream>
class Connection final : public ConnectionBase {
  static constexpr bool kTls = !std::is_same_v<Stream, tcp::socket>;
  using Parser = http::request_parser<CountedBody>;

 public:
  template <typename... Args>
  Connection(Shared& shared, Args&&... args)
      : ConnectionBase(shared),
        stream_(std::forward<Args>(args)...),
        buffer_(shared.options.max_header_bytes + kReadBytes) {
    Code ignored;
    const tcp::endpoint peer = socket().remote_endpoint(ignored);
    if (!ignored) peer_ = peer.address().to_string();
    socket().set_option(tcp::no_delay(true), ignored);
  }
  ~Connection() override { release_body(); }

  void start() {
    if constexpr (kTls) {
      enter(State::handshake, shared_.options.header_timeout);
      stream_.async_handshake(asio::ssl::stream_base::server, [self = self()](Code error) {
        if (!error) self->wait_for_request();
      });
    } else {
      wait_for_request();
    }
  }

  void post_check() override {
    asio::post(stream_.get_executor(), [self = self()] { self->check(); });
  }
  void post_close() override {
    asio::post(stream_.get_executor(), [self = self()] { self->close(); });
  }

 private:
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
    if (state() == State::answering) {
      // Also true of a client that has only shut down its sending side: like other servers we take
      // that for leaving.
      pollfd ends{.fd = socket().native_handle(), .events = POLLRDHUP, .revents = 0};
      if (::poll(&ends, 1, 0) > 0) gone_->store(true);
      return;
    }
    if (!expired()) return;
    timed_out_ = state() == State::header || state() == State::body;
    Code ignored;
    if (timed_out_) {
      socket().cancel(ignored);  // the read ends, and answers
    } else {
      close();
    }
  }

  void close() {
    Code ignored;
    socket().close(ignored);
  }

  // ------------------------------------------------------------------------------------- reading

  void wait_for_request() {
    timed_out_ = false;
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.options.max_header_bytes));
    parser_->body_limit(shared_.options.max_body);
    parser_->get().body().budget = &shared_.budget;
    request_ = {};
    if (buffer_.size() > 0) return read_header();  // pipelined
    enter(State::idle,
          shared_.draining ? shared_.options.drain_grace : shared_.options.idle_timeout);
    stream_.async_read_some(buffer_.prepare(4096), [self = self()](Code error, std::size_t size) {
      if (error) return;
      self->buffer_.commit(size);
      self->read_header();
    });
  }

  void read_header() {
    request_.received = Clock::now();
    enter(State::header, shared_.options.header_timeout);
    http::async_read_header(stream_, buffer_, *parser_, [self = self()](Code error, std::size_t) {
      if (error) return self->refuse_reading(error);
      self->take_header();
    });
  }

  void refuse_reading(const Code& error) {
    if (auto refusal = refusal_of(error, timed_out_, shared_.options)) {
      timed_out_ = false;
      keep_alive_ = false;
      send(std::move(*refusal));
    }
  }

  void take_header() {
    const auto& message = parser_->get();
    request_.method = std::string(message.method_string());
    const std::string_view target(message.target().data(), message.target().size());
    const std::size_t mark = target.find('?');
    request_.path = target.substr(0, mark);
    if (mark != std::string_view::npos) request_.query = target.substr(mark + 1);
    request_.peer = peer_;
    for (const auto& field : message) {
      request_.headers.push_back({std::string(field.name_string()), std::string(field.value())});
    }
    keep_alive_ = message.keep_alive();
    const bool has_body = !parser_->is_done();
    std::optional<Response> refusal;
    if (shared_.draining) {
      refusal = error_response(503, "the server is shutting down; try another one or again later");
    } else {
      refusal = shared_.handler.admit(request_);
    }
    if (refusal) {
      keep_alive_ = keep_alive_ && !has_body;  // nobody reads the body
      return send(std::move(*refusal));
    }
    if (!has_body) return answer();
    parser_->eager(true);  // many small chunks at once
    body_deadline_ = Clock::now() + shared_.options.body_timeout;
    if (request_.header("Expect").empty()) return read_body();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    enter(State::body, shared_.options.pause_timeout);
    asio::async_write(stream_, asio::buffer(kContinue), [self = self()](Code error, std::size_t) {
      if (!error) self->read_body();
    });
  }

  void read_body() {
    if (parser_->is_done()) return answer();
    enter(State::body, std::min(Clock::now() + shared_.options.pause_timeout, body_deadline_));
    http::async_read_some(stream_, buffer_, *parser_, [self = self()](Code error, std::size_t) {
      if (error) return self->refuse_reading(error);
      self->read_body();
    });
  }

  // ----------------------------------------------------------------------------------- answering

  void answer() {
    auto& body = parser_->get().body();
    taken_ = std::exchange(body.taken, 0);
    gone_ = std::make_shared<std::atomic<bool>>(false);
    Request whole = request_;
    whole.body = std::move(body.bytes);
    parser_.reset();
    enter(State::answering, Clock::time_point::max());
    shared_.handler.handle(std::move(whole), gone_, [self = self()](Response response) {
      asio::post(self->stream_.get_executor(),
                 [self, answer = std::move(response)]() mutable { self->send(std::move(answer)); });
    });
  }

  void send(Response response) {
    release_body();
    if (shared_.draining) keep_alive_ = false;
    enter(State::writing, shared_.options.pause_timeout);
    auto& out = out_.emplace();
    out.result(static_cast<unsigned>(response.status));
    out.version(11);
    out.keep_alive(keep_alive_);
    out.set(http::field::server, fmt::format("toto/{}", version()));
    out.set(http::field::content_type, response.content_type);
    out.set("X-Content-Type-Options", "nosniff");
    for (const Header& item : response.headers) out.set(item.name, item.value);
    out.content_length(response.body.size());
    if (request_.method != "HEAD") out.body() = std::move(response.body);
    sent_ = std::move(response);
    serializer_.emplace(out);
    write_more();
  }

  // A piece at a time, so that a client is dropped for pausing and not for a long answer.
  void write_more() {
    enter(State::writing, shared_.options.pause_timeout);
    http::async_write_some(stream_, *serializer_, [self = self()](Code error, std::size_t) {
      if (!error && !self->serializer_->is_done()) return self->write_more();
      self->finish(!error);
    });
  }

  void finish(bool sent) {
    shared_.handler.answered(request_, sent_, sent);
    serializer_.reset();
    out_.reset();
    if (!sent) return;
    if (keep_alive_) return wait_for_request();
    linger();
  }

  // Closing with unread bytes would reset the connection and lose the answer on its way.
  void linger() {
    enter(State::lingering, kLingerTime);
    if constexpr (kTls) {
      stream_.async_shutdown([self = self()](Code) { self->close(); });
    } else {
      Code ignored;
      socket().shutdown(tcp::socket::shutdown_send, ignored);
      discard(0);
    }
  }
  void discard(std::size_t so_far) {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kReadBytes),
                            [self = self(), so_far](Code error, std::size_t size) {
                              if (!error && so_far + size < kLingerBytes)
                                self->discard(so_far + size);
                            });
  }

  void release_body() {
    if (parser_) taken_ += std::exchange(parser_->get().body().taken, 0);
    shared_.budget.give_back(std::exchange(taken_, 0));
  }

  Stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<http::response<http::string_body>> out_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  Request request_;
  Response sent_;
  ClientGone gone_;
  std::string peer_;
  Clock::time_point body_deadline_ = {};
  std::size_t taken_ = 0;  // of the budget
  bool keep_alive_ = false;
  bool timed_out_ = false;
};

void load_key_pair(asio::ssl::context& context, const HttpOptions& options) {
  Code error;
  context.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                          asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                          asio::ssl::context::no_tlsv1_1,
                      error);
  context.use_certificate_chain_file(options.tls_cert, error);
  if (error) {
    fail(ErrorCode::corrupt_file, "{}: no usable TLS certificate: {}; expected a PEM file",
         options.tls_cert, error.message());
  }
  context.use_private_key_file(options.tls_key, asio::ssl::context::pem, error);
  if (error) {
    fail(ErrorCode::corrupt_file,
         "{}: no usable TLS key: {}; expected the PEM file of the key of {}", options.tls_key,
         error.message(), options.tls_cert);
  }
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpOptions& wanted, HttpHandler& handler)
      : shared(wanted, handler), acceptor(io), retry(io), ticker(io), work(io.get_executor()) {
    if (!wanted.tls_cert.empty()) {
      tls.emplace(asio::ssl::context::tls_server);
      load_key_pair(*tls, wanted);
    }
    listen();
    accept();
    tick();
    for (int i = 0; i < wanted.io_threads; ++i) {
      threads.emplace_back([this] { io.run(); });
    }
  }

  ~Impl() {
    work.reset();
    io.stop();
    for (std::thread& thread : threads) thread.join();
  }

  void listen() {
    const HttpOptions& options = shared.options;
    Code error;
    const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
    const auto address = asio::ip::make_address(host, error);
    if (error) {
      fail(ErrorCode::invalid_argument, "host is {}, expected an address such as 127.0.0.1",
           io::quoted(options.host));
    }
    const tcp::endpoint place(address, static_cast<std::uint16_t>(options.port));
    const auto step = [&](const char* what) {
      if (!error) return;
      fail(ErrorCode::overloaded, "cannot {} {}:{}: {}; choose another --port", what, options.host,
           options.port, error.message());
    };
    acceptor.open(place.protocol(), error);
    step("open");
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    acceptor.bind(place, error);
    step("bind to");
    acceptor.listen(1024, error);
    step("listen on");
  }

  void accept() {
    acceptor.async_accept(asio::make_strand(io), [this](Code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || !acceptor.is_open()) return;
      if (error) {  // out of descriptors: some will be closed
        retry.expires_after(kTick);
        return retry.async_wait([this](Code stopped) {
          if (!stopped) accept();
        });
      }
      if (make_room()) start(std::move(socket));
      accept();
    });
  }

  void start(tcp::socket socket) {
    if (tls) {
      using Secure = asio::ssl::stream<tcp::socket>;
      std::make_shared<Connection<Secure>>(shared, std::move(socket), *tls)->start();
    } else {
      std::make_shared<Connection<tcp::socket>>(shared, std::move(socket))->start();
    }
  }

  // False if there are too many connections and none of them waits for its client.
  bool make_room() {
    const std::lock_guard lock(shared.mutex);
    if (shared.connections.size() < shared.options.max_connections) return true;
    for (ConnectionBase* connection : shared.connections) {
      if (!connection->waits_for_client()) continue;
      if (const auto alive = connection->weak_from_this().lock()) {
        alive->post_close();
        // To the end of the list: the next one to make room is another.
        shared.connections.splice(
            shared.connections.end(), shared.connections,
            std::find(shared.connections.begin(), shared.connections.end(), connection));
        return true;
      }
    }
    return false;
  }

  void tick() {
    ticker.expires_after(kTick);
    ticker.async_wait([this](Code error) {
      if (error) return;
      check_connections();
      tick();
    });
  }
  void check_connections() {
    const Clock::time_point now = Clock::now();
    std::vector<std::shared_ptr<ConnectionBase>> due;  // their last owner must not hold the lock
    const std::lock_guard lock(shared.mutex);
    for (ConnectionBase* connection : shared.connections) {
      if (!connection->needs_check(now)) continue;
      if (auto alive = connection->weak_from_this().lock()) {
        alive->post_check();
        due.push_back(std::move(alive));
      }
    }
  }

  void drain() {
    shared.draining = true;
    asio::post(acceptor.get_executor(), [this] {
      Code ignored;
      acceptor.close(ignored);
    });
    drain_until.expires_after(shared.options.drain_grace);
    drain_until.async_wait([this](Code error) {
      if (!error) close_waiting();
    });
  }
  // Nothing more can come of connections whose client has not sent a request by now.
  void close_waiting() {
    std::vector<std::shared_ptr<ConnectionBase>> waiting;
    const std::lock_guard lock(shared.mutex);
    for (ConnectionBase* connection : shared.connections) {
      const State state = connection->state();
      if (!connection->waits_for_client() && state != State::body) continue;
      if (auto alive = connection->weak_from_this().lock()) {
        alive->post_close();
        waiting.push_back(std::move(alive));
      }
    }
  }

  Shared shared;
  asio::io_context io;
  std::optional<asio::ssl::context> tls;
  tcp::acceptor acceptor;
  asio::steady_timer retry, ticker, drain_until{io};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  std::vector<std::thread> threads;
};

HttpServer::HttpServer(const HttpOptions& options, HttpHandler& handler)
    : impl_(std::make_unique<Impl>(options, handler)) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  Code ignored;
  return impl_->acceptor.local_endpoint(ignored).port();
}

std::size_t HttpServer::num_connections() const {
  const std::lock_guard lock(impl_->shared.mutex);
  return impl_->shared.connections.size();
}

void HttpServer::drain() { impl_->drain(); }

bool HttpServer::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(impl_->shared.mutex);
  return impl_->shared.none_left.wait_for(lock, time,
                                          [this] { return impl_->shared.connections.empty(); });
}

}  // namespace toto::server
