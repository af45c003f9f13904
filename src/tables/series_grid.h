// Infers the regular grid of a series' times, so that absent rows become missing values.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tables/series_frequency.h"

namespace toto::tables {

struct Grid {
  Frequency frequency = {};
  std::vector<Ticks> times = {};            // of every point
  std::vector<std::size_t> positions = {};  // point of each row; empty: row i is point i
  std::size_t num_moved = 0;                // rows whose time was moved to the grid
  bool irregular = false;                   // no grid fits: the frequency is the median distance
  // Inferred weekdays only: weekdays absent in gaps longer than a week, and the first of them. Like
  // holidays they get no points, but the caller warns about them.
  std::size_t num_closed_up = 0;
  Ticks first_closed_up = 0;
};

// `times` increase strictly. Tried in this order:
// - months: the same day of the month (or always the last one) and time of day;
// - weekdays: daily, never on a weekend, over at least one weekend, at most a quarter of the
//   weekdays absent. Those are holidays, which cannot be predicted: they get no points;
// - fixed: every distance is a multiple of the smallest, and at least half of the points exist, so
//   a market's opening hours do not become a grid that is mostly night.
// A single time has no frequency.
Grid infer_grid(std::vector<Ticks> times, bool steps);

// Sets the day of a month frequency from these times; other frequencies are returned unchanged.
Frequency anchored(Frequency frequency, std::span<const Ticks> times);

// A grid of the given frequency with a point for every step, holidays included. Every row moves to
// its nearest point (fixed) or into its step (weekdays, months). Error(invalid_argument), naming
// `what`, for two rows in one step, weekends in weekdays, or more than ten points per row.
Grid impose_grid(std::vector<Ticks> times, Frequency wanted, const TimeStyle& style,
                 std::string_view what);

}  // namespace toto::tables
