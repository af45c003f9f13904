// `toto serve`: the HTTP service, from the first request, which may arrive before the model is
// loaded, to the last answer after SIGTERM.
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/serve/serve_backtest.h"
#include "cli/serve/serve_request.h"
#include "report/page.h"
#include "server/line_output.h"

namespace toto::cli {
namespace {

using std::chrono::milliseconds;

// Together less than the 10 s within which a service manager expects us to end.
constexpr milliseconds kDrain{7'500};
constexpr milliseconds kCancel{1'000};
constexpr milliseconds kEnd{1'000};

// Signals are waited for, not handled: blocked before any thread starts, so that all inherit it.
class Signals {
 public:
  Signals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  // The signal that came; 0 if none did.
  int wait(milliseconds time) const {
    const timespec limit{.tv_sec = time.count() / 1000, .tv_nsec = time.count() % 1000 * 1'000'000};
    return std::max(sigtimedwait(&signals_, nullptr, &limit), 0);
  }

 private:
  sigset_t signals_;
};

// How loading went, told by the engine thread.
class LoadResult {
 public:
  void set(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }
  std::optional<Error> error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

// Lines of the service on stderr. They are written by the threads that answer requests, which never
// wait for a reader.
class EventLines {
 public:
  void say(std::string_view sentence) {
    if (!server::LineOutput::standard_error().write(one_line(sentence) + "\n")) ++num_lost_;
  }
  void warn(std::string_view sentence) { say(fmt::format("warning: {}", sentence)); }
  std::int64_t num_lost() const { return num_lost_; }

 private:
  std::atomic<std::int64_t> num_lost_{0};
};

// OIP clients put it into a path.
std::string client_name(const std::string& name) { return name.substr(name.rfind('/') + 1); }

// Raises the limit of open files, which shells set low: every connection takes a descriptor, and
// the limit of connections should be reached first.
void allow_files(std::size_t num_connections) {
  constexpr std::size_t kOwn = 64;  // the model, the log, what threads need
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = num_connections + kOwn;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted) {
    print_warning(
        fmt::format("the system allows {} open files, fewer than {} connections need; raise the "
                    "limit (ulimit -n) or lower --max-connections",
                    limit.rlim_cur, num_connections));
  }
}

// On SIGHUP, after a log rotation has moved the file away.
void reopen_log(server::Service& service, EventLines& events) {
  try {
    service.reopen_log();
    events.say("the log was opened again");
  } catch (const Error& error) {
    events.warn(error.what());
  }
}

int serve(const Flags& flags) {
  ServeRequest request = make_serve_request(flags);
  allow_files(request.http.max_connections);
  print_warnings(request.settings.warnings);
  if (!request.service.access.loopback && request.service.access.api_key.empty()) {
    print_warning(fmt::format(
        "{} is reachable from the network without an API key; anyone can send requests; use "
        "--api-key-file, or a proxy that asks for a key",
        request.http.host));
  }
  const LocatedModel model = locate_model(request.settings.model);
  const Signals signals;
  LoadResult loaded;
  server::ServiceOptions& options = request.service;
  options.model = client_name(model.name);
  options.scheduler.model_name = model.name;
  options.load = [&](Mode mode) {
    EngineOptions engine = request.settings.engine;
    engine.mode = mode;
    // The plain form knows neither packed weights nor fewer bits.
    if (mode == Mode::reference && engine.dtype != DType::f64) engine.dtype = DType::f32;
    if (mode != Mode::reference) engine.use_kv_cache = true;
    return Engine::load(model.folder, engine);
  };
  EventLines events;
  if (request.settings.engine.on_plan) {
    request.settings.engine.on_plan = [&](std::string_view sentence) {
      events.say(fmt::format("[plans] {}", sentence));
    };
  }
  options.on_event = [&](std::string_view sentence) { events.warn(sentence); };
  options.num_events_lost = [&] { return events.num_lost(); };
  // A flag is part of the service; a variable or a line of toto.conf must not change a backtest.
  const Settings& settings = request.settings;
  const std::uint64_t backtest_seed =
      settings.origin("seed") == "--seed" ? settings.seed : ForecastOptions().seed;
  options.backtest = [=](const io::Json& body, const server::ActiveEngine& active,
                         const std::function<bool()>& cancelled) {
    return serve_backtest(body, active, backtest_seed, cancelled);
  };
  options.signal = [=](const io::Json& body, const server::ActiveEngine& active,
                       const std::function<bool()>& cancelled) {
    return serve_signal(body, active, backtest_seed, cancelled);
  };
  options.report_sources = {report::page_script_hash(), report::page_style_hash()};
  std::optional<server::Service> service;
  const bool tls = !request.http.tls_cert.empty();
  options.on_loaded = [&](std::optional<Error> error) {
    if (!error) events.say(fmt::format("ready: {}", model.name));
    loaded.set(std::move(error));
  };
  service.emplace(options);
  server::HttpServer http(request.http, *service);
  service->watch(http);
  const std::string& host = request.http.host;
  events.say(fmt::format("listening on {}://{}:{}", tls ? "https" : "http",
                         host.find(':') == host.npos ? host : "[" + host + "]", http.port()));
  while (!loaded.error()) {
    const int signal = signals.wait(milliseconds(100));
    if (signal != 0 && signal != SIGHUP) break;
    if (signal == SIGHUP) reopen_log(*service, events);
  }
  const std::optional<Error> failure = loaded.error();
  if (!failure) events.say("stopping: no new work; accepted work has 7 seconds");
  http.drain();
  if (!http.wait(kDrain)) {
    service->cancel_all();
    http.wait(kCancel);
  }
  service->cancel_all();
  // Before the connections that wait for its answers are gone. Loading a model cannot be
  // interrupted; when time is up, every request has been answered and no file is half written.
  auto stopped = std::async(std::launch::async, [&] { service->stop(); });
  if (!failure && stopped.wait_for(kEnd) != std::future_status::ready) {
    print_line("stopping: work that could not be interrupted is abandoned");
    std::_Exit(0);
  }
  if (failure) throw Error(*failure);
  return 0;
}

}  // namespace

void add_serve(Arguments& arguments) {
  const auto flags = std::make_shared<Flags>();
  Command command = arguments.add_command("serve", "HTTP service for many clients, and a web page",
                                          "toto serve --port 8080");
  add_serve_options(command, *flags);
  command.run([flags] { return serve(*flags); });
}

}  // namespace toto::cli
