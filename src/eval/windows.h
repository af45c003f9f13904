// Chooses the windows to forecast: the last ones of each series, ending where the series ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tables/series_file.h"

namespace toto::eval {

struct WindowOptions {
  int horizon = 0;
  int windows = 1;  // most windows per series
  int stride = 0;   // steps from one window to the next; 0: the horizon, so that none overlap
  int season = 0;   // 0: default_season
};

// The season for the step of a series: a day for steps of minutes to hours, a week of days, five
// business days, a year of weeks, months or quarters. 1 (no season) for other steps.
int default_season(const tables::Frequency& frequency);
// The same for a series of a file. Price bars have no season: weekdays do not differ.
int default_season(const tables::InputSeries& series, tables::InputFormat format);

struct PlannedSeries {
  std::size_t position = 0;  // in InputData::series
  int season = 1;
  std::vector<std::size_t> starts;  // first step of each window, oldest first
};

struct SkippedSeries {
  std::string id;
  std::string reason;  // "has 20 values, ..."
};

struct WindowPlan {
  std::vector<PlannedSeries> series;
  std::vector<SkippedSeries> skipped;
  std::size_t num_windows = 0;
  std::size_t num_wanted = 0;  // if every series were long enough
};

// A window needs more values before it than a season has, and at least one actual value inside.
// Error(corrupt_file) if no series has one.
WindowPlan plan_windows(const tables::InputData& input, const WindowOptions& options);

}  // namespace toto::eval
