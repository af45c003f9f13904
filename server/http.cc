#include "http.h"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "connection.h"

namespace toto::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Code = boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds kTick{50};  // between two checks of all deadlines
constexpr milliseconds kSoon{2};   // before accepting again after an eviction
constexpr int kBacklog = 1024;     // connections the system holds before they are accepted

// OpenSSL's number of the error.
unsigned long ssl_code(const Code& error) { return static_cast<unsigned>(error.value()); }

[[noreturn]] void fail_file(const std::string& path, const char* what, const Code& error,
                            const std::string& expected) {
  fail(ErrorCode::corrupt_file, "{}: no usable {}: {}; expected {}", path, what, error.message(),
       expected);
}

std::string day_of(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown day";
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

// Clients reject a certificate outside its dates.
void check_validity(const X509& certificate, const std::string& path) {
  const ASN1_TIME* begin = X509_get0_notBefore(&certificate);
  const ASN1_TIME* end = X509_get0_notAfter(&certificate);
  if (X509_cmp_current_time(end) < 0) {
    fail(ErrorCode::invalid_argument,
         "{}: the TLS certificate expired on {}, expected one that is valid today; renew it", path,
         day_of(end));
  }
  if (X509_cmp_current_time(begin) > 0) {
    fail(ErrorCode::invalid_argument,
         "{}: the TLS certificate is valid from {}, expected one that is valid today; is the clock "
         "right?",
         path, day_of(begin));
  }
}

void load_key_pair(asio::ssl::context& context, const HttpOptions& options) {
  using Context = asio::ssl::context;
  Code error;
  context.set_options(Context::default_workarounds | Context::no_sslv2 | Context::no_sslv3 |
                      Context::no_tlsv1 | Context::no_tlsv1_1);
  // OpenSSL's message for a missing file is unclear.
  for (const std::string& path : {options.tls_cert, options.tls_key}) {
    if (::access(path.c_str(), R_OK) == 0) continue;
    fail(ErrorCode::not_found, "{}: cannot be read: {}; expected the PEM file of a TLS {}", path,
         std::generic_category().message(errno), path == options.tls_cert ? "certificate" : "key");
  }
  // Never ask for a password on the terminal.
  context.set_password_callback(
      [](std::size_t, Context::password_purpose) { return std::string(); });
  if (context.use_certificate_chain_file(options.tls_cert, error)) {
    fail_file(options.tls_cert, "TLS certificate", error, "a PEM file");
  }
  check_validity(*SSL_CTX_get0_certificate(context.native_handle()), options.tls_cert);
  if (context.use_private_key_file(options.tls_key, Context::pem, error)) {
    const int reason = ERR_GET_REASON(ssl_code(error));
    if (reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH) {
      fail(ErrorCode::invalid_argument,
           "{}: this TLS key does not belong to the certificate {}, expected a matching pair",
           options.tls_key, options.tls_cert);
    }
    fail_file(options.tls_key, "TLS key", error,
              fmt::format("the PEM file of the key of {}, without a password", options.tls_cert));
  }
}

}  // namespace

// Threads run `io`; the acceptor and its timers have one strand, each connection another.
struct HttpServer::Impl {
  Impl(const HttpOptions& wanted, HttpHandler& handler)
      : shared(wanted, handler), work(io.get_executor()) {
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
           quoted(options.host));
    }
    const tcp::endpoint place(address, static_cast<std::uint16_t>(options.port));
    const auto step = [&](const char* what, const Code& result) {
      if (!result) return;
      fail(ErrorCode::overloaded, "cannot {} {}:{}: {}; choose another --port or --host", what,
           options.host, options.port, result.message());
    };
    step("open", acceptor.open(place.protocol(), error));
    step("open", acceptor.set_option(tcp::acceptor::reuse_address(true), error));
    step("bind to", acceptor.bind(place, error));
    step("listen on", acceptor.listen(kBacklog, error));
    port = acceptor.local_endpoint(error).port();
  }

  // On the acceptor's strand, like everything that touches it.
  void accept() {
    acceptor.async_accept(asio::make_strand(io), [this](Code error, tcp::socket socket) {
      if (!error) start(std::move(socket));
      if (!acceptor.is_open()) return shared.listening_ended();
      if (!error) return accept();
      // Out of file descriptors: evicting a connection frees one soon.
      const bool exhausted = error == asio::error::no_descriptors ||
                             error == boost::system::errc::too_many_files_open_in_system;
      retry.expires_after(exhausted && shared.evict() ? kSoon : kTick);
      retry.async_wait([this](Code) { accept(); });
    });
  }

  void start(tcp::socket socket) {
    if (!shared.make_room()) return;
    if (tls) {
      start_connection(shared, std::move(socket), *tls);
    } else {
      start_connection(shared, std::move(socket));
    }
  }

  void tick() {
    ticker.expires_after(kTick);
    ticker.async_wait([this](Code error) {
      if (error) return;
      shared.check();
      tick();
    });
  }

  void drain() {
    shared.draining = true;
    asio::post(acceptor.get_executor(), [this] {
      // Connections in the backlog may have sent a request: refuse it instead of resetting them.
      Code error;
      for (bool more = !acceptor.non_blocking(true, error); more;) {
        tcp::socket socket(asio::make_strand(io));
        more = !acceptor.accept(socket, error);
        if (more) start(std::move(socket));
      }
      std::ignore = acceptor.close(error);  // closed even on error
      grace.expires_after(shared.options.drain_grace);
      grace.async_wait([this](Code stopped) {
        if (!stopped) shared.refuse_unread();
      });
    });
  }

  Connections shared;
  asio::io_context io;
  std::optional<asio::ssl::context> tls;
  tcp::acceptor acceptor{asio::make_strand(io)};
  asio::steady_timer retry{acceptor.get_executor()}, grace{acceptor.get_executor()}, ticker{io};
  int port = 0;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  std::vector<std::thread> threads;
};

HttpServer::HttpServer(const HttpOptions& options, HttpHandler& handler)
    : impl_(std::make_unique<Impl>(options, handler)) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const { return impl_->port; }

std::size_t HttpServer::num_connections() const { return impl_->shared.size(); }

void HttpServer::drain() { impl_->drain(); }

bool HttpServer::wait(milliseconds time) { return impl_->shared.wait_until_none(time); }

}  // namespace toto::server
