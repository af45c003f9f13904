// Every route: what it reads, what it asks for, what it answers. JSON ends here.
#include <array>
#include <utility>

#include "base/error.h"
#include "protocol_chronos.h"
#include "protocol_nixtla.h"
#include "protocol_oip.h"
#include "protocol_series.h"
#include "protocol_v1.h"
#include "service.h"
#include "web.h"

namespace toto::server {
namespace {

using io::Json;

constexpr int kMaxBacktests = 4;
constexpr std::size_t kMaxReports = 16;

// {"field": "text"}
std::string one_field(std::string_view name, std::string_view text) {
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object().field(name, text).end_object();
  return json.take();
}

}  // namespace

std::span<const Service::Route> Service::routes() {
  static constexpr auto kRoutes = std::to_array<Route>({
      {"GET", "/", false, &Service::get_page},
      {"GET", "/health", false, &Service::get_health},
      {"GET", "/metrics", false, &Service::get_metrics},
      {"GET", "/openapi.json", false, &Service::get_openapi},
      {"POST", "/v1/forecast", true, &Service::post_v1_forecast, true},
      {"POST", "/v1/series", true, &Service::post_series},
      {"POST", "/v1/sessions", true, &Service::post_session},
      {"POST", "/v1/sessions/{id}/append", true, &Service::post_append, true},
      {"POST", "/v1/sessions/{id}/forecast", true, &Service::post_session_forecast, true},
      {"DELETE", "/v1/sessions/{id}", true, &Service::delete_session},
      {"POST", "/v1/backtest", true, &Service::post_backtest},
      {"GET", "/v1/backtest/{id}/report", true, &Service::get_backtest_report},
      {"GET", "/v1/status", false, &Service::get_status},
      {"POST", "/v1/mode", true, &Service::post_mode},
      {"GET", "/v2", false, &Service::get_server},
      {"GET", "/v2/health/live", false, &Service::get_live},
      {"GET", "/v2/health/ready", false, &Service::get_ready},
      {"GET", "/v2/models/{model}", true, &Service::get_model},
      {"GET", "/v2/models/{model}/ready", true, &Service::get_model_ready},
      {"POST", "/v2/models/{model}/infer", true, &Service::post_infer, true},
      {"GET", "/v2/models/{model}/versions/{version}", true, &Service::get_model},
      {"GET", "/v2/models/{model}/versions/{version}/ready", true, &Service::get_model_ready},
      {"POST", "/v2/models/{model}/versions/{version}/infer", true, &Service::post_infer, true},
      {"GET", "/model_params", true, &Service::get_model_params},
      {"GET", "/validate_api_key", false, &Service::get_validate_api_key},
      {"POST", "/v2/forecast", true, &Service::post_nixtla_forecast, true},
      {"POST", "/v2/cross_validation", true, &Service::post_cross_validation, true},
      {"POST", "/v2/anomaly_detection", true, &Service::post_anomaly_detection, true},
      {"POST", "/invocations", true, &Service::post_invocations, true},
      {"GET", "/web/{file}", false, &Service::get_page},
  });
  return kRoutes;
}

// ------------------------------------------------------------------------------- health, documents

void Service::get_health(const CallPtr& call) {
  const bool ready = scheduler_->ready();
  send(call, {.status = ready ? 200 : 503, .body = one_field("status", ready ? "ok" : "loading")});
}

void Service::get_live(const CallPtr& call) { send_json(call, "{\"live\":true}\n"); }

void Service::get_ready(const CallPtr& call) {
  if (!scheduler_->ready()) {
    return send(call, error_response(503, "the model is still being loaded; try again"));
  }
  send_json(call, "{\"ready\":true}\n");
}

void Service::get_metrics(const CallPtr& call) {
  send(call, {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics()});
}

void Service::get_openapi(const CallPtr& call) {
  send_json(call, std::string(find_web_file("openapi.json")->bytes));
}

void Service::get_page(const CallPtr& call) {
  const std::string name = call->names.empty() ? "index.html" : call->names[0];
  const WebFile* file = find_web_file(name);
  if (file == nullptr) fail(ErrorCode::not_found, "there is no file {}", io::quoted(name));
  send(call, page(name, file->bytes, options_.report_sources));
}

void Service::get_status(const CallPtr& call) { send_json(call, status_json()); }

std::string Service::status_json() const {
  const Telemetry::Gauges now = gauges();
  const Telemetry::Latency latency = telemetry_.latency();
  io::JsonWriter json;
  json.begin_object();
  json.field("status", now.active.engine ? "ok" : "loading").field("version", version());
  json.field("uptime_seconds", now.uptime_seconds);
  if (now.active.engine) {
    json.field("mode", name_of(now.active.engine->options().mode));
    json.field("replans", now.active.replans());
    json.key("engine");
    io::write_engine(json, now.active.block(options_.limits.seed));
  }
  json.key("queue").begin_object();
  json.field("depth", static_cast<std::uint64_t>(now.queue_depth))
      .field("capacity", static_cast<std::uint64_t>(options_.scheduler.max_queued))
      .end_object();
  json.field("connections", static_cast<std::uint64_t>(now.connections))
      .field("sessions", static_cast<std::uint64_t>(now.sessions))
      .field("forecasts", telemetry_.num_forecasts())
      .field("errors", telemetry_.num_errors())
      .field("memory_bytes", resident_bytes())
      .field("log_lines_lost", now.log_lines_lost);
  json.key("latency_ms").begin_object();
  json.field("p50", 1e3 * latency.p50).field("p95", 1e3 * latency.p95);
  json.field("p99", 1e3 * latency.p99).field("count", latency.count).end_object();
  const ShadowState& shadow = now.shadow;
  json.key("shadow").begin_object();
  json.field("enabled", shadow.enabled).field("rate", shadow.rate).field("bound", shadow.bound);
  json.field("checked", shadow.checked).field("dropped", shadow.dropped);
  json.field("exceeded", shadow.exceeded).field("last_deviation", shadow.last_deviation);
  json.field("worst_deviation", shadow.worst_deviation);
  json.field("auto_rollback", options_.auto_rollback).field("rolled_back", shadow.rolled_back);
  json.end_object().end_object();
  return json.take();
}

void Service::post_mode(const CallPtr& call) {
  if (options_.access.api_key.empty()) {
    return send(call, error_response(403,
                                     "modes can be switched only with an API key; start the "
                                     "server with --api-key or --api-key-file"));
  }
  run(call, [this, call] {
    const Json body = io::parse_json(call->request.body, "the request");
    Fields fields(body, "");
    const Mode mode = parse_mode(text_of(fields.need("mode"), "mode"));
    fields.finish();
    scheduler_->switch_mode(mode, [this, call, mode](std::optional<Error> error) {
      if (error) return send_error(call, *error);
      shadow_->engine_switched(false);
      event(fmt::format("switched to {} mode by an operator", name_of(mode)));
      send_json(call, one_field("mode", name_of(mode)));
    });
  });
}

// --------------------------------------------------------------------------------------- forecasts

void Service::post_v1_forecast(const CallPtr& call) { forecast_json(call, plan_v1); }
void Service::post_series(const CallPtr& call) {
  run(call, [this, call] {
    const Json body = io::parse_json(call->request.body, "the request");
    call->request.body = {};
    send_json(call, series_json(body, options_.limits));
  });
}
void Service::post_invocations(const CallPtr& call) { forecast_json(call, plan_chronos); }
void Service::post_nixtla_forecast(const CallPtr& call) {
  forecast_json(call, plan_nixtla_forecast);
}
void Service::post_cross_validation(const CallPtr& call) {
  forecast_json(call, plan_nixtla_cross_validation);
}
void Service::post_anomaly_detection(const CallPtr& call) {
  forecast_json(call, plan_nixtla_anomaly_detection);
}

void Service::get_model_params(const CallPtr& call) {
  send_json(call, nixtla_model_params(limits(*call).patch_size));
}

void Service::get_validate_api_key(const CallPtr& call) {
  send_json(call, nixtla_detail(options_.access.api_key.empty() ? "no API key is needed"
                                                                : "the API key is right"));
}

// ------------------------------------------------------------------------- Open Inference Protocol

void Service::check_model_name(const Call& call) const {
  if (call.names[0] != options_.model) {
    fail(ErrorCode::not_found, "there is no model {}, expected {}", io::quoted(call.names[0]),
         options_.model);
  }
  if (call.names.size() > 1 && call.names[1] != "1") {
    fail(ErrorCode::not_found, "there is no version {} of {}, expected 1",
         io::quoted(call.names[1]), options_.model);
  }
}

void Service::get_server(const CallPtr& call) { send_json(call, oip_server_metadata()); }

void Service::get_model(const CallPtr& call) {
  check_model_name(*call);
  send_json(call, oip_model_metadata(options_.model));
}

void Service::get_model_ready(const CallPtr& call) {
  check_model_name(*call);
  send_json(call, "{\"ready\":true}\n");
}

void Service::post_infer(const CallPtr& call) {
  check_model_name(*call);
  run(call, [this, call] {
    Plan plan = plan_oip(call->request.body, call->request.header(kTensorHeaderLength),
                         options_.model, limits(*call));
    call->request.body = {};
    forecast(call, std::move(plan));
  });
}

// ---------------------------------------------------------------------------------------- sessions

void Service::post_session(const CallPtr& call) {
  run(call, [this, call] {
    const Json body = io::parse_json(call->request.body, "the request");
    const auto session = sessions_.open(read_session(body, limits(*call)));
    call->opened = session->id;
    try {
      answer_session(call, session, {}, std::nullopt, false);
    } catch (...) {
      sessions_.forget(call->opened);
      throw;
    }
  });
}

void Service::post_append(const CallPtr& call) {
  run(call, [this, call] {
    const auto session = sessions_.find(call->names[0]);
    const Json body = io::parse_json(call->request.body, "the request");
    Fields fields(body, "");
    std::vector<float> points = read_points(fields.need("values"), session->targets.size());
    const SeriesShape added{.num_variates = session->targets.size(),
                            .length = points.size() / session->targets.size()};
    check_size(limits(*call), {&added, 1}, {.horizon = 1, .quantiles = {}});
    sessions_.reserve(session->id, sizeof(float) * points.size());
    std::optional<ForecastOptions> options;
    ForecastOptions wanted;
    wanted.seed = options_.limits.seed;
    take_options(fields, options_.limits, wanted);
    NewPoints added_points{.values = std::move(points)};
    if (const Json* end = fields.take("end")) added_points.end = text_of(*end, "end");
    fields.finish();
    if (added_points.end && added_points.values.empty()) {
      fail(ErrorCode::invalid_argument, "end is given without values, expected both");
    }
    if (body.find("horizon") != nullptr) options = wanted;
    answer_session(call, session, std::move(added_points), std::move(options),
                   body.find("point") != nullptr);
  });
}

void Service::post_session_forecast(const CallPtr& call) {
  run(call, [this, call] {
    const auto session = sessions_.find(call->names[0]);
    const Json body = io::parse_json(call->request.body, "the request");
    Fields fields(body, "");
    ForecastOptions options;
    options.seed = options_.limits.seed;
    take_options(fields, options_.limits, options);
    fields.finish();
    answer_session(call, session, {}, std::move(options), body.find("point") != nullptr);
  });
}

void Service::delete_session(const CallPtr& call) {
  sessions_.close(call->names[0]);
  send_json(call, one_field("closed", call->names[0]));
}

// On an engine's thread: append, then forecast if options say so. A session that cannot be opened,
// or whose name nobody is left to hear, is forgotten.
void Service::answer_session(const CallPtr& call, const std::shared_ptr<StreamSession>& session,
                             NewPoints points, std::optional<ForecastOptions> options,
                             bool reports_point) {
  if (options) {
    const SeriesShape shape{.num_variates = session->targets.size()};
    check_size(limits(*call), {&shape, 1}, *options);
    options->cancelled = [this, gone = call->gone, deadline = deadline_of(*call)] {
      return cancelled_ || gone->load() || Clock::now() >= deadline;
    };
  }
  const double length = static_cast<double>(session->length + points.values.size());
  if (options) {
    const double cost = cost_of(static_cast<double>(session->targets.size()), length, *options,
                                limits(*call).patch_size);
    if (pace_of(cost) == Pace::slow) session->is_slow = true;
  }
  struct Result {
    Answer answer = {};
    std::vector<io::InputSeries> targets = {};
    std::string body = {};
  };
  auto result = std::make_shared<Result>();
  const auto task = [this, session, result, options,
                     added = std::move(points)](const ActiveEngine& active) {
    const std::unique_lock turn(session->turn, std::try_to_lock);
    if (!turn) {
      fail(ErrorCode::overloaded, "the session is busy with a request that takes long; try again");
    }
    Session& stream = session->on(active, sessions_.limits());
    if (!added.values.empty()) {
      const std::size_t count = added.values.size() / session->targets.size();
      auto axes = session->axes_after(count, added.end);
      stream.append(added.values);
      session->advance(count, std::move(axes));
    }
    if (options) {
      Answer& answer = result->answer;
      answer.forecasts.push_back(stream.forecast(*options));
      answer.engine = active.block(options->seed);
      answer.timings = active.engine->timings();
      telemetry_.forecasts(1);
      telemetry_.batch(1);
      scheduler_->count_forecasts(active, 1);
      shadow_->offer(stream.series(), *options, answer.forecasts[0], active);
    }
    result->targets = session->targets;  // as they are now: later points move their times on
    const SessionStats stats = stream.stats();
    io::JsonWriter json(io::JsonLayout::compact);
    json.begin_object().field("session", session->id);
    json.field("length", static_cast<std::uint64_t>(session->length));
    json.field("kept", static_cast<std::uint64_t>(stream.series().length()));
    json.field("forecasts", stats.forecasts).field("patches_reused", stats.patches_reused);
    json.field("patches_computed", stats.patches_computed).end_object();
    result->body = json.take();
  };
  const auto done = [this, call, result, options, reports_point](std::optional<Error> error,
                                                                 const Answer&) {
    if (error || call->gone->load()) sessions_.forget(call->opened);
    light_.post([this, call, result, options, reports_point, error = std::move(error)] {
      guarded(call, [&] {
        if (error) throw *error;
        if (!options) return send_json(call, std::move(result->body));
        send(call, answer_v1({result->targets}, *options, reports_point, result->answer));
      });
    });
  };
  submit(task, session->is_slow ? Pace::slow : Pace::quick, call->gone, deadline_of(*call), done);
}

// ---------------------------------------------------------------------------------------- backtest

void Service::post_backtest(const CallPtr& call) {
  if (!options_.backtest) fail(ErrorCode::unsupported, "this server runs no backtests");
  run(call, [this, call] {
    auto body = std::make_shared<Json>(io::parse_json(call->request.body, "the request"));
    call->request.body = {};
    if (num_backtests_.fetch_add(1) >= kMaxBacktests) {
      --num_backtests_;
      fail(ErrorCode::overloaded, "{} backtests are running or waiting already; try again later",
           kMaxBacktests);
    }
    backtests_.post([this, call, body] {
      guarded(call, [&] {
        const BacktestFiles files = run_backtest(*call, *body);
        const std::string id = fmt::format("{}", Clock::now().time_since_epoch().count());
        Response response{.body = files.results_json,
                          .headers = {{"Location", fmt::format("/v1/backtest/{}/report", id)}}};
        {
          const std::lock_guard lock(reports_mutex_);
          reports_.emplace_back(id, files.report_html);
          if (reports_.size() > kMaxReports) reports_.pop_front();
        }
        send(call, std::move(response));
      });
      --num_backtests_;
    });
  });
}

// On an engine of its own, which gives way to requests that somebody waits for. Its results are of
// one mode: a switch ends it.
BacktestFiles Service::run_backtest(const Call& call, const Json& body) {
  lower_priority(kSlowPriority);
  ActiveEngine active = scheduler_->active();
  active.engine = std::make_shared<const Engine>(active.engine->twin());
  const auto switched = [&] { return scheduler_->active().number != active.number; };
  try {
    BacktestFiles files = options_.backtest(
        body, active, [&] { return cancelled_ || call.gone->load() || switched(); });
    telemetry_.forecasts(files.num_forecasts);
    return files;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || !switched()) throw;
    fail(ErrorCode::overloaded,
         "the server's mode was switched during this backtest; run it again");
  }
}

void Service::get_backtest_report(const CallPtr& call) {
  const std::lock_guard lock(reports_mutex_);
  for (const auto& [id, html] : reports_) {
    if (id == call->names[0]) return send(call, page("report.html", html, options_.report_sources));
  }
  fail(ErrorCode::not_found, "there is no report {}; the last {} are kept",
       io::quoted(call->names[0]), kMaxReports);
}

}  // namespace toto::server
