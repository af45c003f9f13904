// Shadow verification: a share of live forecasts is computed again in `reference` mode, at low
// priority, and compared.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "telemetry.h"
#include "toto/toto.h"

namespace toto::server {

struct ShadowOptions {
  double rate = 0;      // of forecasts, 0 to 1; 0: none
  double bound = 1e-5;  // relative
  std::size_t max_waiting = 16;
};

// How far two answers to the same question are apart: the mean difference of means and quantiles
// over the steps, relative to their size and to how much the series varies. Of several variates the
// worst, each by its own measure, and only by the points a forecast sees, the last `max_context`.
double deviation(const Series& series, const Forecast& live, const Forecast& reference,
                 int max_context);

// What the shadow needs from the service; all of it is called on the shadow's own thread.
struct ShadowWork {
  std::function<Engine()> load = {};  // the engine compared with
  // A forecast of the live engine, made in its turn: an engine has one caller at a time, and one of
  // the lowest priority would hold up the others. Error(cancelled, overloaded) if it is not to be
  // had.
  std::function<Forecast(const Series& series, const ForecastOptions& options,
                         const ActiveEngine& active)>
      forecast = {};
  // Whether this engine still answers: what another one said is of no interest any more.
  std::function<bool(const ActiveEngine& active)> is_current = {};
  std::function<void(double deviation, const std::string& id, const ActiveEngine& active)>
      exceeded = {};
};

class Shadow {
 public:
  Shadow(const ShadowOptions& options, ShadowWork work);
  ~Shadow() { stop(); }
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // From the engine thread: copies what is chosen, drops it if too much waits already.
  void offer(const Series& series, const ForecastOptions& options, const Forecast& live,
             const ActiveEngine& active);
  // Another engine answers now: what is known of the former one says nothing about it.
  void engine_switched(bool rolled_back);
  ShadowState state() const;
  void cancel();  // the comparison at hand ends soon, none begins
  void stop();    // cancels and waits for that

 private:
  struct Check {
    Series series;
    ForecastOptions options;
    Forecast live;
    ActiveEngine active;
  };
  void run();
  double compare(const Engine& reference, const Check& check) const;

  const ShadowOptions options_;
  const ShadowWork work_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Check> checks_;
  ShadowState state_;
  double share_ = 0;  // of the next check, owed so far
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace toto::server
