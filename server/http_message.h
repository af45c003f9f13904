// Requests and responses as plain values, between HTTP and the handlers.
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

inline constexpr std::size_t kDefaultMaxBody = std::size_t{256} << 20;  // of a request

using Clock = std::chrono::steady_clock;

struct HttpHeader {
  std::string name;
  std::string value;
};

class MemoryShare;

struct HttpRequest {
  std::string method = {};
  std::string path = {};   // as it was sent, without the query
  std::string query = {};  // without the question mark
  std::vector<HttpHeader> headers = {};
  std::string body = {};
  std::string peer = {};  // the client's address
  Clock::time_point received = {};
  std::optional<std::size_t> route = {};  // as HttpHandler::find_route numbers it
  // The body and everything made from it is charged to it until the answer. nullptr: not counted.
  std::shared_ptr<MemoryShare> memory = {};

  // The first header of this name, in any case; empty if there is none.
  std::string_view header(std::string_view name) const;
  std::size_t count(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<HttpHeader> headers = {};
};

inline constexpr std::string_view kTooManyBodies =
    "too many large requests are being read; try again";

// `{"error": "sentence"}`; 429 and 503 have Retry-After.
HttpResponse error_response(int status, std::string_view sentence);
HttpResponse loading_response();  // 503 until the model is loaded
std::string one_field_json(std::string_view name, std::string_view text);  // {"name": "text"}
// The same for an answer of our own, which always has "warnings": there are none.
std::string our_json(std::string_view name, std::string_view text);
// The HTTP status of an error; the only such mapping.
int status_of(ErrorCode code) noexcept;

// Set when the client has closed its connection.
using ClientGone = std::shared_ptr<std::atomic<bool>>;
// Called once, from any thread.
using Respond = std::function<void(HttpResponse)>;

}  // namespace toto::server
