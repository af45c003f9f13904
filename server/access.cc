#include "access.h"

#include <arpa/inet.h>

#include "base/error.h"
#include "base/text.h"
#include "request_head.h"

namespace toto::server {
namespace {

// Headers that a page of an allowed origin may send and read besides the default ones.
constexpr std::string_view kCorsHeaders =
    "Authorization, Content-Encoding, Content-Type, Inference-Header-Content-Length, traceparent";
constexpr std::string_view kCorsExposed =
    "Inference-Header-Content-Length, Location, Retry-After, traceparent";

// Health, and the files of the page: they hold no secret, and a browser sends no key with them.
bool is_open(std::string_view path) {
  return path == "/health" || path.starts_with("/v2/health/") || path.starts_with("/web/");
}

}  // namespace

bool is_loopback(std::string_view name) {
  if (equal_ignoring_case(name, "localhost")) return true;
  const std::string text(name);
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  in6_addr six{};
  if (::inet_pton(AF_INET6, text.c_str(), &six) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

bool same_text(std::string_view a, std::string_view b) noexcept {
  // Always reads every byte of `b`, the client's text.
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const char other = a.empty() ? '\0' : a[i % a.size()];
    difference = static_cast<unsigned char>(difference | (other ^ b[i]));
  }
  return difference == 0;
}

std::optional<HttpResponse> check_access(const HttpRequest& request, const AccessRules& rules) {
  const std::string_view host = request.header("Host");
  if (request.count("Host") != 1 || host.empty()) {
    return error_response(
        400, fmt::format("the request has {} Host headers, expected one", request.count("Host")));
  }
  const std::optional<std::string_view> name = host_name(host);
  if (!name) {
    return error_response(
        400, fmt::format("Host is {}, expected a name or address and maybe a port", quoted(host)));
  }
  if (rules.loopback && !is_loopback(*name)) {
    return error_response(403, fmt::format("Host is {}, expected localhost: this server is bound "
                                           "to loopback",
                                           quoted(host)));
  }
  const std::string_view origin = request.header("Origin");
  const bool ours = origin == fmt::format("http://{}", host) ||
                    origin == fmt::format("https://{}", host) ||
                    (!rules.cors.empty() && origin == rules.cors);
  if (!origin.empty() && !ours) {
    return error_response(403, fmt::format("Origin {} is not allowed; start the server with "
                                           "--cors ORIGIN to allow it",
                                           quoted(origin)));
  }
  // A preflight carries no key.
  if (request.method == "OPTIONS" && !rules.cors.empty() && origin == rules.cors) {
    return HttpResponse{.status = 204,
                        .content_type = "text/plain",
                        .headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE"},
                                    {"Access-Control-Allow-Headers", std::string(kCorsHeaders)}}};
  }
  if (rules.api_key.empty() || is_open(request.path)) return std::nullopt;
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view given = request.header("Authorization");
  const bool bearer = given.size() > kBearer.size() &&
                      equal_ignoring_case(given.substr(0, kBearer.size()), kBearer);
  if (bearer && same_text(rules.api_key, given.substr(kBearer.size()))) return std::nullopt;
  return error_response(401, bearer ? "the API key is wrong"
                                    : "the request has no API key, expected the header "
                                      "Authorization: Bearer KEY");
}

void add_answer_headers(const HttpRequest& request, const AccessRules& rules,
                        HttpResponse& response) {
  if (!rules.cors.empty() && request.header("Origin") == rules.cors) {
    response.headers.push_back({"Access-Control-Allow-Origin", rules.cors});
    response.headers.push_back({"Access-Control-Expose-Headers", std::string(kCorsExposed)});
    response.headers.push_back({"Vary", "Origin"});
  }
  const std::string_view trace = request.header("traceparent");
  if (is_traceparent(trace)) response.headers.push_back({"traceparent", std::string(trace)});
}

std::string client_address(const HttpRequest& request) {
  std::string_view last;
  for (const HttpHeader& item : request.headers) {
    if (equal_ignoring_case(item.name, "X-Forwarded-For")) last = item.value;
  }
  const std::string address(trimmed(last.substr(last.rfind(',') + 1)));
  in6_addr room{};
  const bool known = ::inet_pton(AF_INET, address.c_str(), &room) == 1 ||
                     ::inet_pton(AF_INET6, address.c_str(), &room) == 1;
  return known ? address : request.peer;
}

bool is_traceparent(std::string_view text) noexcept {
  if (text.size() != 55 || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  const auto is_hex = [](std::string_view part) {
    return part.find_first_not_of("0123456789abcdef") == part.npos;
  };
  const auto is_zero = [](std::string_view part) {
    return part.find_first_not_of('0') == part.npos;
  };
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32),
                         parent = text.substr(36, 16), flags = text.substr(53);
  return is_hex(version) && version != "ff" && is_hex(trace) && !is_zero(trace) && is_hex(parent) &&
         !is_zero(parent) && is_hex(flags);
}

}  // namespace toto::server
