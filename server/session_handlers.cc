#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "body_reader.h"
#include "handlers.h"
#include "protocol_v1.h"
#include "service_state.h"

namespace toto::server {
namespace {

using io::Json;

// One request to a session: append `values`, then forecast if `options` is set.
struct SessionRequest {
  std::vector<float> values = {};       // [variate][point], to append
  std::optional<std::string> end = {};  // time of the last point
  std::optional<V1Request> forecast = {};
  bool opens = false;  // an error closes the session: the client never learns its id
  std::shared_ptr<SessionStore::Reservation> room = {};  // for the values, until they are appended
};

struct SessionAnswer {
  ForecastAnswer forecast = {};
  std::vector<tables::InputSeries> targets = {};  // copies: later appends change their times
  std::string stats_json = {};                    // the answer without a forecast
  tables::SeriesRemarks remarks = {};
};

std::string stats_json(const StreamSession& session, const Session& stream) {
  const SessionStats stats = stream.stats();
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object().field("session", session.id);
  json.field("length", static_cast<std::uint64_t>(session.length));
  json.field("kept", static_cast<std::uint64_t>(stream.series().length()));
  json.field("forecasts", stats.forecasts).field("patches_reused", stats.patches_reused);
  json.field("patches_computed", stats.patches_computed);
  write_texts(json, "warnings", {});
  return json.end_object().take();
}

// On an engine thread; returns the number of forecasts made.
std::int64_t run_session(ServiceState& service, StreamSession& session,
                         const SessionRequest& wanted, const ActiveEngine& active,
                         SessionAnswer& answer) {
  const std::unique_lock turn(session.turn, std::try_to_lock);
  if (!turn) {
    fail(ErrorCode::overloaded, "the session is busy with a slow request; try again");
  }
  Session& stream = session.on(active, service.sessions.limits());
  if (!wanted.values.empty()) {
    const std::size_t count = wanted.values.size() / session.targets.size();
    auto axes = session.axes_after(count, wanted.end);
    stream.append(wanted.values);
    session.advance(count, std::move(axes));
    service.sessions.set_history(session.id, sizeof(float) * stream.series().values.size());
    if (wanted.room) wanted.room->release();
  }
  if (wanted.forecast) {
    const ForecastOptions& options = wanted.forecast->options;
    const Forecast& forecast = answer.forecast.forecasts.emplace_back(stream.forecast(options));
    active.describe(options.seed, answer.forecast);
    answer.forecast.timings = active.engine->timings();
    const Series& history = stream.series();
    answer.remarks = tables::SeriesRemarks(options, wanted.forecast->context_given);
    for (std::size_t v = 0; v < session.targets.size(); ++v) {
      answer.remarks.add(session.targets[v].id,
                         std::span(history.values).subspan(v * history.length(), history.length()));
    }
    service.telemetry.forecasts(1);
    service.telemetry.batch(1);
    service.shadow->offer(stream.series(), options, forecast, active);
  }
  answer.targets = session.targets;
  answer.stats_json = stats_json(session, stream);
  return wanted.forecast ? 1 : 0;
}

// Queues the request in the session's lane; the answer is written by a worker.
void queue_session(const HttpCallPtr& call, const std::shared_ptr<StreamSession>& session,
                   SessionRequest wanted) {
  ServiceState& service = call->service;
  if (wanted.forecast) {
    ForecastOptions& options = wanted.forecast->options;
    const RequestLimits limits = call->limits();
    const SeriesShape shape{.num_variates = session->targets.size()};
    // A series without values is never too large for this thread.
    std::ignore = check_size(limits, {&shape, 1}, options);
    options.cancelled = [call] { return call->is_unwanted(); };
    const std::size_t appended = wanted.values.size() / shape.num_variates;
    const double length = static_cast<double>(session->length + appended);
    const double cost =
        forecast_cost(static_cast<double>(shape.num_variates), length, options, limits.facts);
    if (lane_for_cost(cost) == LaneKind::slow) session->is_slow = true;
  }
  auto answer = std::make_shared<SessionAnswer>();
  auto request = std::make_shared<const SessionRequest>(std::move(wanted));
  const auto task = [call, session, answer, request](const ActiveEngine& active) {
    return run_session(call->service, *session, *request, active, *answer);
  };
  const auto done = [call, session, answer, request](std::optional<Error> error,
                                                     const ForecastAnswer&) {
    if (request->opens && (error || call->gone->load())) call->service.sessions.forget(session->id);
    call->service.small_bodies.post([call, answer, request, error = std::move(error)] {
      call->guard([&] {
        if (error) return call->send_error(*error);
        if (!request->forecast) return call->send_json(std::move(answer->stats_json));
        call->send(
            answer_v1({answer->targets}, *request->forecast, answer->remarks, answer->forecast));
      });
    });
  };
  const LaneKind lane = session->is_slow ? LaneKind::slow : LaneKind::fast;
  service.scheduler->submit(task, lane, call->gone, call->deadline(), done);
}

}  // namespace

void post_session(const HttpCallPtr& call) {
  read_body(call, [call]() -> std::size_t {
    const Json body = io::parse_json(call->request.body, "the request");
    const auto session = std::make_shared<StreamSession>();
    if (const std::size_t too_large = read_session(body, call->limits(), *session)) {
      return too_large;
    }
    call->service.sessions.open(session);
    try {
      queue_session(call, session, {.opens = true});
    } catch (...) {
      call->service.sessions.forget(session->id);
      throw;
    }
    return 0;
  });
}

void post_append(const HttpCallPtr& call) {
  read_body(call, [call]() -> std::size_t {
    SessionStore& sessions = call->service.sessions;
    const RequestLimits& limits = call->service.options.limits;
    const auto session = sessions.find(call->path_values[0]);
    const Json body = io::parse_json(call->request.body, "the request");
    Fields fields(body, "");
    const std::size_t num_variates = session->targets.size();
    SessionRequest wanted{.values = read_points(fields.need("values"), num_variates)};
    const SeriesShape added{.num_variates = num_variates,
                            .length = wanted.values.size() / num_variates};
    if (const std::size_t too_large =
            check_size(call->limits(), {&added, 1}, {.horizon = 1, .quantiles = {}})) {
      return too_large;
    }
    V1Request forecast = read_request(fields, limits);
    if (const Json* end = fields.take("end")) wanted.end = text_of(*end, "end");
    fields.finish();
    if (wanted.end && wanted.values.empty()) {
      fail(ErrorCode::invalid_argument, "end is given without values, expected both");
    }
    if (body.find("horizon") != nullptr) wanted.forecast = std::move(forecast);
    // Last: a request that is refused above has reserved nothing.
    wanted.room = std::make_shared<SessionStore::Reservation>(
        sessions.reserve(session->id, sizeof(float) * wanted.values.size()));
    queue_session(call, session, std::move(wanted));
    return 0;
  });
}

void post_session_forecast(const HttpCallPtr& call) {
  read_body(call, [call]() -> std::size_t {
    const RequestLimits& limits = call->service.options.limits;
    const auto session = call->service.sessions.find(call->path_values[0]);
    const Json body = io::parse_json(call->request.body, "the request");
    Fields fields(body, "");
    V1Request forecast = read_request(fields, limits);
    fields.finish();
    queue_session(call, session, {.forecast = std::move(forecast)});
    return 0;
  });
}

void delete_session(const HttpCallPtr& call) {
  call->service.sessions.close(call->path_values[0]);
  call->send_json(our_json("closed", call->path_values[0]));
}

}  // namespace toto::server
