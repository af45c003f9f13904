// Access checks: API keys, hosts and origins.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http_message.h"

namespace toto::server {

struct AccessRules {
  std::string api_key = {};  // empty: none is needed
  std::string cors = {};     // an additional origin allowed for pages; empty: only this server's
  bool loopback = true;      // bound to loopback: other host names are refused
};

// A name or address that only this machine can reach.
bool is_loopback(std::string_view name);

// Constant time for texts of one length: it does not reveal where they differ.
bool same_text(std::string_view a, std::string_view b) noexcept;

// The refusal, or the answer to a CORS preflight; nothing if the request may pass. Health and the
// files of the page need no key.
std::optional<HttpResponse> check_access(const HttpRequest& request, const AccessRules& rules);

// The headers of every answer, refusals included: CORS, without which a page cannot read an error,
// and the traceparent of the request.
void add_answer_headers(const HttpRequest& request, const AccessRules& rules,
                        HttpResponse& response);

// The client behind a proxy: the last address of X-Forwarded-For, which the proxy itself adds; the
// peer if that is not an address. Only for the log: any client can write the header.
std::string client_address(const HttpRequest& request);

// Whether this is W3C's `00-<32 hex>-<16 hex>-<2 hex>`, of any version of that form, with ids that
// are not all zero.
bool is_traceparent(std::string_view text) noexcept;

}  // namespace toto::server
