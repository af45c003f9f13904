// The charts of --plot: which series they show, and the words around them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/forecast/forecast_jobs.h"
#include "cli/settings/settings.h"
#include "report/fan_chart.h"

namespace toto::cli {

inline constexpr std::size_t kMaxCharts = 50;  // on one page; an SVG holds one

// "64 business days", "hour", "12 steps of 15 minutes"
std::string steps_in_words(int horizon, const tables::TimeAxis& axis);

// Collects the parts of each series that the chart of --plot shows, up to its limit.
class ForecastCharts {
 public:
  // `heading` is put before ids that do not contain it: "AAPL" for "AAPL close".
  ForecastCharts(const ForecastRequest& request, const LoadedEngine& loaded, std::string heading);

  void add(const ForecastPart& part, const Forecast& forecast, int variate);
  std::size_t num_shown() const { return charts_.size(); }
  // The text of the file. Warns on stderr when there were more series than it can show.
  std::string draw() const;

 private:
  report::FanChart make_chart(const ForecastPart& part, const Forecast& forecast,
                              int variate) const;

  const ForecastRequest& request_;
  const LoadedEngine& loaded_;
  std::string heading_;
  std::size_t most_;           // charts
  std::size_t num_added_ = 0;  // series
  std::vector<report::FanChart> charts_;
};

}  // namespace toto::cli
