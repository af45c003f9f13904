// Shadow verification: a fraction of the live forecasts is computed again in `reference` mode, at
// the lowest priority, and compared.
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
  double rate = 0;      // fraction of forecasts, 0 to 1; 0: off
  double bound = 1e-5;  // relative
  std::size_t max_waiting = 16;
};

// The relative deviation of two forecasts of one series: the mean absolute difference of means and
// quantiles, divided by their mean size plus the standard deviation of the last `max_context`
// points. The largest of all variates.
double deviation(const Series& series, const Forecast& live, const Forecast& reference,
                 int max_context);

// Callbacks into the service; all are called on the shadow's thread.
struct ShadowWork {
  std::function<Engine()> load = {};  // the reference engine
  // A forecast of the live engine, queued like a request: an engine has one caller at a time, and a
  // caller of the lowest priority would delay the others. Error(cancelled, overloaded) if it is
  // not available.
  std::function<Forecast(const Series& series, const ForecastOptions& options,
                         const ActiveEngine& active)>
      forecast = {};
  // Whether this engine is still in use; results of earlier engines are ignored.
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

  // Called on the engine thread: copies a chosen forecast, or drops it if too many wait.
  void offer(const Series& series, const ForecastOptions& options, const Forecast& live,
             const ActiveEngine& active);
  // Call after a switch: resets the deviations, which were those of the former engine.
  void engine_switched(bool rolled_back);
  ShadowState state() const;
  void cancel();  // the running comparison ends soon, no other begins
  void stop();    // cancels and waits for that

 private:
  struct ShadowCheck {
    Series series;
    ForecastOptions options;
    Forecast live;
    ActiveEngine active;
  };
  void run();
  double compare(const Engine& reference, const ShadowCheck& check) const;

  const ShadowOptions options_;
  const ShadowWork work_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<ShadowCheck> checks_;
  ShadowState state_;
  double share_ = 0;  // adds up the rate; a check is due at 1
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace toto::server
