// The table of routes: which handler answers which method and path.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http_call.h"

namespace toto::server {

// One row of the table; a new route is a new row and its handler.
struct Route {
  std::string_view method;
  std::string_view pattern;  // "/v1/sessions/{id}/append"
  bool needs_model;          // 503 until the model is loaded
  void (*handler)(const HttpCallPtr& call);
  bool forecasts = false;  // its latency counts as a forecast's
};

std::span<const Route> routes();
// The index in routes(); HEAD is answered as GET.
std::optional<std::size_t> find_route(std::string_view method, std::string_view path);
// The parts of a path that match the pattern's {...}; nothing if the path does not match.
std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view path);

}  // namespace toto::server
