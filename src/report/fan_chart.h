// A chart of a forecast: history, median and bands, as an SVG file or as an interactive page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace toto::report {

// Texts are escaped. NaN or infinity in any series is a gap.
struct FanChart {
  struct Band {
    std::string label;             // "80 %"
    std::vector<float> low, high;  // [step], low <= high
  };

  std::string title;
  std::string subtitle;
  std::string y_label;   // the quantity and its unit
  std::string footnote;  // source, model
  // Seconds since the epoch, UTC, not descending; both lists empty: steps are numbered.
  // Steps are drawn equally far apart whatever their times: nights and weekends without data take
  // no room.
  std::vector<std::int64_t> history_times;
  std::vector<float> history;  // oldest first; may be empty
  std::vector<std::int64_t> forecast_times;
  std::vector<float> median;    // [step], at least one
  std::vector<Band> bands;      // widest first
  std::vector<float> actual;    // empty, or [step]: the observed values, NaN where unknown
  std::size_t first_step = 1;   // number of history[0], where steps are numbered
  int max_history = 0;          // newest points drawn; 0: three times the horizon, at least 120
  bool warn_untrained = false;  // note that the weights are untrained
  // Label of the forecast's origin; empty: "Forecast after" the last step of the history. With a
  // label, lines and bands do not start at the history: each step may be a separate forecast.
  std::string origin_label = {};
};

// A self-contained drawing of 880 x about 460, light or dark as the viewer prefers, at most a few
// hundred kB however long the series. All functions: Error(invalid_argument) for series of unequal
// lengths and unusable times.
std::string fan_chart_svg(const FanChart& chart);

// One self-contained page with all charts, each drawn for a wide and for a narrow window, with a
// crosshair and a tooltip for mouse, touch and arrow keys.
std::string fan_chart_html(std::span<const FanChart> charts, std::string_view page_title);

// One of those charts, as part of the body of html_page.
std::string fan_chart_figure(const FanChart& chart);

}  // namespace toto::report
