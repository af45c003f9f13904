#include "service.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/error.h"
#include "decompress.h"
#include "memory_budget.h"

namespace toto::server {
namespace {

// Smaller bodies are parsed where they were read; larger ones than kHeavy by a thread of their own,
// so that they hold up only each other.
constexpr std::size_t kLight = std::size_t{64} << 10;
constexpr std::size_t kHeavy = std::size_t{1} << 20;
constexpr std::size_t kMaxTasks = 1024;

// What a page of another origin may send and read besides what every page may.
constexpr std::string_view kCorsHeaders =
    "Authorization, Content-Encoding, Content-Type, Inference-Header-Content-Length, traceparent";
constexpr std::string_view kCorsExposed =
    "Inference-Header-Content-Length, Location, Retry-After, traceparent";

// What stands in a path for the pattern's {...}; nothing if it is not of the pattern.
std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view path) {
  std::vector<std::string> names;
  for (std::size_t open; (open = pattern.find('{')) != pattern.npos;) {
    if (path.substr(0, open) != pattern.substr(0, open)) return std::nullopt;
    path.remove_prefix(open);
    pattern.remove_prefix(pattern.find('}') + 1);
    const std::string_view name = path.substr(0, path.find('/'));
    if (name.empty()) return std::nullopt;
    names.emplace_back(name);
    path.remove_prefix(name.size());
  }
  if (path != pattern) return std::nullopt;
  return names;
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      log_(options_.log, options_.trust_proxy),
      sessions_(options_.sessions),
      light_(2, kMaxTasks),
      heavy_(1, kMaxTasks),
      backtests_(1, kMaxTasks) {
  shadow_ = std::make_unique<Shadow>(
      options_.shadow,
      ShadowWork{.load = [this] { return options_.load(Mode::reference); },
                 .forecast =
                     [this](const Series& series, const ForecastOptions& forecast_options,
                            const ActiveEngine& active) {
                       return live_forecast(series, forecast_options, active);
                     },
                 .exceeded = [this](double deviation,
                                    const std::string& id) { deviated(deviation, id); }});
  SchedulerEvents events{.batch = [this](std::size_t num_series) { telemetry_.batch(num_series); },
                         .forecast =
                             [this](const Series& series, const ForecastOptions& forecast_options,
                                    const Forecast& forecast, const ActiveEngine& active) {
                               telemetry_.forecasts(1);
                               shadow_->offer(series, forecast_options, forecast, active);
                             },
                         .loaded = options_.on_loaded};
  scheduler_ = std::make_unique<Scheduler>(options_.scheduler, options_.load, options_.mode,
                                           std::move(events));
}

void Service::stop() {
  shadow_->cancel();
  backtests_.stop();
  heavy_.stop();
  scheduler_->stop();
  light_.stop();
  shadow_->stop();
}

void Service::cancel_all() {
  cancelled_ = true;
  scheduler_->cancel_all();
}

std::vector<std::string> Service::route_names() {
  std::vector<std::string> names;
  names.reserve(routes().size());
  for (const Route& route : routes()) {
    names.push_back(fmt::format("{} {}", route.method, route.pattern));
  }
  return names;
}

std::optional<std::size_t> Service::find_route(const Request& request) const {
  const std::string_view asked = request.method, method = asked == "HEAD" ? "GET" : asked;
  const auto all = routes();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Route& route) {
    return route.method == method && match(route.pattern, request.path);
  });
  if (found == all.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all.begin());
}

std::optional<Response> Service::admit(const Request& request) {
  std::optional<Response> refusal = refuse(request);
  if (refusal) add_headers(request, *refusal);
  return refusal;
}

std::optional<Response> Service::refuse(const Request& request) const {
  if (auto refusal = check_access(request, options_.access)) {
    if (refusal->status == 401 && request.path == "/validate_api_key") {
      refusal->body = "{\"detail\":\"the API key is wrong or missing\"}";
    }
    // A person gets the page all the same: it has a field for the key.
    if (refusal->status == 401 && request.method == "GET" && request.path == "/" &&
        request.header("Accept").find("text/html") != std::string_view::npos) {
      Response form =
          page("index.html", find_web_file("index.html")->bytes, options_.report_sources);
      form.status = 401;
      form.headers.insert(form.headers.end(), refusal->headers.begin(), refusal->headers.end());
      return form;
    }
    if (refusal->status == 204) {
      refusal->headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE"},
                          {"Access-Control-Allow-Headers", std::string(kCorsHeaders)}};
    }
    return refusal;
  }
  if (!request.route) {
    return error_response(
        404, fmt::format("there is no {} {}; GET /openapi.json lists what there is", request.method,
                         io::quoted(request.path)));
  }
  if (routes()[*request.route].needs_model && !scheduler_->ready()) {
    return error_response(503, "the model is still being loaded; try again");
  }
  return std::nullopt;
}

void Service::handle(Request request, ClientGone gone, Respond respond) {
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->gone = std::move(gone);
  call->respond = std::move(respond);
  // admit() has let it pass: it has a route.
  const Route& route = routes()[call->request.route.value_or(0)];
  call->names = match(route.pattern, call->request.path).value_or(std::vector<std::string>());
  guarded(call, [&] { (this->*route.answer)(call); });
}

void Service::answered(const Request& request, const Response& response, bool sent) {
  const std::string_view name = request.route ? routes()[*request.route].pattern : "other";
  const double seconds = std::chrono::duration<double>(Clock::now() - request.received).count();
  telemetry_.request(name, response.status, seconds);
  log_.add(request, name, response, sent);
}

