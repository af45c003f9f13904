#include "forecast_charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "io/csv.h"
#include "output.h"
#include "report/axis.h"
#include "report/fan_chart.h"

namespace toto::cli {
namespace {

using io::Frequency;
using io::InputSeries;

struct Words {
  std::int64_t count;  // of the unit below
  std::string_view unit;
};

// The largest unit of which the step is a whole number.
Words in_words(const Frequency& frequency) {
  constexpr std::array<std::pair<io::Ticks, std::string_view>, 7> kFixed = {
      {{7 * io::kDay, "week"},
       {io::kDay, "day"},
       {io::kHour, "hour"},
       {io::kMinute, "minute"},
       {io::kSecond, "second"},
       {io::kSecond / 1000, "millisecond"},
       {1, "microsecond"}}};
  constexpr std::array<std::pair<std::int64_t, std::string_view>, 3> kMonths = {
      {{12, "year"}, {3, "quarter"}, {1, "month"}}};
  const auto largest = [&](const auto& units) -> Words {
    for (const auto& [size, unit] : units) {
      if (frequency.count % size == 0) return {frequency.count / size, unit};
    }
    return {1, "step"};
  };
  switch (frequency.unit) {
    case Frequency::Unit::fixed:
      return largest(kFixed);
    case Frequency::Unit::weekday:
      return {frequency.count, "business day"};
    case Frequency::Unit::month:
      return largest(kMonths);
    case Frequency::Unit::unknown:
      break;
  }
  return {1, "step"};
}

// "AAPL close"
std::string label_of(const InputSeries& series, const std::string& heading) {
  const bool said = heading.empty() || io::equal_ignoring_case(heading, series.id);
  return said ? series.id : heading + " " + series.id;
}

// Both lists of times, or neither: steps without dates, and dates no calendar label exists for, are
// numbered instead.
void set_times(const InputSeries& series, int horizon, report::FanChart& chart) {
  const io::TimeAxis& past = *series.axis;
  if (past.style.steps || past.frequency.unit == Frequency::Unit::unknown) return;
  const io::TimeAxis future = io::future_axis(series, horizon);
  std::vector<std::int64_t> before, after;
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    before.push_back(io::utc_seconds(series.time(i), past.style));
  }
  for (const io::Ticks time : future.times) after.push_back(io::utc_seconds(time, future.style));
  if (before.front() < report::kEarliestTime || after.back() > report::kLatestTime) return;
  chart.history_times = std::move(before);
  chart.forecast_times = std::move(after);
}

// Forecast::quantiles is [level][variate][step], levels in the order of the request.
std::vector<float> level_of(const ForecastRequest& request, const Forecast& forecast, int variate,
                            double level) {
  const std::vector<double>& levels = request.options.quantiles;
  const auto position = std::find(levels.begin(), levels.end(), level) - levels.begin();
  const auto horizon = static_cast<std::size_t>(forecast.horizon);
  const std::size_t row = static_cast<std::size_t>(position * forecast.num_variates + variate);
  const std::span<const float> values =
      std::span(forecast.quantiles).subspan(row * horizon, horizon);
  return {values.begin(), values.end()};
}

report::FanChart make_chart(const ForecastRequest& request, const io::InputData& input,
                            const InputSeries& series, const Forecast& forecast, int variate,
                            const LoadedEngine& loaded) {
  report::FanChart chart;
  chart.title = fmt::format("{}, next {}", label_of(series, file_heading(request, input)),
                            steps_in_words(forecast.horizon, *series.axis));
  chart.subtitle = fmt::format("{} values of history, model {}, mode {}", forecast.context_length,
                               loaded.model.name, name_of(loaded.engine.options().mode));
  chart.y_label = input.columns[series.column];  // no file says its unit
  chart.footnote = fmt::format("toto.cpp {}, model {}{}", version(), loaded.model.name,
                               loaded.trained() ? "" : " (untrained)");
  chart.warn_untrained = !loaded.trained();
  set_times(series, forecast.horizon, chart);
  chart.history = series.values;
  const auto first = forecast.median.begin() + std::ptrdiff_t{variate} * forecast.horizon;
  chart.median.assign(first, first + forecast.horizon);
  for (const ChartBand& band : request.bands) {
    const double percent = std::round((band.high - band.low) * 1e8) / 1e6;
    chart.bands.push_back({.label = fmt::format("{} %", percent),
                           .low = level_of(request, forecast, variate, band.low),
                           .high = level_of(request, forecast, variate, band.high)});
  }
  return chart;
}

}  // namespace

std::string steps_in_words(int horizon, const io::TimeAxis& axis) {
  const Words step = axis.style.steps ? Words{1, "step"} : in_words(axis.frequency);
  const std::string_view plural = horizon == 1 ? "" : "s";
  const std::string count = horizon == 1 ? "" : fmt::format("{} ", horizon);
  if (step.count == 1) return fmt::format("{}{}{}", count, step.unit, plural);
  return fmt::format("{}step{} of {} {}s", count, plural, step.count, step.unit);
}

std::string file_heading(const ForecastRequest& request, const io::InputData& input) {
  const InputSeries& first = input.series.front();
  if (request.input == "-" || first.id != input.columns[first.column]) return {};
  return std::filesystem::path(request.input).stem().string();
}

Charts draw_charts(const ForecastRequest& request, const io::InputData& input,
                   const ForecastRun& run, const LoadedEngine& loaded) {
  const bool svg = request.plot_format == PlotFormat::svg;
  const std::size_t shown = std::min(run.parts.size(), svg ? std::size_t{1} : kMaxCharts);
  if (shown < run.parts.size()) {
    print_warning(fmt::format("{}: shows {} of {} series; {}", request.plot.value_or("the plot"),
                              svg ? "the first" : fmt::format("the first {}", shown),
                              run.parts.size(),
                              svg ? "an .html file holds up to 50" : "a page holds no more"));
  }
  std::vector<report::FanChart> charts;
  for (const ForecastPart& part : std::span(run.parts).first(shown)) {
    charts.push_back(make_chart(request, input, input.series[part.series],
                                run.forecasts[part.forecast], part.variate, loaded));
  }
  if (svg) return {.text = report::fan_chart_svg(charts.front()), .num_shown = shown};
  const std::string name = request.input == "-"
                               ? "standard input"
                               : std::filesystem::path(request.input).filename().string();
  const std::string title =
      shown == 1 ? charts.front().title : fmt::format("{}: {} forecasts", name, shown);
  return {.text = report::fan_chart_html(charts, title), .num_shown = shown};
}

}  // namespace toto::cli
