#include "service.h"

#include <future>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "handlers.h"
#include "router.h"

namespace toto::server {
namespace {

constexpr std::size_t kMaxTasks = 1024;

// Session history is limited to max_memory.
SessionLimits session_limits(const ServiceOptions& options) {
  SessionLimits limits = options.sessions;
  limits.max_history_bytes = options.limits.max_memory;
  return limits;
}

}  // namespace

ServiceState::ServiceState(ServiceOptions wanted)
    : options(std::move(wanted)),
      log(options.log, options.trust_proxy),
      sessions(session_limits(options)),
      small_bodies(2, kMaxTasks),
      large_bodies(1, kMaxTasks),
      backtests(1, kMaxTasks) {}

Service::Service(ServiceOptions options) : state_(std::move(options)) {
  state_.shadow = std::make_unique<Shadow>(
      state_.options.shadow,
      ShadowWork{.load = [this] { return state_.options.load(Mode::reference); },
                 .forecast =
                     [this](const Series& series, const ForecastOptions& forecast_options,
                            const ActiveEngine& active) {
                       return forecast_again(series, forecast_options, active);
                     },
                 .is_current =
                     [this](const ActiveEngine& active) {
                       return state_.scheduler->active().number == active.number;
                     },
                 .exceeded =
                     [this](double deviation, const std::string& id, const ActiveEngine& active) {
                       on_shadow_deviation(deviation, id, active.number);
                     }});
  SchedulerEvents events{
      .batch = [this](std::size_t num_series) { state_.telemetry.batch(num_series); },
      .queue_full = [this] { state_.telemetry.queue_full(); },
      .forecast =
          [this](const Series& series, const ForecastOptions& forecast_options,
                 const Forecast& forecast, const ActiveEngine& active) {
            state_.telemetry.forecasts(1);
            state_.shadow->offer(series, forecast_options, forecast, active);
          },
      .loaded = state_.options.on_loaded};
  state_.scheduler = std::make_unique<Scheduler>(state_.options.scheduler, state_.options.load,
                                                 state_.options.mode, std::move(events));
}

void Service::stop() {
  state_.shadow->cancel();
  state_.backtests.stop();
  state_.large_bodies.stop();
  state_.scheduler->stop();
  state_.small_bodies.stop();
  state_.shadow->stop();
}

void Service::cancel_all() {
  state_.cancelled = true;
  state_.scheduler->cancel_all();
}

std::string Service::metrics() const { return metrics_text(state_); }

std::optional<std::size_t> Service::find_route(const HttpRequest& request) const {
  return server::find_route(request.method, request.path);
}

std::optional<HttpResponse> Service::admit(const HttpRequest& request) {
  std::optional<HttpResponse> refusal = refuse(request);
  if (refusal) add_headers(request, *refusal);
  return refusal;
}

std::optional<HttpResponse> Service::refuse(const HttpRequest& request) const {
  if (auto refusal = check_access(request, state_.options.access)) {
    if (refusal->status != 401) return refusal;
    if (request.path == "/validate_api_key") {
      refusal->body = "{\"detail\":\"the API key is wrong or missing\"}";
    }
    // A browser gets the page with the 401: it has a field for the key.
    if (request.method == "GET" && request.path == "/" &&
        request.header("Accept").find("text/html") != std::string_view::npos) {
      HttpResponse form = page("index.html", find_file(web_files(), "index.html")->bytes,
                               state_.options.report_sources);
      form.status = 401;
      form.headers.insert(form.headers.end(), refusal->headers.begin(), refusal->headers.end());
      return form;
    }
    return refusal;
  }
  if (!request.route) {
    return error_response(404, fmt::format("there is no {} {}; GET /openapi.json lists the routes",
                                           request.method, quoted(request.path)));
  }
  if (routes()[*request.route].needs_model && !state_.scheduler->ready()) {
    return loading_response();
  }
  return std::nullopt;
}

void Service::handle(HttpRequest request, ClientGone gone, Respond respond) {
  const Route& route = routes()[request.route.value_or(0)];  // admit() refuses those without
  auto values = match_path(route.pattern, request.path).value_or(std::vector<std::string>());
  const auto call = std::make_shared<HttpCall>(HttpCall{.service = state_,
                                                        .request = std::move(request),
                                                        .gone = std::move(gone),
                                                        .respond = std::move(respond),
                                                        .path_values = std::move(values)});
  call->guard([&] { route.handler(call); });
}

void Service::add_headers(const HttpRequest& request, HttpResponse& response) const {
  add_answer_headers(request, state_.options.access, response);
}

void Service::answered(const HttpRequest& request, const HttpResponse& response, bool sent) {
  const std::string_view name = request.route ? routes()[*request.route].pattern : "other";
  const double seconds = std::chrono::duration<double>(Clock::now() - request.received).count();
  // A client that has left cancels its work: that 503 is not a server error.
  const int status = !sent && response.status >= 500 ? kClientLeft : response.status;
  const bool forecasts = request.route && routes()[*request.route].forecasts;
  state_.telemetry.request(name, status, seconds, forecasts);
  state_.log.add(request, name, response, sent);
}

// Called on the shadow's thread, which waits here for the engine's.
Forecast Service::forecast_again(const Series& series, const ForecastOptions& options,
                                 const ActiveEngine& active) {
  Forecast forecast;
  std::promise<std::optional<Error>> ended;
  const double cost = forecast_cost(series.num_variates, static_cast<double>(series.length()),
                                    options, active.engine->model().facts);
  state_.scheduler->submit(
      [&](const ActiveEngine& now) -> std::int64_t {
        if (now.number != active.number) fail(ErrorCode::cancelled, "the mode was switched");
        forecast = now.engine->forecast(series, options);
        return 0;  // not a client's: it does not count towards the warm-up
      },
      lane_for_cost(cost), {}, Clock::time_point::max(),
      [&](std::optional<Error> error, const ForecastAnswer&) {
        ended.set_value(std::move(error));
      });
  if (const auto error = ended.get_future().get()) throw Error(*error);
  return forecast;
}

void Service::on_shadow_deviation(double deviation, const std::string& id, std::int64_t engine) {
  state_.event(fmt::format(
      "shadow verification: a forecast of {} deviates by {:.3g} from reference mode, more than "
      "{:g}",
      id.empty() ? "an unnamed series" : quoted(id), deviation, state_.options.shadow.bound));
  const ActiveEngine active = state_.scheduler->active();
  if (!state_.options.auto_rollback || active.number != engine ||
      active.engine->options().mode == Mode::reference || rolling_back_.exchange(true)) {
    return;
  }
  // A failed rollback is tried again at the next deviation.
  state_.scheduler->switch_mode(Mode::reference, [this](std::optional<Error> error) {
    rolling_back_ = false;
    if (!error) state_.shadow->engine_switched(true);
    state_.event(error ? fmt::format("the rollback to reference mode failed: {}", error->what())
                       : std::string("rolled back: all forecasts are made in reference mode until "
                                     "POST /v1/mode changes it"));
  });
}

}  // namespace toto::server
