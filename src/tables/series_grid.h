// Finds the regular grid behind the times of a series, so that absent rows can become missing
// values.
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
  std::vector<std::size_t> positions = {};  // of each row among them; empty: each row is a point
  std::size_t num_moved = 0;                // rows that stood beside their point
  bool irregular = false;                   // nothing fits: the frequency is the median distance
  // Inferred weekdays only: those absent in gaps longer than a week, and the first of them. No
  // points stand for them, as for holidays, but somebody should know.
  std::size_t num_closed_up = 0;
  Ticks first_closed_up = 0;
};

// `times` increase strictly. Tried in this order:
// - months: the same day of the month (or always the last one) and time of day;
// - weekdays: daily, never on a weekend, over at least one weekend, at most a quarter of the
//   weekdays absent. Those are holidays, which nobody can predict: no points are made for them;
// - fixed: every distance a multiple of the smallest, and at least half of the points there. So a
//   market's hours do not become a grid that is mostly night.
// One time alone has no frequency.
Grid infer_grid(std::vector<Ticks> times, bool steps);

// A month frequency with the day these times suggest; any other as it is.
Frequency anchored(Frequency frequency, std::span<const Ticks> times);

// As the caller wants it, a point for every step: who asks for weekdays by name means all of them.
// Every row moves to its nearest point (fixed) or into its step (weekdays, months). Refused with
// Error(invalid_argument), naming `what`: two rows in one step, weekends in weekdays, a grid of
// more than ten times the rows.
Grid impose_grid(std::vector<Ticks> times, Frequency wanted, const TimeStyle& style,
                 std::string_view what);

}  // namespace toto::tables
