// What travels between HTTP and the routes: requests and responses as plain values.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toto/toto.h"

namespace toto::server {

using Clock = std::chrono::steady_clock;

struct Header {
  std::string name;
  std::string value;
};

class MemoryShare;

struct Request {
  std::string method = {};
  std::string path = {};   // as it was sent, without the query
  std::string query = {};  // without the question mark
  std::vector<Header> headers = {};
  std::string body = {};
  std::string peer = {};  // the client's address
  Clock::time_point received = {};
  std::optional<std::size_t> route = {};  // the handler's number of what is asked for
  // Whatever the body becomes is charged to it; given back with the answer. None: nobody counts.
  std::shared_ptr<MemoryShare> memory = {};

  // The first header of this name, in any case; empty if there is none.
  std::string_view header(std::string_view name) const;
  std::size_t count(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<Header> headers = {};
};

inline constexpr std::string_view kTooManyBodies = "too many large requests at once; try again";

// `{"error": "sentence"}`; 429 and 503 say when to try again.
Response error_response(int status, std::string_view sentence);
// The one mapping from what went wrong to what a client sees.
int status_of(ErrorCode code) noexcept;

// Set when the client has closed its connection: nobody waits for the answer.
using ClientGone = std::shared_ptr<std::atomic<bool>>;
// Called once, from any thread.
using Respond = std::function<void(Response)>;

}  // namespace toto::server
