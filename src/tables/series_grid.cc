#include "tables/series_grid.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"

namespace toto::tables {
namespace {

std::int64_t month_index(Ticks time) { return month_number(civil_date(time)); }

// Weekdays since Monday, 1970-01-05; a weekend counts as its Friday.
std::int64_t weekday_index(Ticks time) {
  constexpr Ticks kMonday = 4 * kDay;  // 1970-01-05
  const int day = weekday(time);
  const Ticks monday = time - time_of_day(time) - day * kDay;
  return (monday - kMonday) / (7 * kDay) * 5 + std::min(day, 4);
}

std::vector<Ticks> distances(std::span<const Ticks> times) {
  std::vector<Ticks> gaps(times.size() - 1);
  for (std::size_t i = 0; i < gaps.size(); ++i) gaps[i] = times[i + 1] - times[i];
  return gaps;
}

// The common day of the month of these times; 0 if their days or times of day differ.
int common_day(std::span<const Ticks> times) {
  int day = 0;
  bool always_last = true;
  for (const Ticks time : times) {
    const CivilDate date = civil_date(time);
    day = std::max(day, date.day);
    always_last &= date.day == days_in_month(date.year, date.month);
  }
  if (always_last) return 31;
  const bool agree = std::all_of(times.begin(), times.end(), [&](Ticks time) {
    const CivilDate date = civil_date(time);
    return date.day == std::min(day, days_in_month(date.year, date.month)) &&
           time_of_day(time) == time_of_day(times.front());
  });
  return agree ? day : 0;
}

// Days moved off a weekend near the end of the month count as the end of the month.
int nearest_day(std::span<const Ticks> times) {
  int earliest = 31;
  for (const Ticks time : times) earliest = std::min(earliest, civil_date(time).day);
  return earliest > 25 ? 31 : earliest;
}

// Places rows on grid points. `index[i]` is the point of row i, increasing from 0.
Grid lay_out(std::span<const Ticks> times, const Frequency& frequency,
             const std::vector<std::int64_t>& index) {
  Grid grid{.frequency = frequency};
  const auto num_points = static_cast<std::size_t>(index.back()) + 1;
  grid.times.resize(num_points);
  for (std::size_t point = 0; point < num_points; ++point) {
    grid.times[point] = advance(frequency, times.front(), static_cast<std::int64_t>(point));
  }
  for (std::size_t row = 0; row < times.size(); ++row) {
    grid.num_moved += grid.times[static_cast<std::size_t>(index[row])] != times[row] ? 1 : 0;
  }
  if (num_points > times.size()) grid.positions.assign(index.begin(), index.end());
  return grid;
}

// Months, quarters and years: the step is the smallest distance, and at least half of the points
// exist.
std::optional<Grid> infer_months(const std::vector<Ticks>& times) {
  const int day = common_day(times);
  if (day == 0) return {};
  std::vector<std::int64_t> index(times.size());
  std::transform(times.begin(), times.end(), index.begin(), month_index);
  std::int64_t step = index.back() - index.front();
  for (std::size_t i = 1; i < index.size(); ++i) step = std::min(step, index[i] - index[i - 1]);
  const std::int64_t first = index.front();
  for (std::int64_t& month : index) {
    if ((month - first) % step != 0) return {};
    month = (month - first) / step;
  }
  if (index.back() >= 2 * static_cast<std::int64_t>(times.size())) return {};
  return lay_out(times, {.unit = Frequency::Unit::month, .count = step, .day = day}, index);
}

// Counts weekdays absent in gaps longer than any run of holidays.
void note_long_gaps(Grid& grid) {
  constexpr std::int64_t kMostHolidays = 5;  // in a row: a whole week
  for (std::size_t i = 1; i < grid.times.size(); ++i) {
    const Ticks before = grid.times[i - 1];
    const std::int64_t absent = weekday_index(grid.times[i]) - weekday_index(before) - 1;
    if (absent <= kMostHolidays) continue;
    if (grid.num_closed_up == 0) grid.first_closed_up = advance(grid.frequency, before, 1);
    grid.num_closed_up += static_cast<std::size_t>(absent);
  }
}

// See infer_grid() for the rule.
bool are_weekdays(std::span<const Ticks> times, std::span<const Ticks> gaps) {
  const bool whole_days =
      std::all_of(gaps.begin(), gaps.end(), [](Ticks gap) { return gap % kDay == 0; });
  const bool weekend =
      std::any_of(times.begin(), times.end(), [](Ticks time) { return weekday(time) > 4; });
  if (!whole_days || weekend) return false;
  const std::int64_t weekdays = weekday_index(times.back()) - weekday_index(times.front()) + 1;
  const bool over_weekend = (times.back() - times.front()) / kDay + 1 > weekdays;
  return over_weekend && 3 * weekdays <= 4 * static_cast<std::int64_t>(times.size());
}

// See infer_grid() for the rule; without gaps the times themselves are the grid.
std::optional<Grid> infer_fixed(const std::vector<Ticks>& times, std::span<const Ticks> gaps,
                                Ticks step) {
  const bool multiples =
      std::all_of(gaps.begin(), gaps.end(), [step](Ticks gap) { return gap % step == 0; });
  const Ticks first = times.front();
  if (!multiples || (times.back() - first) / step >= 2 * static_cast<std::int64_t>(times.size())) {
    return {};
  }
  const Frequency frequency{.unit = Frequency::Unit::fixed, .count = step};
  if (*std::max_element(gaps.begin(), gaps.end()) == step)
    return Grid{.frequency = frequency, .times = times};
  std::vector<std::int64_t> index;
  index.reserve(times.size());
  for (const Ticks time : times) index.push_back((time - first) / step);
  return lay_out(times, frequency, index);
}

}  // namespace

Grid infer_grid(std::vector<Ticks> times, bool steps) {
  if (times.size() < 2) return {.times = std::move(times)};
  std::vector<Ticks> gaps = distances(times);
  const Ticks smallest = *std::min_element(gaps.begin(), gaps.end());
  if (!steps && smallest >= 28 * kDay) {
    if (std::optional<Grid> grid = infer_months(times)) return std::move(*grid);
  }
  if (!steps && smallest == kDay && are_weekdays(times, gaps)) {
    Grid grid{.frequency = {.unit = Frequency::Unit::weekday, .count = 1},
              .times = std::move(times)};
    note_long_gaps(grid);
    return grid;
  }
  if (std::optional<Grid> grid = infer_fixed(times, gaps, smallest)) return std::move(*grid);
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return {.frequency = {.unit = Frequency::Unit::fixed, .count = *middle},
          .times = std::move(times),
          .irregular = true};
}

Frequency anchored(Frequency frequency, std::span<const Ticks> times) {
  if (frequency.unit != Frequency::Unit::month) return frequency;
  frequency.day = common_day(times);
  if (frequency.day == 0) frequency.day = nearest_day(times);
  return frequency;
}

Grid impose_grid(std::vector<Ticks> times, Frequency wanted, const TimeStyle& style,
                 std::string_view what) {
  wanted = anchored(wanted, times);
  const auto point_of = [&](Ticks time) -> std::int64_t {
    const Ticks first = times.front();
    switch (wanted.unit) {
      case Frequency::Unit::unknown:
        break;
      case Frequency::Unit::fixed:
        return (time - first + wanted.count / 2) / wanted.count;
      case Frequency::Unit::weekday:
        return (weekday_index(time) - weekday_index(first)) / wanted.count;
      case Frequency::Unit::month:
        return (month_index(time) - month_index(first)) / wanted.count;
    }
    fail(ErrorCode::internal, "a grid of an unknown frequency is imposed on {}", what);
  };
  std::vector<std::int64_t> index;
  index.reserve(times.size());
  for (const Ticks time : times) {
    if (wanted.unit == Frequency::Unit::weekday && weekday(time) > 4) {
      fail(ErrorCode::invalid_argument,
           "the frequency {} does not fit {}: {} is on a weekend, expected weekdays only; use D",
           name_of(wanted, false), what, format_time(time, style));
    }
    const std::int64_t point = point_of(time);
    if (!index.empty() && point <= index.back()) {
      fail(ErrorCode::invalid_argument,
           "the frequency {} does not fit {}: {} and {} fall into one step, expected at most one "
           "row in each; a finer frequency may fit",
           name_of(wanted, false), what, format_time(times[index.size() - 1], style),
           format_time(time, style));
    }
    index.push_back(point);
  }
  if (index.back() / 10 >= static_cast<std::int64_t>(times.size())) {
    fail(ErrorCode::invalid_argument,
         "the frequency {} does not fit {}: it makes {} steps of {} rows, expected at most ten a "
         "row; a coarser frequency may fit",
         name_of(wanted, false), what, index.back() + 1, times.size());
  }
  return lay_out(times, wanted, index);
}

}  // namespace toto::tables
