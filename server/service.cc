#include "service.h"

#include <algorithm>
#include <future>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/process_memory.h"
#include "decompress.h"
#include "memory_budget.h"

namespace toto::server {
namespace {

// What is read by whom, in bytes of the body and of the series made from it: little where it came,
// more by two threads, the largest by one of their own, so that they hold up only each other.
struct Reach {
  std::size_t body, series;
};
constexpr Reach kIo = {std::size_t{64} << 10, std::size_t{1} << 20};
constexpr Reach kLight = {std::size_t{1} << 20, std::size_t{16} << 20};
constexpr Reach kHeavy = {std::numeric_limits<std::size_t>::max(),
                          std::numeric_limits<std::size_t>::max()};
const Reach& reach_of(Reader reader) {
  return reader == Reader::io ? kIo : reader == Reader::light ? kLight : kHeavy;
}
constexpr std::size_t kMaxTasks = 1024;
// Freed memory that is worth the milliseconds it takes to give it back.
constexpr std::size_t kTrim = std::size_t{64} << 20;

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

// What a session holds is held to what a request may take.
SessionLimits session_limits(const ServiceOptions& options) {
  SessionLimits limits = options.sessions;
  limits.max_history_bytes = options.limits.max_memory;
  return limits;
}

}  // namespace

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      log_(options_.log, options_.trust_proxy),
      sessions_(session_limits(options_)),
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
                 .is_current =
                     [this](const ActiveEngine& active) {
                       return scheduler_->active().number == active.number;
                     },
                 .exceeded =
                     [this](double deviation, const std::string& id, const ActiveEngine& active) {
                       deviated(deviation, id, active.number);
                     }});
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
  // Who left has cancelled the work: that is no failure of ours.
  const int status = !sent && response.status >= 500 ? kClientLeft : response.status;
  telemetry_.request(name, status, seconds, request.route && routes()[*request.route].forecasts);
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

void Service::run(const CallPtr& call, const std::function<void()>& work) {
  const std::size_t size = call->request.body.size();
  const bool plain = call->request.header("Content-Encoding").empty();
  if (size > kLight.body) return pass_on(call, Reader::heavy, work);
  if (size > kIo.body || !plain) return pass_on(call, Reader::light, work);
  read(call, work);
}

void Service::pass_on(const CallPtr& call, Reader reader, const std::function<void()>& work) {
  call->reader = reader;
  const auto task = [this, call, work] { guarded(call, [&] { read(call, work); }); };
  const auto late = [this, call] { guarded(call, [&] { check_wanted(*call); }); };
  Workers& workers = reader == Reader::heavy ? heavy_ : light_;
  if (!workers.try_post(task, {deadline_of(*call), late})) {
    send(call, error_response(503, "too many requests are being read; try again"));
  }
}

void Service::read(const CallPtr& call, const std::function<void()>& work) {
  check_wanted(*call);
  const Unpacked unpacked = unpack(call);
  if (unpacked == Unpacked::too_large_here) return pass_on(call, Reader::heavy, work);
  if (unpacked == Unpacked::refused) return;
  const std::size_t size = call->request.body.size();
  try {
    work();
  } catch (const TooLargeHere& plan) {
    return pass_on(call, plan.bytes > kLight.series ? Reader::heavy : Reader::light, work);
  }
  freed(size);
}

Service::Unpacked Service::unpack(const CallPtr& call) const {
  const std::string_view encoding = call->request.header("Content-Encoding");
  if (call->unpacked || encoding.empty()) return Unpacked::whole;
  const std::size_t most = reach_of(call->reader).body;
  MemoryShare* const memory = call->request.memory.get();
  std::size_t taken = 0;
  bool fits = true, crowded = false;
  try {
    call->request.body =
        decompress(call->request.body, encoding, options_.limits.max_body, [&](std::size_t bytes) {
          check_wanted(*call);
          fits = bytes <= most - taken;
          crowded = fits && memory != nullptr && !memory->take(bytes);
          if (fits && !crowded) taken += bytes;
          return fits && !crowded;
        });
    call->unpacked = true;
    return Unpacked::whole;
  } catch (const Error& error) {
    if (memory != nullptr) memory->give_back(taken);
    if (!fits) return Unpacked::too_large_here;
    if (error.code() != ErrorCode::out_of_memory) throw;
    send(call, error_response(crowded ? 503 : 413, error.what()));
    return Unpacked::refused;
  }
}

