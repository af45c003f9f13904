// The head of a request as RFC 9112 has it, as far as the HTTP library does not check it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http_message.h"

namespace toto::server {

// 400 for a folded header line (obs-fold): the library would join the lines, a proxy in front may
// not. `head` is the request line and the headers.
std::optional<HttpResponse> refuse_folding(std::string_view head);

// A request target: "/path?query", or "http://host:port/path?query", whose host replaces the Host
// header.
struct RequestTarget {
  std::string path, query;
  std::optional<std::string> authority = {};
};
RequestTarget split_target(std::string_view target);

// 417 unless the only expectation is 100-continue. HTTP/1.0 has none: the header is ignored.
std::optional<HttpResponse> refuse_expectation(const HttpRequest& request, unsigned version);
bool expects_continue(const HttpRequest& request, unsigned version);

// The host of a Host header, without port and brackets; nothing if it is not a host and a port.
std::optional<std::string_view> host_name(std::string_view host);

// The content codings of a body in the order they were applied, in lower case; without "identity".
std::vector<std::string> content_codings(const HttpRequest& request);

}  // namespace toto::server
