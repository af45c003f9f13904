// The charts of --plot: which series they show, and the words around them.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "forecast_run.h"
#include "settings.h"

namespace toto::cli {

// Bounds of the 80 % and the 50 % band, whatever --quantiles asks for.
inline constexpr std::array<double, 4> kChartLevels = {0.1, 0.25, 0.75, 0.9};
inline constexpr std::size_t kMaxCharts = 50;  // on one page; an SVG holds one

// "64 business days", "hour", "12 steps of 15 minutes"
std::string steps_in_words(int horizon, const io::TimeAxis& axis);

// The text of the file --plot names. Warns on stderr when there are more series than it can show.
std::string draw_charts(const ForecastRequest& request, const io::InputData& input,
                        const ForecastRun& run, const LoadedEngine& loaded);

}  // namespace toto::cli
