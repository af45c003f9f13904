#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "body_reader.h"
#include "handlers.h"
#include "protocol_nixtla.h"
#include "protocol_oip.h"
#include "protocol_series.h"
#include "service_state.h"

namespace toto::server {
namespace {

using io::Json;

// Queues the request; the engine thread hands the answer to a worker, which writes it.
void queue_forecast(const HttpCallPtr& call, PreparedRequest prepared) {
  const auto longest = call->service.options.deadline;
  const auto time = std::min(prepared.timeout.value_or(longest), longest);
  std::size_t bytes = 0;
  for (const Series& series : prepared.series) bytes += sizeof(float) * series.values.size();
  QueuedForecast queued{.series = std::move(prepared.series),
                        .options = std::move(prepared.options),
                        .gone = call->gone,
                        .deadline = call->request.received + time,
                        .done = {}};
  queued.done = [call, bytes, write = std::move(prepared.write_answer)](std::optional<Error> error,
                                                                        ForecastAnswer answer) {
    auto result = std::make_shared<ForecastAnswer>(std::move(answer));
    call->service.small_bodies.post([call, bytes, write, error = std::move(error), result] {
      call->guard([&] { error ? call->send_error(*error) : call->send(write(*result)); });
      *result = {};
      count_freed(call->service, bytes);
    });
  };
  call->service.scheduler->submit(std::move(queued));
}

// `prepare` turns the body into a PreparedRequest.
template <typename Prepare>
void forecast_body(const HttpCallPtr& call, const Prepare& prepare) {
  read_body(call, [call, prepare]() -> std::size_t {
    PreparedRequest prepared = prepare(*call);
    if (prepared.bytes_too_large_here > 0) return prepared.bytes_too_large_here;
    call->request.body = {};
    queue_forecast(call, std::move(prepared));
    return 0;
  });
}

void check_model_name(const HttpCall& call) {
  const std::string& model = call.service.options.model;
  const std::vector<std::string>& values = call.path_values;
  if (values[0] != model) {
    fail(ErrorCode::not_found, "there is no model {}, expected {}", quoted(values[0]), model);
  }
  if (values.size() > 1 && values[1] != "1") {
    fail(ErrorCode::not_found, "there is no version {} of {}, expected 1", quoted(values[1]),
         model);
  }
}

}  // namespace

void forecast_json(const HttpCallPtr& call, PrepareJson prepare) {
  forecast_body(call, [prepare](const HttpCall& read) {
    return prepare(io::parse_json(read.request.body, "the request"), read.limits());
  });
}

void post_series(const HttpCallPtr& call) {
  read_body(call, [call]() -> std::size_t {
    const Json body = io::parse_json(call->request.body, "the request");
    call->request.body = {};
    call->send_json(series_json(body, call->service.options.limits));
    return 0;
  });
}

void get_model_params(const HttpCallPtr& call) {
  call->send_json(nixtla_model_params(call->limits().facts));
}

void get_validate_api_key(const HttpCallPtr& call) {
  const bool open = call->service.options.access.api_key.empty();
  call->send_json(one_field_json("detail", open ? "no API key is needed" : "the API key is right"));
}

void get_oip_server(const HttpCallPtr& call) { call->send_json(oip_server_metadata()); }

void get_oip_model(const HttpCallPtr& call) {
  check_model_name(*call);
  call->send_json(oip_model_metadata(call->service.options.model));
}

void get_oip_model_ready(const HttpCallPtr& call) {
  check_model_name(*call);
  call->send_json("{\"ready\":true}\n");
}

void post_oip_infer(const HttpCallPtr& call) {
  check_model_name(*call);
  forecast_body(call, [](const HttpCall& read) {
    return prepare_oip(read.request.body, read.request.header(kTensorHeaderLength),
                       read.service.options.model, read.limits());
  });
}

}  // namespace toto::server
