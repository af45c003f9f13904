// The charts of --plot: which series they show, and the words around them.
#pragma once

#include <cstddef>
#include <string>

#include "forecast_run.h"
#include "settings.h"

namespace toto::cli {

inline constexpr std::size_t kMaxCharts = 50;  // on one page; an SVG holds one

// "64 business days", "hour", "12 steps of 15 minutes"
std::string steps_in_words(int horizon, const io::TimeAxis& axis);

// The name of the input's file without folder and extension, where series go by their columns:
// "close" says little without it. Otherwise nothing, as for standard input.
std::string file_heading(const ForecastRequest& request, const io::InputData& input);

// The text of the file --plot names, and how many series it shows. Warns on stderr when there are
// more than it can.
struct Charts {
  std::string text;
  std::size_t num_shown = 0;
};
Charts draw_charts(const ForecastRequest& request, const io::InputData& input,
                   const ForecastRun& run, const LoadedEngine& loaded);

}  // namespace toto::cli
