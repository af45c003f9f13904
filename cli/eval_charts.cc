#include "cli/eval_charts.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "cli/forecast/forecast_charts.h"
#include "report/axis.h"

namespace toto::cli {
namespace {

std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

// The dates of the points shown, unless the series has none or no calendar label exists for them.
void set_times(const tables::InputSeries& series, std::size_t first, std::size_t start,
               report::FanChart& chart) {
  const tables::TimeAxis& axis = *series.axis;
  if (axis.style.steps || axis.times.empty()) return;
  std::vector<std::int64_t> before, after;
  for (std::size_t i = first; i < start; ++i) {
    before.push_back(tables::utc_seconds(series.time(i), axis.style));
  }
  for (std::size_t i = start; i < start + chart.median.size(); ++i) {
    after.push_back(tables::utc_seconds(series.time(i), axis.style));
  }
  if (before.front() < report::kEarliestTime || after.back() > report::kLatestTime) return;
  chart.history_times = std::move(before);
  chart.forecast_times = std::move(after);
}

report::FanChart make_chart(const tables::InputData& input, const eval::DatasetResult& result,
                            const eval::NotableWindow& notable, const Forecast& forecast,
                            const LoadedEngine& loaded) {
  const eval::SeriesResult& scored = result.series[notable.window.series];
  const tables::InputSeries& series = input.series[scored.position];
  const std::span<const float> values = series.values;
  const std::size_t start = notable.window.start,
                    horizon = static_cast<std::size_t>(forecast.horizon);
  const auto level = [&](std::size_t i) {
    return copy_of(std::span(forecast.quantiles).subspan(i * horizon, horizon));
  };
  report::FanChart chart;
  const std::string name =
      series.id == result.name ? series.id : fmt::format("{} {}", result.name, series.id);
  chart.title = fmt::format(
      "{}, {}: the {} {}", name, steps_in_words(forecast.horizon, *series.axis), notable.label,
      notable.among == 1 ? "window" : fmt::format("of {} windows", notable.among));
  chart.subtitle =
      notable.window.scaled
          ? fmt::format("Quantile loss {:.2f} times what seasonal naive gets wrong before it",
                        notable.window.loss)
          : fmt::format("Quantile loss {:.4g} a step", notable.window.loss);
  chart.y_label = series.id;
  chart.footnote = fmt::format("toto.cpp {}, model {}{}, from {} values of history", version(),
                               loaded.model.name, loaded.trained() ? "" : " (untrained)",
                               forecast.context_length);
  chart.warn_untrained = !loaded.trained();
  chart.median = level(eval::kMedian);
  chart.bands = {{.label = "80 %", .low = level(1), .high = level(17)},
                 {.label = "50 %", .low = level(4), .high = level(14)}};
  chart.actual = copy_of(values.subspan(start, horizon));
  // Two seasons show the pattern, unless they would leave no room for the window itself.
  constexpr std::size_t kLeastHistory = 40;
  const std::size_t seasons = 2 * static_cast<std::size_t>(scored.season);
  const std::size_t shown =
      std::min(start, std::max({3 * horizon, std::min(seasons, 8 * horizon), kLeastHistory}));
  chart.max_history = static_cast<int>(shown);
  chart.first_step = start - shown + 1;
  chart.history = copy_of(values.subspan(start - shown, shown));
  set_times(series, start - shown, start, chart);
  return chart;
}

}  // namespace

std::vector<WindowChart> window_charts(const tables::InputData& input,
                                       const eval::DatasetResult& result,
                                       const eval::EvalOptions& options,
                                       const LoadedEngine& loaded) {
  const ForecastOptions forecast_options = eval::forecast_options(options);
  std::vector<WindowChart> charts;
  for (const eval::NotableWindow& notable : eval::notable_windows(result)) {
    const tables::InputSeries& series = input.series[result.series[notable.window.series].position];
    const Forecast forecast = loaded.engine.forecast(
        eval::context_before(series, notable.window.start, forecast_options.max_context),
        forecast_options);
    charts.push_back({notable.label, make_chart(input, result, notable, forecast, loaded)});
  }
  return charts;
}

}  // namespace toto::cli
