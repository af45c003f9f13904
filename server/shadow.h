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
// over the steps, relative to their size and to how much the series varies.
double deviation(const Series& series, const Forecast& live, const Forecast& reference);

class Shadow {
 public:
  // `load` makes the engine compared with, on the shadow's own thread. `exceeded` is called there.
  Shadow(const ShadowOptions& options, std::function<Engine()> load,
         std::function<void(double deviation, const std::string& id)> exceeded);
  ~Shadow() { stop(); }
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // From the engine thread: copies what is chosen, drops it if too much waits already.
  void offer(const Series& series, const ForecastOptions& options, const Forecast& live,
             const ActiveEngine& active);
  void note_rollback(bool rolled_back);
  ShadowState state() const;
  void stop() { stop_within(std::chrono::hours(1)); }
  // False if a comparison, which cannot be interrupted at any moment, still runs after this time.
  bool stop_within(std::chrono::milliseconds time);

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
  const std::function<Engine()> load_;
  const std::function<void(double, const std::string&)> exceeded_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Check> checks_;
  ShadowState state_;
  double share_ = 0;  // of the next check, owed so far
  std::atomic<bool> stopped_{false};
  bool ended_ = false;
  std::condition_variable end_;
  std::thread thread_;
};

}  // namespace toto::server
