// HTTP/1.1 over TCP or TLS: connections, limits and timeouts. What a request means is decided
// elsewhere.
//
// Clients are hostile. Headers, bodies and answers are limited before memory is taken for them,
// every state of a connection has a deadline, and when connections run out the one that has kept us
// waiting longest makes room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "message.h"

namespace toto::server {

struct HttpOptions {
  std::string host = "127.0.0.1";           // an address, or localhost
  int port = 8080;                          // 0: any free one
  std::string tls_cert = {}, tls_key = {};  // PEM files; both or none
  int io_threads = 2;
  std::size_t max_connections = 1024;
  std::size_t max_header_bytes = std::size_t{16} << 10;
  std::size_t max_body = std::size_t{256} << 20;
  std::size_t max_bodies = std::size_t{1} << 30;     // of all requests and large answers together
  std::chrono::milliseconds idle_timeout{75'000};    // between requests
  std::chrono::milliseconds header_timeout{10'000};  // from the first byte to the last header
  std::chrono::milliseconds pause_timeout{10'000};   // without a byte of the body or the answer
  std::chrono::milliseconds body_timeout{120'000};   // for a whole body or answer
  std::chrono::milliseconds drain_grace{1'000};      // for requests on their way when we stop
};

// Who understands requests. Called from the I/O threads: must not block.
class HttpHandler {
 public:
  HttpHandler() = default;
  HttpHandler(const HttpHandler&) = delete;
  HttpHandler& operator=(const HttpHandler&) = delete;
  virtual ~HttpHandler() = default;
  // What becomes the request's route; only its method and path are known.
  virtual std::optional<std::size_t> find_route(const Request& request) const = 0;
  // Knows the headers, nothing of the body has been read; an answer refuses the request.
  virtual std::optional<Response> admit(const Request& request) = 0;
  virtual void handle(Request request, ClientGone gone, Respond respond) = 0;
  // Of a refusal that is not the handler's own, with the headers that were understood.
  virtual void add_headers(const Request&, Response&) const {}
  // Of every answer, refusals included; `request` has no body any more, and no path if none was
  // understood. Not sent, if the client was known to have left.
  virtual void answered(const Request& request, const Response& response, bool sent) = 0;
};

class HttpServer {
 public:
  // Binds and listens: Error(overloaded) if the address cannot be had, Error(not_found,
  // corrupt_file) for a key pair that cannot be used. The handler must outlive this.
  HttpServer(const HttpOptions& options, HttpHandler& handler);
  ~HttpServer();  // closes whatever is open
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  std::size_t num_connections() const;
  // No more connections; requests being answered are, others on their way are refused with 503.
  void drain();
  // Whether every connection ended within this time after drain().
  bool wait(std::chrono::milliseconds time);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace toto::server
