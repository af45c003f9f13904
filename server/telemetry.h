// Metrics for operators: counters, latency histograms, and their Prometheus text.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "http_message.h"
#include "scheduler.h"

namespace toto::server {

// Durations in fixed buckets, and exact quantiles of the latest ones. Not thread safe.
class LatencyHistogram {
 public:
  static constexpr std::array<double, 14> kBounds = {
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};  // seconds
  void add(double seconds);
  double quantile(double level) const;  // of the last kRecent; 0 if there are none
  const std::array<std::uint64_t, kBounds.size() + 1>& counts() const { return counts_; }
  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  static constexpr std::size_t kRecent = 1024;
  std::array<std::uint64_t, kBounds.size() + 1> counts_ = {};
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::vector<float> recent_;
  std::size_t next_ = 0;
};

// The state of the comparison with `reference` mode, for metrics and status.
struct ShadowState {
  bool enabled = false;
  double rate = 0, bound = 0;
  std::int64_t checked = 0, dropped = 0, exceeded = 0;
  double last_deviation = 0, worst_deviation = 0;
  bool rolled_back = false;
};

// Recorded, never sent: the status of work cancelled because its client left.
inline constexpr int kClientLeft = 499;

// Thread safe.
class Telemetry {
 public:
  // Records an answer, and an error if the status is one. `forecasts`: the route makes forecasts.
  void request(std::string_view route, int status, double seconds, bool forecasts);
  void batch(std::size_t num_series);
  void queue_full() { ++queue_full_; }  // a request was refused
  void forecasts(std::size_t count) { forecasts_ += static_cast<std::int64_t>(count); }

  struct Gauges {
    std::size_t queue_depth = 0, connections = 0, sessions = 0;
    ActiveEngine active = {};
    ShadowState shadow = {};
    std::int64_t log_lines_lost = 0;
    double uptime_seconds = 0;
  };
  std::string prometheus(const Gauges& gauges) const;
  struct ForecastLatency {  // seconds
    double p50 = 0, p95 = 0, p99 = 0;
    std::uint64_t count = 0;
  };
  ForecastLatency latency() const;  // of all forecasting routes
  std::int64_t num_forecasts() const { return forecasts_; }
  std::int64_t num_errors() const;  // not counting clients that left

 private:
  mutable std::mutex mutex_;
  std::map<std::string, LatencyHistogram, std::less<>> routes_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  LatencyHistogram forecasting_;
  std::map<std::string, std::uint64_t, std::less<>> errors_;
  // Bucket limits, in series.
  static constexpr std::array<int, 7> kBatchBounds = {1, 2, 4, 8, 16, 32, 64};
  std::array<std::uint64_t, kBatchBounds.size() + 1> batches_ = {};
  std::uint64_t num_batches_ = 0, batch_sum_ = 0;
  std::atomic<std::int64_t> forecasts_{0}, queue_full_{0};
};

std::string_view kind_of(int status) noexcept;  // of an error
std::int64_t resident_bytes();                  // of this process; 0 if unknown

}  // namespace toto::server
