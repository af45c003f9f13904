// Several lines over one axis of time: equity, drawdown, rolling figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace toto::report {

inline constexpr std::size_t kLineColors = 9;

struct LineChart {
  struct Line {
    std::string label;
    std::vector<float> values;  // [step]; NaN is a gap
    std::size_t color = 0;      // below kLineColors, so that a line keeps its colour across charts
    bool dashed = false;        // tells lines of one colour apart
  };
  std::string title;                // for screen readers
  std::string y_label;              // the quantity and its unit
  std::vector<std::int64_t> times;  // seconds since the epoch, not descending; empty: numbered
  std::vector<Line> lines;          // of equal lengths
};

// An SVG for a page made by html_page. Error(invalid_argument) for lines of unequal lengths or
// none.
std::string line_chart_svg(const LineChart& chart);

}  // namespace toto::report
