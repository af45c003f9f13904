// The handlers of all routes (router.cc lists them), by the file that defines them. A handler runs
// on the I/O thread and must not block; errors it throws are answered.
#pragma once

#include <string>

#include "http_call.h"
#include "io/json.h"

namespace toto::server {

// status_handlers.cc: health, metrics, documents, the page, status and mode.
void get_health(const HttpCallPtr& call);
void get_live(const HttpCallPtr& call);
void get_ready(const HttpCallPtr& call);
void get_metrics(const HttpCallPtr& call);
void get_openapi(const HttpCallPtr& call);
void get_page(const HttpCallPtr& call);
void get_status(const HttpCallPtr& call);
void post_mode(const HttpCallPtr& call);
std::string metrics_text(const ServiceState& service);

// forecast_handlers.cc: every protocol that forecasts, and reading a CSV file. Both run `prepare`
// on the thread for the body's size.
using PrepareJson = PreparedRequest (*)(const io::Json& body, const RequestLimits& limits);
void forecast_json(const HttpCallPtr& call, PrepareJson prepare);
template <PrepareJson prepare>
void post_forecast(const HttpCallPtr& call) {
  forecast_json(call, prepare);
}
void post_series(const HttpCallPtr& call);
void get_model_params(const HttpCallPtr& call);
void get_validate_api_key(const HttpCallPtr& call);
void get_oip_server(const HttpCallPtr& call);
void get_oip_model(const HttpCallPtr& call);
void get_oip_model_ready(const HttpCallPtr& call);
void post_oip_infer(const HttpCallPtr& call);

// session_handlers.cc: streaming sessions.
void post_session(const HttpCallPtr& call);
void post_append(const HttpCallPtr& call);
void post_session_forecast(const HttpCallPtr& call);
void delete_session(const HttpCallPtr& call);

// backtest_handlers.cc
void post_backtest(const HttpCallPtr& call);
void get_backtest_report(const HttpCallPtr& call);
void post_signal(const HttpCallPtr& call);

}  // namespace toto::server
