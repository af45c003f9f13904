#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "body_reader.h"
#include "handlers.h"
#include "random_id.h"
#include "service_state.h"

namespace toto::server {
namespace {

constexpr int kMaxBacktests = 4;  // running and waiting

// Runs on an engine twin at low priority, so that it does not delay requests. All results must come
// from one mode: a switch ends the job.
template <typename Run>
auto run_on_twin(const HttpCall& call, const io::Json& body, const Run& run) {
  ServiceState& service = call.service;
  lower_priority(kSlowPriority);
  ActiveEngine active = service.scheduler->active();
  active.engine = std::make_shared<const Engine>(active.engine->twin());
  const auto switched = [&] { return service.scheduler->active().number != active.number; };
  try {
    auto answer =
        run(body, active, [&] { return service.cancelled || call.gone->load() || switched(); });
    service.telemetry.forecasts(answer.num_forecasts);
    return answer;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || !switched()) throw;
    fail(ErrorCode::overloaded,
         "the server's mode was switched during this backtest; run it again");
  }
}

// Calls `job` with the body of the request on the thread of backtests.
void post_job(const HttpCallPtr& call, const std::function<void(const io::Json& body)>& job) {
  read_body(call, [call, job]() -> std::size_t {
    auto body = std::make_shared<io::Json>(io::parse_json(call->request.body, "the request"));
    call->request.body = {};
    ServiceState& service = call->service;
    if (service.num_backtests.fetch_add(1) >= kMaxBacktests) {
      --service.num_backtests;
      fail(ErrorCode::overloaded,
           "{} backtests and signals are running or waiting already; try again later",
           kMaxBacktests);
    }
    service.backtests.post([call, body, job] {
      call->guard([&] { job(*body); });
      --call->service.num_backtests;
    });
    return 0;
  });
}

}  // namespace

bool BacktestReports::add(std::string id, std::string html) {
  if (html.size() > kMaxBytes) return false;
  std::list<std::pair<std::string, std::string>> dropped;  // freed after the lock
  const std::lock_guard lock(mutex_);
  bytes_ += html.size();
  reports_.emplace_back(std::move(id), std::move(html));
  while (reports_.size() > kMost || bytes_ > kMaxBytes) {
    bytes_ -= reports_.front().second.size();
    dropped.splice(dropped.end(), reports_, reports_.begin());
  }
  return true;
}

std::optional<std::string> BacktestReports::find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(reports_.begin(), reports_.end(),
                                  [&](const auto& report) { return report.first == id; });
  if (found == reports_.end()) return std::nullopt;
  return found->second;
}

void post_backtest(const HttpCallPtr& call) {
  if (!call->service.options.backtest) {
    fail(ErrorCode::unsupported, "this server does not run backtests");
  }
  post_job(call, [call](const io::Json& body) {
    BacktestFiles files = run_on_twin(*call, body, call->service.options.backtest);
    const std::string id = random_id();
    HttpResponse response{.body = std::move(files.results_json)};
    if (call->service.reports.add(id, std::move(files.report_html))) {
      response.headers.push_back({"Location", fmt::format("/v1/backtest/{}/report", id)});
    }
    call->send(std::move(response));
  });
}

void post_signal(const HttpCallPtr& call) {
  if (!call->service.options.signal) {
    fail(ErrorCode::unsupported, "this server does not make signals");
  }
  post_job(call, [call](const io::Json& body) {
    SignalAnswer answer = run_on_twin(*call, body, call->service.options.signal);
    call->send({.body = std::move(answer.json)});
  });
}

void get_backtest_report(const HttpCallPtr& call) {
  const std::string& id = call->path_values[0];
  const std::optional<std::string> html = call->service.reports.find(id);
  if (!html) {
    fail(ErrorCode::not_found, "there is no report {}; the last {} are kept, {} MB together",
         quoted(id), BacktestReports::kMost, BacktestReports::kMaxBytes / 1'000'000);
  }
  call->send(page("report.html", *html, call->service.options.report_sources));
}

}  // namespace toto::server
