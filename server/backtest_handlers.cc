#include <algorithm>
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
// from one mode: a switch ends the backtest.
BacktestFiles run_backtest(const HttpCall& call, const io::Json& body) {
  ServiceState& service = call.service;
  lower_priority(kSlowPriority);
  ActiveEngine active = service.scheduler->active();
  active.engine = std::make_shared<const Engine>(active.engine->twin());
  const auto switched = [&] { return service.scheduler->active().number != active.number; };
  try {
    BacktestFiles files = service.options.backtest(
        body, active, [&] { return service.cancelled || call.gone->load() || switched(); });
    service.telemetry.forecasts(files.num_forecasts);
    return files;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || !switched()) throw;
    fail(ErrorCode::overloaded,
         "the server's mode was switched during this backtest; run it again");
  }
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
  read_body(call, [call]() -> std::size_t {
    auto body = std::make_shared<io::Json>(io::parse_json(call->request.body, "the request"));
    call->request.body = {};
    ServiceState& service = call->service;
    if (service.num_backtests.fetch_add(1) >= kMaxBacktests) {
      --service.num_backtests;
      fail(ErrorCode::overloaded, "{} backtests are running or waiting already; try again later",
           kMaxBacktests);
    }
    service.backtests.post([call, body] {
      call->guard([&] {
        BacktestFiles files = run_backtest(*call, *body);
        const std::string id = random_id();
        HttpResponse response{.body = std::move(files.results_json)};
        if (call->service.reports.add(id, std::move(files.report_html))) {
          response.headers.push_back({"Location", fmt::format("/v1/backtest/{}/report", id)});
        }
        call->send(std::move(response));
      });
      --call->service.num_backtests;
    });
    return 0;
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
