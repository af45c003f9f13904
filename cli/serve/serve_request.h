// What `toto serve` was asked to do: flags, and for each a variable TOTO_SERVE_NAME.
#pragma once

#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/settings/settings.h"
#include "server/http.h"
#include "server/service.h"

namespace toto::cli {

struct ServeFlags {
  std::optional<std::string> host, port, api_key, api_key_file, tls_cert, tls_key, queue, max_body,
      max_series, max_horizon, max_samples, max_memory, max_connections, max_sessions, deadline,
      cors, shadow_rate, shadow_bound, log;
  bool auto_rollback = false, trust_proxy = false;
  CommonFlags common;
};
void add_serve_options(Command& command, ServeFlags& flags);

struct ServeRequest {
  server::HttpOptions http;
  server::ServiceOptions service;  // without what needs a model
  Settings settings;
};

// Error(invalid_argument) naming the flag or variable; Error(not_found, corrupt_file) for a file
// that cannot be read.
ServeRequest make_serve_request(ServeFlags flags);

}  // namespace toto::cli
