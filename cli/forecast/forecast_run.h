// Forecasts jobs in groups: large enough to keep every core busy, small enough that memory does not
// grow with the number of jobs.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "cli/forecast/forecast_jobs.h"
#include "cli/progress.h"
#include "toto/toto.h"

namespace toto::cli {

// An answer, right after it was computed and in the order of the jobs.
using TakeForecast = std::function<void(const ForecastJob& job, const Forecast& forecast)>;

class ForecastRun {
 public:
  // `num_jobs`: in all, for the progress bar. Everything must outlive this.
  ForecastRun(const ForecastRequest& request, const Engine& engine, std::size_t num_jobs,
              TakeForecast take);

  // Error(out_of_memory) before anything is computed if the answer of a group would not fit,
  // Error(cancelled) after an interrupt.
  void add(ForecastJob job);
  void finish();
  const Timings& timings() const { return timings_; }  // `total` counts loading too

 private:
  bool group_is_full(const ForecastJob& next) const;
  void forecast_group();

  const ForecastRequest& request_;
  const Engine& engine_;
  std::size_t num_jobs_;
  TakeForecast take_;
  ForecastOptions options_;
  Progress progress_;
  Timings timings_;
  // The current group and its totals.
  std::vector<ForecastJob> jobs_;
  std::vector<Series> batch_;
  std::vector<Forecast> answers_;
  std::size_t num_values_ = 0, num_variates_ = 0;
  std::size_t num_done_ = 0, num_parts_done_ = 0;
};

}  // namespace toto::cli
