#include "http_message.h"

#include <algorithm>

#include "base/text.h"
#include "io/json.h"

namespace toto::server {

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const HttpHeader& item) {
    return equal_ignoring_case(item.name, name);
  });
  return found == headers.end() ? std::string_view() : std::string_view(found->value);
}

std::size_t HttpRequest::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(headers.begin(), headers.end(),
                    [&](const HttpHeader& item) { return equal_ignoring_case(item.name, name); }));
}

HttpResponse error_response(int status, std::string_view sentence) {
  HttpResponse response{.status = status, .body = one_field_json("error", sentence)};
  if (status == 429 || status == 503) response.headers.push_back({"Retry-After", "1"});
  if (status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  return response;
}

HttpResponse loading_response() {
  return error_response(503, "the model is still being loaded; try again");
}

std::string one_field_json(std::string_view name, std::string_view text) {
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object().field(name, text).end_object();
  return json.take();
}

std::string our_json(std::string_view name, std::string_view text) {
  io::JsonWriter json(io::JsonLayout::compact);
  write_texts(json.begin_object().field(name, text), "warnings", {});
  json.end_object();
  return json.take();
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
