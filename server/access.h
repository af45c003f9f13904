// Who may ask: keys, hosts and origins.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "message.h"

namespace toto::server {

struct AccessRules {
  std::string api_key = {};  // empty: none is needed
  std::string cors = {};     // the origin that pages may come from; empty: only ours
  bool loopback = true;      // bound to it: other names for this machine are refused
};

// A name or an address of this machine that others cannot reach.
bool is_loopback(std::string_view name);

// Takes as long whatever the texts hold.
bool same_text(std::string_view a, std::string_view b) noexcept;

// Nothing if the request may pass. Without a key only health may, if there is one.
std::optional<Response> check_access(const Request& request, const AccessRules& rules);

// The client a proxy speaks for: the last address of X-Forwarded-For, which is the proxy's own
// word. The peer's if that is no address. For the log alone: whoever may connect can write the
// header.
std::string client_address(const Request& request);

// Whether this is W3C's `00-<32 hex>-<16 hex>-<2 hex>`, of any version of that form, with ids that
// are not all zero.
bool is_traceparent(std::string_view text) noexcept;

}  // namespace toto::server
