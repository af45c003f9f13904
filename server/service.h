// The service behind HTTP: checks access, routes each request to its handler, and connects engine
// threads, shadow verification and telemetry.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "http.h"
#include "service_state.h"

namespace toto::server {

class Service final : public HttpHandler {
 public:
  explicit Service(ServiceOptions options);
  ~Service() override { stop(); }

  std::optional<std::size_t> find_route(const HttpRequest& request) const override;
  std::optional<HttpResponse> admit(const HttpRequest& request) override;
  void handle(HttpRequest request, ClientGone gone, Respond respond) override;
  void add_headers(const HttpRequest& request, HttpResponse& response) const override;
  void answered(const HttpRequest& request, const HttpResponse& response, bool sent) override;

  // Opens the log's path again after a rotation. Error(invalid_argument) if it cannot be opened.
  void reopen_log() { state_.log.reopen(); }
  // Metrics count the connections of this server from now on; requests may already be running.
  void watch(const HttpServer& http) { state_.http = &http; }
  // Returns after every accepted request has been answered. The HTTP server must still exist.
  void stop();
  // All waiting and running requests are soon answered with 503.
  void cancel_all();

  Scheduler& scheduler() { return *state_.scheduler; }
  ShadowState shadow_state() const { return state_.shadow->state(); }
  std::string metrics() const;

 private:
  std::optional<HttpResponse> refuse(const HttpRequest& request) const;
  Forecast forecast_again(const Series& series, const ForecastOptions& options,
                          const ActiveEngine& active);
  void on_shadow_deviation(double deviation, const std::string& id, std::int64_t engine);

  ServiceState state_;
  std::atomic<bool> rolling_back_{false};  // a rollback has been requested and has not happened yet
};

}  // namespace toto::server
