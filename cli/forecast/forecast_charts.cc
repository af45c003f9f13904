#include "cli/forecast/forecast_charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/output.h"
#include "report/axis.h"

namespace toto::cli {
namespace {

using tables::Frequency;
using tables::InputSeries;

struct Words {
  std::int64_t count;  // of the unit below
  std::string_view unit;
};

// The largest unit of which the step is a whole number.
Words in_words(const Frequency& frequency) {
  constexpr std::array<std::pair<tables::Ticks, std::string_view>, 7> kFixed = {
      {{7 * tables::kDay, "week"},
       {tables::kDay, "day"},
       {tables::kHour, "hour"},
       {tables::kMinute, "minute"},
       {tables::kSecond, "second"},
       {tables::kSecond / 1000, "millisecond"},
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
  const bool said = heading.empty() || equal_ignoring_case(heading, series.id);
  return said ? series.id : heading + " " + series.id;
}

// Sets both lists of times or neither; without dates, or with dates outside the calendar's range,
// steps are numbered.
void set_times(const InputSeries& series, int horizon, report::FanChart& chart) {
  const tables::TimeAxis& past = *series.axis;
  if (past.style.steps || past.frequency.unit == Frequency::Unit::unknown) return;
  const tables::TimeAxis future = tables::future_axis(series, horizon);
  std::vector<std::int64_t> before, after;
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    before.push_back(tables::utc_seconds(series.time(i), past.style));
  }
  for (const tables::Ticks time : future.times)
    after.push_back(tables::utc_seconds(time, future.style));
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

}  // namespace

std::string steps_in_words(int horizon, const tables::TimeAxis& axis) {
  const Words step = axis.style.steps ? Words{1, "step"} : in_words(axis.frequency);
  const std::string_view plural = horizon == 1 ? "" : "s";
  const std::string count = horizon == 1 ? "" : fmt::format("{} ", horizon);
  if (step.count == 1) return fmt::format("{}{}{}", count, step.unit, plural);
  return fmt::format("{}step{} of {} {}s", count, plural, step.count, step.unit);
}

ForecastCharts::ForecastCharts(const ForecastRequest& request, const LoadedEngine& loaded,
                               std::string heading)
    : request_(request),
      loaded_(loaded),
      heading_(std::move(heading)),
      most_(request.plot_format == PlotFormat::svg ? 1 : kMaxCharts) {}

void ForecastCharts::add(const ForecastPart& part, const Forecast& forecast, int variate) {
  if (num_added_++ < most_) charts_.push_back(make_chart(part, forecast, variate));
}

report::FanChart ForecastCharts::make_chart(const ForecastPart& part, const Forecast& forecast,
                                            int variate) const {
  const InputSeries& series = part.series;
  report::FanChart chart;
  chart.title = fmt::format("{}, next {}", label_of(series, heading_),
                            steps_in_words(forecast.horizon, *series.axis));
  chart.subtitle =
      fmt::format("{} of history, model {}, mode {}", counted(forecast.context_length, "value"),
                  loaded_.model.name, name_of(loaded_.engine.options().mode));
  chart.y_label = part.column;  // files do not state units
  chart.footnote = fmt::format("toto.cpp {}, model {}{}", version(), loaded_.model.name,
                               loaded_.trained() ? "" : " (untrained)");
  chart.warn_untrained = !loaded_.trained();
  set_times(series, forecast.horizon, chart);
  chart.history = series.values;
  const auto first = forecast.median.begin() + std::ptrdiff_t{variate} * forecast.horizon;
  chart.median.assign(first, first + forecast.horizon);
  for (const ChartBand& band : request_.bands) {
    const double percent = std::round((band.high - band.low) * 1e8) / 1e6;
    chart.bands.push_back({.label = fmt::format("{} %", percent),
                           .low = level_of(request_, forecast, variate, band.low),
                           .high = level_of(request_, forecast, variate, band.high)});
  }
  return chart;
}

std::string ForecastCharts::draw() const {
  const bool svg = request_.plot_format == PlotFormat::svg;
  const std::size_t shown = charts_.size();
  if (shown < num_added_) {
    print_warning(fmt::format("{}: shows {} of {} series; {}", request_.plot.value_or("the plot"),
                              svg ? "the first" : fmt::format("the first {}", shown), num_added_,
                              svg ? fmt::format("an .html file shows up to {}", kMaxCharts)
                                  : "the most that fit on a page"));
  }
  if (svg) return report::fan_chart_svg(charts_.front());
  const std::string title = shown == 1
                                ? charts_.front().title
                                : fmt::format("{}: {} forecasts", request_.input_name, shown);
  return report::fan_chart_html(charts_, title);
}

}  // namespace toto::cli
