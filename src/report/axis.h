// Ticks and labels of an axis: values on 1-2-5 steps, times on calendar boundaries. Times are
// seconds since 1970-01-01 00:00 UTC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace toto::report {

// The range of times: the years 1 to 9999.
inline constexpr std::int64_t kEarliestTime = -62'135'596'800;
inline constexpr std::int64_t kLatestTime = 253'402'300'799;

// ---------------------------------------------------------------------------------------- values

struct ValueTick {
  double value;
  std::string label;  // "1,500", "2.5M", "-0.02" with a real minus sign, "3×10³⁰"
};

struct ValueAxis {
  double low = 0;  // the range of the axis; low < high, both finite
  double high = 1;
  std::vector<ValueTick> ticks;  // ascending, inside [low, high], labels all different
  int decimals =
      0;  // for a value read off the chart, three digits finer than a tick; -1: scientific
};

// An axis over [min, max] with a margin at both ends and the finest steps that make at most
// `max_ticks` + 1 ticks. Values that are never negative get an axis that is not. min > max (no
// values) gives 0 to 1, min = max a range around it.
ValueAxis value_axis(double min, double max, int max_ticks);

// ----------------------------------------------------------------------------------------- times

// The coarsest precision that writes a set of times without loss.
enum class DatePrecision { year, month, day, minute, second };
std::string_view name_of(DatePrecision precision) noexcept;  // as above, for chart_reader.js

DatePrecision date_precision(std::span<const std::int64_t> times);

// "2024", "Mar 2024", "4 Mar 2024", "4 Mar 2024 14:30", "4 Mar 2024 14:30:05"
std::string format_date(std::int64_t time, DatePrecision precision);

struct StepTick {
  std::size_t step;     // index into the axis, not a time: calendar gaps take no room
  std::string label;    // "14:00", "4 Mar", "Mar", "2024"
  std::string context;  // the larger unit, where it changes: "4 Mar 2024", "2024"; often empty
};

// Ticks for steps `step_width` apart, no two labels touching, at the finest calendar step (seconds
// to millennia) that allows it. `times` must not descend and must lie within the limits above.
std::vector<StepTick> calendar_ticks(std::span<const std::int64_t> times, double step_width,
                                     double font_size);

// The same for a series without times: numbers `first`, first + 1, ... on 1-2-5 steps.
std::vector<StepTick> number_ticks(std::size_t first, std::size_t count, double step_width,
                                   double font_size);

}  // namespace toto::report
