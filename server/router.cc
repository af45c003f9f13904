#include "router.h"

#include <algorithm>
#include <array>

#include "handlers.h"
#include "protocol_chronos.h"
#include "protocol_nixtla.h"
#include "protocol_v1.h"

namespace toto::server {
namespace {

constexpr auto kRoutes = std::to_array<Route>({
    {"GET", "/", false, get_page},
    {"GET", "/health", false, get_health},
    {"GET", "/metrics", false, get_metrics},
    {"GET", "/openapi.json", false, get_openapi},
    {"POST", "/v1/forecast", true, post_forecast<prepare_v1>, true},
    {"POST", "/v1/series", true, post_series},
    {"POST", "/v1/sessions", true, post_session},
    {"POST", "/v1/sessions/{id}/append", true, post_append, true},
    {"POST", "/v1/sessions/{id}/forecast", true, post_session_forecast, true},
    {"DELETE", "/v1/sessions/{id}", true, delete_session},
    {"POST", "/v1/backtest", true, post_backtest},
    {"GET", "/v1/backtest/{id}/report", true, get_backtest_report},
    {"POST", "/v1/signal", true, post_signal},
    {"GET", "/v1/status", false, get_status},
    {"POST", "/v1/mode", true, post_mode},
    {"GET", "/v2", false, get_oip_server},
    {"GET", "/v2/health/live", false, get_live},
    {"GET", "/v2/health/ready", false, get_ready},
    {"GET", "/v2/models/{model}", true, get_oip_model},
    {"GET", "/v2/models/{model}/ready", true, get_oip_model_ready},
    {"POST", "/v2/models/{model}/infer", true, post_oip_infer, true},
    {"GET", "/v2/models/{model}/versions/{version}", true, get_oip_model},
    {"GET", "/v2/models/{model}/versions/{version}/ready", true, get_oip_model_ready},
    {"POST", "/v2/models/{model}/versions/{version}/infer", true, post_oip_infer, true},
    {"GET", "/model_params", true, get_model_params},
    {"GET", "/validate_api_key", false, get_validate_api_key},
    {"POST", "/v2/forecast", true, post_forecast<prepare_nixtla_forecast>, true},
    {"POST", "/v2/cross_validation", true, post_forecast<prepare_nixtla_cross_validation>, true},
    {"POST", "/v2/anomaly_detection", true, post_forecast<prepare_nixtla_anomaly_detection>, true},
    {"POST", "/invocations", true, post_forecast<prepare_chronos>, true},
    {"GET", "/web/{file}", false, get_page},
});

}  // namespace

std::span<const Route> routes() { return kRoutes; }

std::optional<std::size_t> find_route(std::string_view method, std::string_view path) {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  const auto found = std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& route) {
    return route.method == wanted && match_path(route.pattern, path);
  });
  if (found == kRoutes.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kRoutes.begin());
}

std::optional<std::vector<std::string>> match_path(std::string_view pattern,
                                                   std::string_view path) {
  std::vector<std::string> values;
  for (std::size_t open; (open = pattern.find('{')) != pattern.npos;) {
    if (path.substr(0, open) != pattern.substr(0, open)) return std::nullopt;
    path.remove_prefix(open);
    pattern.remove_prefix(pattern.find('}') + 1);
    const std::string_view value = path.substr(0, path.find('/'));
    if (value.empty()) return std::nullopt;
    values.emplace_back(value);
    path.remove_prefix(value.size());
  }
  if (path != pattern) return std::nullopt;
  return values;
}

}  // namespace toto::server
