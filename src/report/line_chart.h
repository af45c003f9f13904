// Several lines over one axis of time: equity, drawdown, rolling figures, prices with trades.
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
    bool shown = true;          // at first; the legend switches it
  };
  enum class Sign { up, down, out };  // a triangle up or down, a small square
  struct Marker {
    std::size_t step = 0;
    float value = 0;
    Sign sign = Sign::out;
    std::string text = {};  // in the tooltip: "long at 101.20"
  };
  struct Markers {  // one entry of the legend
    std::string label;
    std::vector<Marker> marks;  // by step
    bool shown = true;
  };
  std::string title;                // for screen readers
  std::string y_label;              // the quantity and its unit
  std::vector<std::int64_t> times;  // seconds since the epoch, not descending; empty: numbered
  std::vector<Line> lines;          // of equal lengths
  std::vector<Markers> markers = {};
};

// A figure for a page made by html_page: a legend whose entries switch their lines, and a drawing
// for wide and one for narrow windows, with a crosshair and a tooltip. Error(invalid_argument) for
// lines of unequal lengths or none.
std::string line_chart_figure(const LineChart& chart);

}  // namespace toto::report