void Service::check_wanted(const Call& call) const {
  if (cancelled_) fail(ErrorCode::cancelled, "the server is shutting down");
  if (call.gone->load()) fail(ErrorCode::cancelled, "the client has left");
  if (Clock::now() >= deadline_of(call)) {
    fail(ErrorCode::cancelled,
         "the request was not read in time; send less, or again when the server is less busy");
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
  std::size_t bytes = 0;
  for (const Series& series : plan.series) bytes += sizeof(float) * series.values.size();
  Job job{.series = std::move(plan.series),
          .options = std::move(plan.options),
          .gone = call->gone,
          .deadline = call->request.received + time,
          .done = {}};
  job.done = [this, call, bytes, write = std::move(plan.answer)](std::optional<Error> error,
                                                                 Answer answer) {
    auto result = std::make_shared<Answer>(std::move(answer));
    light_.post([this, call, bytes, write, error = std::move(error), result] {
      guarded(call, [&] {
        if (error) throw *error;
        send(call, write(*result));
      });
      *result = {};
      freed(bytes);
    });
  };
  submit(std::move(job));
}

void Service::forecast_json(const CallPtr& call, Planner planner) {
  run(call, [this, call, planner] {
    Plan plan = planner(io::parse_json(call->request.body, "the request"), limits(*call));
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
      pace_of(cost_of(series.num_variates, static_cast<double>(series.length()), options,
                      active.engine->model().patch_size)),
      {}, Clock::time_point::max(),
      [&](std::optional<Error> error, const Answer&) { ended.set_value(std::move(error)); });
  if (const auto error = ended.get_future().get()) throw Error(*error);
  return forecast;
}

void Service::deviated(double deviation, const std::string& id, std::int64_t engine) {
  event(fmt::format(
      "shadow verification: a forecast of {} deviates by {:.3g} from reference mode, more than "
      "{:g}",
      id.empty() ? "an unnamed series" : io::quoted(id), deviation, options_.shadow.bound));
  const ActiveEngine active = scheduler_->active();
  if (!options_.auto_rollback || active.number != engine ||
      active.engine->options().mode == Mode::reference || rolling_back_.exchange(true)) {
    return;
  }
  // One that fails is tried again at the next deviation.
  scheduler_->switch_mode(Mode::reference, [this](std::optional<Error> error) {
    rolling_back_ = false;
    if (!error) shadow_->engine_switched(true);
    event(error ? fmt::format("the rollback to reference mode failed: {}", error->what())
                : std::string("rolled back: all forecasts are made in reference mode until POST "
                              "/v1/mode says otherwise"));
  });
}

void Service::event(std::string_view sentence) const {
  if (options_.on_event) options_.on_event(sentence);
}

Limits Service::limits(const Call& call) const {
  Limits limits = options_.limits;
  limits.max_here = reach_of(call.reader).series;
  limits.memory = call.request.memory.get();
  limits.patch_size = scheduler_->active().engine->model().patch_size;
  return limits;
}

void Service::freed(std::size_t bytes) {
  if (bytes < kLight.body || num_freed_.fetch_add(bytes) + bytes < kTrim) return;
  num_freed_ = 0;
  release_freed_memory();
}

Telemetry::Gauges Service::gauges() const {
  const HttpServer* const http = http_;
  return {.queue_depth = scheduler_->depth(),
          .connections = http == nullptr ? 0 : http->num_connections(),
          .sessions = sessions_.size(),
          .active = scheduler_->active(),
          .shadow = shadow_->state(),
          .log_lines_lost =
              log_.num_lost() + (options_.num_events_lost ? options_.num_events_lost() : 0),
          .uptime_seconds = std::chrono::duration<double>(Clock::now() - started_).count()};
}

std::string Service::metrics() const { return telemetry_.prometheus(gauges()); }

}  // namespace toto::server
