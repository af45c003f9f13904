// Drawing of a fan chart, for the SVG file and for the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/axis.h"
#include "report/fan_chart.h"

namespace toto::report {

inline constexpr std::string_view kUntrainedNote =
    "Untrained demonstration weights: the shape is not a forecast";

// The visible part of a chart, shared by its drawings.
struct FanView {
  explicit FanView(const FanChart& checked_chart);
  std::size_t steps() const { return history.size() + chart.median.size(); }
  bool has_values() const { return low <= high; }
  // Date or number of a step counted from the first one drawn.
  std::string when(std::size_t step) const;

  const FanChart& chart;
  std::span<const float> history;   // the newest points
  std::size_t first_number = 1;     // of the first step drawn, where steps are numbered
  std::vector<std::int64_t> times;  // [history + forecast], or empty
  DatePrecision precision = DatePrecision::year;
  double low, high;  // of all values shown; low > high if there is none
  // Whether the forecast line is connected to the history: only if its first step is not larger
  // than the largest step shown. Otherwise a gap is left, because a line would suggest a fall that
  // was not forecast.
  bool continues = false;
};

struct FanLayout {
  std::string_view css_class;
  double width;
  double plot_height;
  double margin;  // around everything
  bool alone;     // an SVG file: with title, footnote and colours
};
inline constexpr FanLayout kAloneLayout = {"alone", 880, 320, 20, true};
inline constexpr FanLayout kWideLayout = {"wide", 880, 320, 1, false};
inline constexpr FanLayout kNarrowLayout = {"narrow", 400, 260, 1, false};

// The chart in words, for screen readers.
std::string description(const FanView& view);

// Without ticks if there is no value.
ValueAxis value_axis_of(const FanView& view, const FanLayout& layout);

std::string draw_fan(const FanView& view, const FanLayout& layout);

}  // namespace toto::report