void Service::guarded(const CallPtr& call, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    send_error(call, error);
  } catch (const std::bad_alloc&) {
    send(call, error_response(503, "not enough memory for this request; ask for less"));
  } catch (const std::exception& error) {
    send(call,
         error_response(500, fmt::format("internal: {}; this is a bug in toto, please report it",
                                         error.what())));
  }
}

void Service::run(const CallPtr& call, std::function<void()> work) {
  const auto whole = [this, call, todo = std::move(work)] {
    guarded(call, [&] {
      std::string& body = call->request.body;
      bool crowded = false;
      try {
        body = decompress(std::move(body), call->request.header("Content-Encoding"),
                          options_.limits.max_body, [&](std::size_t bytes) {
                            crowded = call->request.memory && !call->request.memory->take(bytes);
                            return !crowded;
                          });
      } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory) throw;
        return send(call, error_response(crowded ? 503 : 413, error.what()));
      }
      todo();
    });
  };
  const std::size_t size = call->request.body.size();
  const bool plain = call->request.header("Content-Encoding").empty();
  if (size <= kLight && plain) return whole();
  if (!(size > kHeavy || !plain ? heavy_ : light_).try_post(whole)) {
    send(call, error_response(503, "too many requests are being read; try again"));
  }
}

// What every answer says to who asked, refusals too: without it a page cannot read why.
void Service::add_headers(const Request& request, Response& response) const {
  if (!options_.access.cors.empty() && request.header("Origin") == options_.access.cors) {
    response.headers.push_back({"Access-Control-Allow-Origin", options_.access.cors});
    response.headers.push_back({"Access-Control-Expose-Headers", std::string(kCorsExposed)});
    response.headers.push_back({"Vary", "Origin"});
  }
  const std::string_view trace = request.header("traceparent");
  if (is_traceparent(trace)) response.headers.push_back({"traceparent", std::string(trace)});
}

void Service::send(const CallPtr& call, Response response) const {
  add_headers(call->request, response);
  if (const Respond respond = std::exchange(call->respond, {})) respond(std::move(response));
}

void Service::send_json(const CallPtr& call, std::string body) const {
  send(call, {.body = std::move(body)});
}

void Service::send_error(const CallPtr& call, const Error& error) const {
  send(call, error_response(status_of(error.code()), error.what()));
}

void Service::forecast(const CallPtr& call, Plan plan) {
  const auto time = std::min(plan.timeout.value_or(options_.deadline), options_.deadline);
  Job job{.series = std::move(plan.series),
          .options = std::move(plan.options),
          .gone = call->gone,
          .deadline = call->request.received + time,
          .done = {}};
  job.done = [this, call, write = std::move(plan.answer)](std::optional<Error> error,
                                                          Answer answer) {
    auto result = std::make_shared<Answer>(std::move(answer));
    light_.post([this, call, write, error = std::move(error), result] {
      guarded(call, [&] {
        if (error) throw *error;
        send(call, write(*result));
      });
    });
  };
  scheduler_->submit(std::move(job));
}

void Service::forecast_json(const CallPtr& call, Planner planner) {
  run(call, [this, call, planner] {
    Plan plan = planner(io::parse_json(call->request.body, "the request"), limits());
    call->request.body = {};
    forecast(call, std::move(plan));
  });
}

// On the shadow's thread, which waits for the engine's.
Forecast Service::live_forecast(const Series& series, const ForecastOptions& options,
                                const ActiveEngine& active) {
  Forecast forecast;
  std::promise<std::optional<Error>> ended;
  scheduler_->submit(
      [&](const ActiveEngine& now) {
        if (now.number != active.number) fail(ErrorCode::cancelled, "the mode was switched");
        forecast = now.engine->forecast(series, options);
      },
      pace_of(cost_of(series.num_variates, static_cast<double>(series.length()), options)), {},
      Clock::time_point::max(),
      [&](std::optional<Error> error, const Answer&) { ended.set_value(std::move(error)); });
  if (const auto error = ended.get_future().get()) throw Error(*error);
  return forecast;
}

void Service::deviated(double deviation, const std::string& id) {
  event(fmt::format(
      "shadow verification: a forecast of {} deviates by {:.3g} from reference mode, more than "
      "{:g}",
      id.empty() ? "an unnamed series" : io::quoted(id), deviation, options_.shadow.bound));
  const ActiveEngine active = scheduler_->active();
  if (!options_.auto_rollback || active.engine->options().mode == Mode::reference ||
      rolling_back_.exchange(true)) {
    return;
  }
  // One that fails is tried again at the next deviation.
  scheduler_->switch_mode(Mode::reference, [this](std::optional<Error> error) {
    rolling_back_ = false;
    if (!error) shadow_->note_rollback(true);
    event(error ? fmt::format("the rollback to reference mode failed: {}", error->what())
                : std::string("rolled back: all forecasts are made in reference mode until POST "
                              "/v1/mode says otherwise"));
  });
}

void Service::event(std::string_view sentence) const {
  if (options_.on_event) options_.on_event(sentence);
}

Limits Service::limits() const {
  Limits limits = options_.limits;
  limits.patch_size = scheduler_->active().engine->model().patch_size;
  return limits;
}

Telemetry::Gauges Service::gauges() const {
  const HttpServer* const http = http_;
  return {.queue_depth = scheduler_->depth(),
          .connections = http == nullptr ? 0 : http->num_connections(),
          .sessions = sessions_.size(),
          .active = scheduler_->active(),
          .shadow = shadow_->state(),
          .log_lines_lost = log_.num_lost(),
          .uptime_seconds = std::chrono::duration<double>(Clock::now() - started_).count()};
}

std::string Service::metrics() const { return telemetry_.prometheus(gauges()); }

}  // namespace toto::server
