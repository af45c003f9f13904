// The service behind HTTP: owns the engine's scheduler, sessions, shadow verification and
// telemetry, and answers every route.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "access.h"
#include "access_log.h"
#include "http.h"
#include "plan.h"
#include "scheduler.h"
#include "sessions.h"
#include "shadow.h"
#include "telemetry.h"
#include "web.h"
#include "workers.h"

namespace toto::server {

struct BacktestFiles {
  std::string results_json = {};
  std::string report_html = {};
  std::size_t num_forecasts = 0;
};
// Bars and settings in, as the body has them. Runs for seconds; asks `cancelled` between steps.
using Backtest = std::function<BacktestFiles(const io::Json& body, const ActiveEngine& active,
                                             const std::function<bool()>& cancelled)>;

struct ServiceOptions {
  std::string model = {};  // the name clients know it by
  Mode mode = Mode::standard;
  Scheduler::Load load = {};
  AccessRules access = {};
  Limits limits = {};
  SchedulerOptions scheduler = {};
  SessionLimits sessions = {};
  ShadowOptions shadow = {};
  bool auto_rollback = false;
  std::chrono::milliseconds deadline{60'000};  // of a request
  std::string log = {};                        // a file of JSON lines, "-", or none
  bool trust_proxy = false;                    // the log names whom a proxy speaks for
  Backtest backtest = {};
  ReportSources report_sources = {};
  std::function<void(std::string_view)> on_event = {};  // sentences for the operator
  std::function<std::int64_t()> num_events_lost = {};   // that could not be written
  std::function<void(std::optional<Error>)> on_loaded = {};
};

// Who reads a request: the thread it came on, or one that is there for larger ones.
enum class Reader { io, light, heavy };

class Service final : public HttpHandler {
 public:
  explicit Service(ServiceOptions options);
  ~Service() override { stop(); }

  std::optional<std::size_t> find_route(const Request& request) const override;
  std::optional<Response> admit(const Request& request) override;
  void handle(Request request, ClientGone gone, Respond respond) override;
  void add_headers(const Request& request, Response& response) const override;
  void answered(const Request& request, const Response& response, bool sent) override;

  // Lines go to the file that has the log's name now. Error(invalid_argument) if there can be none.
  void reopen_log() { log_.reopen(); }
  // Whose connections are counted from now on. Requests may be on their way already.
  void watch(const HttpServer& http) { http_ = &http; }
  // After every accepted request has been answered. The HTTP server must still be there.
  void stop();
  // Whatever waits or runs is answered with 503 soon.
  void cancel_all();

  Scheduler& scheduler() { return *scheduler_; }
  ShadowState shadow_state() const { return shadow_->state(); }
  std::string metrics() const;
  // "POST /v1/sessions/{id}/append", of every route.
  static std::vector<std::string> route_names();

 private:
  // A request on its way to an answer.
  struct Call {
    Request request;
    ClientGone gone;
    Respond respond;
    std::vector<std::string> names;  // what stood for {...} in the route
    std::string opened;              // the session this request opens
    Reader reader = Reader::io;
    bool unpacked = false;  // the body is what was behind its Content-Encoding
  };
  using CallPtr = std::shared_ptr<Call>;
  using Planner = Plan (*)(const io::Json& body, const Limits& limits);
  struct Route {
    std::string_view method;
    std::string_view pattern;  // "/v1/sessions/{id}/append"
    bool needs_model;
    void (Service::*answer)(const CallPtr& call);
    bool forecasts = false;  // its latency is one of forecasts
  };
  static std::span<const Route> routes();

  // Runs `work` where it holds up nobody, with the body decompressed; what it throws is answered.
  // It may run again elsewhere, as long as it has only read.
  void run(const CallPtr& call, const std::function<void()>& work);
  void read(const CallPtr& call, const std::function<void()>& work);
  enum class Unpacked { whole, too_large_here, refused };
  Unpacked unpack(const CallPtr& call) const;
  void pass_on(const CallPtr& call, Reader reader, const std::function<void()>& work);
  void check_wanted(const Call& call) const;  // Error(cancelled) if nobody waits for it any more
  void guarded(const CallPtr& call, const std::function<void()>& work);
  std::optional<Response> refuse(const Request& request) const;
  void send(const CallPtr& call, Response response) const;
  void send_json(const CallPtr& call, std::string body) const;
  void send_error(const CallPtr& call, const Error& error) const;
  // To the engine thread; counts what is turned away.
  template <typename... Work>
  void submit(Work&&... work) {
    try {
      scheduler_->submit(std::forward<Work>(work)...);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::overloaded) telemetry_.queue_full();
      throw;
    }
  }
  void forecast(const CallPtr& call, Plan plan);
  void forecast_json(const CallPtr& call, Planner planner);
  void check_model_name(const Call& call) const;

  void get_health(const CallPtr& call);
  void get_live(const CallPtr& call);
  void get_ready(const CallPtr& call);
  void get_server(const CallPtr& call);
  void get_model(const CallPtr& call);
  void get_model_ready(const CallPtr& call);
  void post_infer(const CallPtr& call);
  void get_model_params(const CallPtr& call);
  void get_validate_api_key(const CallPtr& call);
  void post_nixtla_forecast(const CallPtr& call);
  void post_cross_validation(const CallPtr& call);
  void post_anomaly_detection(const CallPtr& call);
  void post_invocations(const CallPtr& call);
  void post_v1_forecast(const CallPtr& call);
  void post_series(const CallPtr& call);
  void post_session(const CallPtr& call);
  void post_append(const CallPtr& call);
  void post_session_forecast(const CallPtr& call);
  void delete_session(const CallPtr& call);
  void post_backtest(const CallPtr& call);
  void get_backtest_report(const CallPtr& call);
  void get_status(const CallPtr& call);
  void post_mode(const CallPtr& call);
  void get_metrics(const CallPtr& call);
  void get_openapi(const CallPtr& call);
  void get_page(const CallPtr& call);

  BacktestFiles run_backtest(const Call& call, const io::Json& body);
  struct NewPoints {
    std::vector<float> values = {};       // [variate][point]
    std::optional<std::string> end = {};  // when the last one was
  };
  void answer_session(const CallPtr& call, const std::shared_ptr<StreamSession>& session,
                      NewPoints points, std::optional<ForecastOptions> options, bool reports_point);
  Clock::time_point deadline_of(const Call& call) const {
    return call.request.received + options_.deadline;
  }
  Forecast live_forecast(const Series& series, const ForecastOptions& options,
                         const ActiveEngine& active);
  void deviated(double deviation, const std::string& id, std::int64_t engine);
  void event(std::string_view sentence) const;
  Telemetry::Gauges gauges() const;
  std::string status_json() const;
  Limits limits(const Call& call) const;  // for who reads it, with the model's patch size
  void freed(std::size_t bytes);          // gives large amounts back to the system

  const ServiceOptions options_;
  const Clock::time_point started_ = Clock::now();
  Telemetry telemetry_;
  AccessLog log_;
  Sessions sessions_;
  std::atomic<const HttpServer*> http_{nullptr};
  std::mutex reports_mutex_;
  std::list<std::pair<std::string, std::string>>
      reports_;                            // of backtests: id and page, newest last
  std::atomic<int> num_backtests_{0};      // running or waiting
  std::atomic<std::size_t> num_freed_{0};  // bytes, since the system got them back
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> rolling_back_{false};  // the switch has not happened yet
  std::unique_ptr<Shadow> shadow_;
  std::unique_ptr<Scheduler> scheduler_;
  Workers light_, heavy_, backtests_;
};

}  // namespace toto::server
