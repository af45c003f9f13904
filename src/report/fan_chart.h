// A forecast as a picture: the history, the median that continues it and the bands around that, as
// an SVG for a report or as a page to read values from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace toto::report {

// Texts may hold anything; they are escaped. A NaN or an infinity in any series is a gap.
struct FanChart {
  struct Band {
    std::string label;             // "80 %"
    std::vector<float> low, high;  // [step], low <= high
  };

  std::string title;
  std::string subtitle;
  std::string y_label;   // what is measured, with its unit
  std::string footnote;  // source, model
  // Seconds since the epoch, UTC, not descending; both lists empty: steps are numbered.
  // Steps stand equally far apart whatever their times, so nights and weekends without data take no
  // room.
  std::vector<std::int64_t> history_times;
  std::vector<float> history;  // oldest first; may be empty
  std::vector<std::int64_t> forecast_times;
  std::vector<float> median;    // [step], at least one
  std::vector<Band> bands;      // widest first
  std::vector<float> actual;    // empty, or [step]: what came to pass, as far as it is known
  std::size_t first_step = 1;   // number of history[0], where steps are numbered
  int max_history = 0;          // newest points drawn; 0: three times the horizon, at least 120
  bool warn_untrained = false;  // say that the weights were never trained
  // Where the forecast begins; empty: "Forecast after" the last step of the history. With a text of
  // its own no line or band grows out of the history: each step may have been forecast by itself.
  std::string origin_label = {};
};

// One drawing of 880 x about 460 that stands alone, light or dark as the viewer prefers. At most a
// few hundred kB however long the series.
// Both functions refuse series of unequal lengths and unusable times: Error(invalid_argument).
std::string fan_chart_svg(const FanChart& chart);

// One page with all charts, each drawn for a wide and for a narrow window, with a crosshair and a
// tooltip for mouse, touch and arrow keys. A single file; asks for nothing from anywhere.
std::string fan_chart_html(std::span<const FanChart> charts, std::string_view page_title);

// One of those charts for a page that holds other things too; goes into html_page's body.
std::string fan_chart_figure(const FanChart& chart);

}  // namespace toto::report
