// The state that all handlers share. Thread safe as a whole: each member is, or never changes.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "access.h"
#include "access_log.h"
#include "http.h"
#include "prepared_request.h"
#include "scheduler.h"
#include "session_store.h"
#include "shadow.h"
#include "telemetry.h"
#include "web.h"
#include "workers.h"

namespace toto::server {

struct BacktestFiles {
  std::string results_json = {};
  std::string report_html = {};
  std::size_t num_forecasts = 0;
};
// Runs the backtest that a request body describes: takes seconds, calls `cancelled` between steps.
using RunBacktest = std::function<BacktestFiles(const io::Json& body, const ActiveEngine& active,
                                                const std::function<bool()>& cancelled)>;
struct SignalAnswer {
  std::string json = {};
  std::size_t num_forecasts = 0;
};
// Decides about the coming bar; the same body.
using RunSignal = std::function<SignalAnswer(const io::Json& body, const ActiveEngine& active,
                                             const std::function<bool()>& cancelled)>;

struct ServiceOptions {
  std::string model = {};  // its name for clients
  Mode mode = Mode::standard;
  Scheduler::Load load = {};
  AccessRules access = {};
  RequestLimits limits = {};
  SchedulerOptions scheduler = {};
  SessionLimits sessions = {};
  ShadowOptions shadow = {};
  bool auto_rollback = false;
  std::chrono::milliseconds deadline{60'000};  // of a request
  std::string log = {};                        // a file of JSON lines, "-", or empty: no log
  bool trust_proxy = false;                    // log the client that a proxy names
  RunBacktest backtest = {};
  RunSignal signal = {};
  ReportSources report_sources = {};
  std::function<void(std::string_view)> on_event = {};  // sentences for the operator
  std::function<std::int64_t()> num_events_lost = {};   // that could not be written
  std::function<void(std::optional<Error>)> on_loaded = {};
};

// The reports of the latest backtests. Thread safe.
class BacktestReports {
 public:
  static constexpr std::size_t kMost = 16;
  static constexpr std::size_t kMaxBytes = 256'000'000;  // together; the oldest go first
  bool add(std::string id, std::string html);            // false: larger than that, not kept
  std::optional<std::string> find(std::string_view id) const;

 private:
  mutable std::mutex mutex_;
  std::list<std::pair<std::string, std::string>> reports_;  // id and page, newest last
  std::size_t bytes_ = 0;                                   // of all pages
};

struct ServiceState {
  explicit ServiceState(ServiceOptions wanted);
  void event(std::string_view sentence) const {
    if (options.on_event) options.on_event(sentence);
  }

  const ServiceOptions options;
  const Clock::time_point started = Clock::now();
  Telemetry telemetry;
  AccessLog log;
  SessionStore sessions;
  BacktestReports reports;
  std::atomic<int> num_backtests{0};        // running or waiting
  std::atomic<std::size_t> freed_bytes{0};  // since memory was last returned to the system
  std::atomic<const HttpServer*> http{nullptr};
  std::atomic<bool> cancelled{false};  // the service is stopping: all requests end with 503
  std::unique_ptr<Shadow> shadow;      // set by Service, before the first request
  std::unique_ptr<Scheduler> scheduler;
  // Threads that read requests: two for small bodies, which also write answers, one for large ones.
  Workers small_bodies, large_bodies, backtests;
};

}  // namespace toto::server
