// One request between its arrival and its answer, shared by the threads that work on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "prepared_request.h"

namespace toto::server {

struct ServiceState;

// The threads that read a request: the I/O thread it arrived on, or workers for larger requests.
enum class ReaderThread { io, small_bodies, large_bodies };
// The largest body and the largest series made from it, in bytes, that each of them handles: a
// large request delays only other large ones.
struct ReaderLimits {
  std::size_t body = 0, series = 0;
};
ReaderLimits reader_limits(ReaderThread thread);

// One thread at a time works on a call.
struct HttpCall {
  ServiceState& service;
  HttpRequest request = {};
  ClientGone gone = {};
  Respond respond = {};
  std::vector<std::string> path_values = {};  // of the {...} in the route's pattern
  ReaderThread reader = ReaderThread::io;
  bool is_decompressed = false;  // the body no longer has its Content-Encoding

  void send(HttpResponse response);  // later answers to the same call are dropped
  void send_json(std::string body) { send({.body = std::move(body)}); }
  void send_error(const Error& error);
  // Runs `work` and answers with the error it throws, if any.
  void guard(const std::function<void()>& work);

  Clock::time_point deadline() const;
  bool is_unwanted() const;   // the service stops, the client has left, or the deadline has passed
  void check_wanted() const;  // Error(cancelled) if it is unwanted
  RequestLimits limits() const;  // on `reader`, for the model in use
};
using HttpCallPtr = std::shared_ptr<HttpCall>;

}  // namespace toto::server
