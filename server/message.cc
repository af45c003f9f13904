#include "message.h"

#include <algorithm>

#include "io/csv.h"
#include "io/json.h"

namespace toto::server {

std::string_view Request::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const Header& item) {
    return io::equal_ignoring_case(item.name, name);
  });
  return found == headers.end() ? std::string_view() : std::string_view(found->value);
}

std::size_t Request::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(),
                    [&](const Header& item) { return io::equal_ignoring_case(item.name, name); }));
}

Response error_response(int status, std::string_view sentence) {
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object().field("error", sentence).end_object();
  Response response{.status = status, .body = json.take()};
  if (status == 429 || status == 503) response.headers.push_back({"Retry-After", "1"});
  if (status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  return response;
}

int status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::corrupt_file:
    case ErrorCode::unsupported:
      return 400;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::overloaded:
      return 429;
    case ErrorCode::out_of_memory:
    case ErrorCode::cancelled:
      return 503;
    case ErrorCode::internal:
      break;
  }
  return 500;
}

}  // namespace toto::server
