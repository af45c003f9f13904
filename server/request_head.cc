#include "request_head.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace toto::server {
namespace {

constexpr std::string_view kDigits = "0123456789";

// reg-name of RFC 3986 without percent-encoding, which no host name has.
bool is_name(std::string_view text) {
  constexpr std::string_view kOthers = "-._~!$&'()*+,;=";
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != kOthers.npos;
  });
}

bool is_port(std::string_view text) {
  return text.size() <= 5 && text.find_first_not_of(kDigits) == text.npos &&
         (text.empty() || std::stoi(std::string(text)) <= 65535);
}

bool is_address6(std::string_view text) {
  in6_addr room{};
  return ::inet_pton(AF_INET6, std::string(text).c_str(), &room) == 1;
}

}  // namespace

std::optional<HttpResponse> refuse_folding(std::string_view head) {
  for (std::size_t at = head.find('\n'); at != head.npos; at = head.find('\n', at + 1)) {
    if (at + 1 == head.size() || (head[at + 1] != ' ' && head[at + 1] != '\t')) continue;
    return error_response(400, "a header line is folded, expected each header on one line");
  }
  return std::nullopt;
}

RequestTarget split_target(std::string_view target) {
  RequestTarget result;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    result.authority = std::string(target.substr(0, end));
    target.remove_prefix(end);
    break;
  }
  const std::size_t mark = target.find('?');
  result.path = target.substr(0, mark);
  if (result.authority && result.path.empty()) result.path = "/";
  if (mark != std::string_view::npos) result.query = target.substr(mark + 1);
  return result;
}

std::optional<HttpResponse> refuse_expectation(const HttpRequest& request, unsigned version) {
  const std::size_t count = request.count("Expect");
  if (count == 0 || version < 11 || expects_continue(request, version)) return std::nullopt;
  return error_response(417, fmt::format("Expect is {}, expected \"100-continue\" alone",
                                         quoted(request.header("Expect"))));
}

bool expects_continue(const HttpRequest& request, unsigned version) {
  return version >= 11 && request.count("Expect") == 1 &&
         equal_ignoring_case(trimmed(request.header("Expect")), "100-continue");
}

std::optional<std::string_view> host_name(std::string_view host) {
  std::string_view name, rest;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == host.npos) return std::nullopt;
    name = host.substr(1, end - 1);
    rest = host.substr(end + 1);
    if (!is_address6(name)) return std::nullopt;
  } else {
    const std::size_t colon = std::min(host.find(':'), host.size());
    name = host.substr(0, colon);
    rest = host.substr(colon);
    if (name.empty() || !is_name(name)) return std::nullopt;
  }
  if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return std::nullopt;
  return name;
}

std::vector<std::string> content_codings(const HttpRequest& request) {
  std::vector<std::string> codings;
  for (const HttpHeader& item : request.headers) {
    if (!equal_ignoring_case(item.name, "Content-Encoding")) continue;
    for (std::string_view rest = item.value; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      std::string name = lower_case(trimmed(rest.substr(0, comma)));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      if (!name.empty() && name != "identity") codings.push_back(std::move(name));
    }
  }
  return codings;
}

}  // namespace toto::server
