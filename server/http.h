// HTTP/1.1 over TCP or TLS: connections, limits and timeouts. Handlers give requests their meaning.
//
// Clients are assumed hostile: headers, bodies and answers are limited before memory is allocated,
// every state of a connection has a deadline, and at the limit of connections the one that has
// waited longest for its client is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "http_message.h"

namespace toto::server {

struct HttpOptions {
  std::string host = "127.0.0.1";           // an address, or localhost
  int port = 8080;                          // 0: any free one
  std::string tls_cert = {}, tls_key = {};  // PEM files; both or none
  int io_threads = 2;
  std::size_t max_connections = 1024;
  std::size_t max_header_bytes = std::size_t{16} << 10;
  std::size_t max_body = kDefaultMaxBody;
  std::size_t max_bodies = std::size_t{1} << 30;     // all requests and large answers together
  std::chrono::milliseconds idle_timeout{75'000};    // between requests
  std::chrono::milliseconds header_timeout{10'000};  // from the first byte to the last header
  std::chrono::milliseconds pause_timeout{10'000};   // without a byte of the body or the answer
  std::chrono::milliseconds body_timeout{120'000};   // for a whole body or answer
  std::chrono::milliseconds drain_grace{1'000};      // for requests still arriving at a stop
};

// Handles requests. Called on the I/O threads: must not block.
class HttpHandler {
 public:
  HttpHandler() = default;
  HttpHandler(const HttpHandler&) = delete;
  HttpHandler& operator=(const HttpHandler&) = delete;
  virtual ~HttpHandler() = default;
  // The number of the request's route; only method and path are known.
  virtual std::optional<std::size_t> find_route(const HttpRequest& request) const = 0;
  // Called before the body is read; a response refuses the request.
  virtual std::optional<HttpResponse> admit(const HttpRequest& request) = 0;
  virtual void handle(HttpRequest request, ClientGone gone, Respond respond) = 0;
  // Adds headers to a refusal of the HTTP layer.
  virtual void add_headers(const HttpRequest&, HttpResponse&) const {}
  // Called after every answer, refusals included; `request` has lost its body, and has no path if
  // none was parsed. `sent` is false if the client was known to have left.
  virtual void answered(const HttpRequest& request, const HttpResponse& response, bool sent) = 0;
};

class HttpServer {
 public:
  // Binds and listens: Error(overloaded) if the address is not available, Error(not_found,
  // corrupt_file) for an unusable key pair. The handler must outlive this.
  HttpServer(const HttpOptions& options, HttpHandler& handler);
  ~HttpServer();  // closes all connections
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  std::size_t num_connections() const;
  // Stops listening; running requests are answered, those still arriving are refused with 503.
  void drain();
  // After drain(): whether every connection ended within this time.
  bool wait(std::chrono::milliseconds time);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace toto::server
