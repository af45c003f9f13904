#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "body_reader.h"
#include "handlers.h"
#include "request_fields.h"
#include "service_state.h"

namespace toto::server {
namespace {

Telemetry::Gauges gauges(const ServiceState& service) {
  const HttpServer* const http = service.http;
  const auto& events_lost = service.options.num_events_lost;
  return {.queue_depth = service.scheduler->depth(),
          .connections = http == nullptr ? 0 : http->num_connections(),
          .sessions = service.sessions.size(),
          .active = service.scheduler->active(),
          .shadow = service.shadow->state(),
          .log_lines_lost = service.log.num_lost() + (events_lost ? events_lost() : 0),
          .uptime_seconds = std::chrono::duration<double>(Clock::now() - service.started).count()};
}

std::string status_json(const ServiceState& service) {
  const Telemetry::Gauges now = gauges(service);
  const Telemetry::ForecastLatency latency = service.telemetry.latency();
  io::JsonWriter json;
  json.begin_object();
  json.field("status", now.active.engine ? "ok" : "loading").field("version", version());
  json.field("uptime_seconds", now.uptime_seconds);
  if (now.active.engine) {
    json.field("mode", name_of(now.active.engine->options().mode));
    json.field("replans", now.active.replans());
    json.key("engine");
    tables::write_engine(json, now.active.block(service.options.limits.seed));
  }
  json.key("queue").begin_object();
  json.field("depth", static_cast<std::uint64_t>(now.queue_depth))
      .field("capacity", static_cast<std::uint64_t>(service.options.scheduler.max_queued))
      .end_object();
  json.field("connections", static_cast<std::uint64_t>(now.connections))
      .field("sessions", static_cast<std::uint64_t>(now.sessions))
      .field("forecasts", service.telemetry.num_forecasts())
      .field("errors", service.telemetry.num_errors())
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
  json.field("auto_rollback", service.options.auto_rollback)
      .field("rolled_back", shadow.rolled_back);
  json.end_object();
  write_texts(json, "warnings",
              now.active.engine ? now.active.model_warnings() : std::vector<std::string>());
  json.end_object();
  return json.take();
}

}  // namespace

void get_health(const HttpCallPtr& call) {
  const bool ready = call->service.scheduler->ready();
  call->send(
      {.status = ready ? 200 : 503, .body = one_field_json("status", ready ? "ok" : "loading")});
}

void get_live(const HttpCallPtr& call) { call->send_json("{\"live\":true}\n"); }

void get_ready(const HttpCallPtr& call) {
  if (!call->service.scheduler->ready()) return call->send(loading_response());
  call->send_json("{\"ready\":true}\n");
}

std::string metrics_text(const ServiceState& service) {
  return service.telemetry.prometheus(gauges(service));
}

void get_metrics(const HttpCallPtr& call) {
  call->send({.content_type = "text/plain; version=0.0.4; charset=utf-8",
              .body = metrics_text(call->service)});
}

void get_openapi(const HttpCallPtr& call) {
  call->send_json(std::string(find_file(web_files(), "openapi.json")->bytes));
}

void get_page(const HttpCallPtr& call) {
  const std::string name = call->path_values.empty() ? "index.html" : call->path_values[0];
  const EmbeddedFile* file = find_file(web_files(), name);
  if (file == nullptr) fail(ErrorCode::not_found, "there is no file {}", quoted(name));
  call->send(page(name, file->bytes, call->service.options.report_sources));
}

void get_status(const HttpCallPtr& call) { call->send_json(status_json(call->service)); }

void post_mode(const HttpCallPtr& call) {
  if (call->service.options.access.api_key.empty()) {
    return call->send(error_response(403,
                                     "modes can be switched only with an API key; start the "
                                     "server with --api-key or --api-key-file"));
  }
  read_body(call, [call]() -> std::size_t {
    const io::Json body = io::parse_json(call->request.body, "the request");
    Fields fields(body, "");
    const Mode mode = parse_mode(text_of(fields.need("mode"), "mode"));
    fields.finish();
    call->service.scheduler->switch_mode(mode, [call, mode](std::optional<Error> error) {
      if (error) return call->send_error(*error);
      call->service.shadow->engine_switched(false);
      call->service.event(fmt::format("switched to {} mode by an operator", name_of(mode)));
      call->send_json(our_json("mode", name_of(mode)));
    });
    return 0;
  });
}

}  // namespace toto::server
