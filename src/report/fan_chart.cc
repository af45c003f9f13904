#include "report/fan_chart.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "io/json.h"
#include "report/axis.h"
#include "report/fan_chart_drawing.h"
#include "report/page.h"
#include "report/plot.h"
#include "report/svg.h"

namespace toto::report {
namespace {

// -------------------------------------------------------------------------------------- checking

// Every message names the chart: a page may hold hundreds.
void check_times(const FanChart& chart, const std::string& name) {
  const bool dated = !chart.forecast_times.empty() || !chart.history_times.empty();
  if (!dated) return;
  const auto check_count = [&](std::size_t times, std::size_t values, std::string_view what) {
    if (times == values) return;
    fail(ErrorCode::invalid_argument,
         "chart {}: {} {} times for {} values, expected one each, or no times at all", name, times,
         what, values);
  };
  check_count(chart.history_times.size(), chart.history.size(), "history");
  check_count(chart.forecast_times.size(), chart.median.size(), "forecast");
  std::int64_t previous = kEarliestTime;
  for (const auto* times : {&chart.history_times, &chart.forecast_times}) {
    for (std::size_t i = 0; i < times->size(); ++i) {
      const std::int64_t time = (*times)[i];
      const std::string_view what = times == &chart.history_times ? "history" : "forecast";
      if (time < kEarliestTime || time > kLatestTime) {
        fail(ErrorCode::invalid_argument,
             "chart {}: {} time {} is {} seconds, expected the years 1 to 9999; perhaps it was "
             "given in milliseconds",
             name, what, i + 1, time);
      }
      if (time < previous) {
        fail(ErrorCode::invalid_argument,
             "chart {}: {} time {} is {}, before {}, the time of the previous step; expected times "
             "in "
             "order",
             name, what, i + 1, format_date(time, DatePrecision::second),
             format_date(previous, DatePrecision::second));
      }
      previous = time;
    }
  }
}

void check(const FanChart& chart) {
  const std::string name = quoted(chart.title);
  const std::size_t horizon = chart.median.size();
  if (horizon == 0) {
    fail(ErrorCode::invalid_argument,
         "chart {}: the median is empty, expected a value for at least one step", name);
  }
  if (chart.max_history < 0) {
    fail(ErrorCode::invalid_argument,
         "chart {}: max_history is {}, expected 0 (automatic) or the number of points", name,
         chart.max_history);
  }
  if (!chart.actual.empty() && chart.actual.size() != horizon) {
    fail(ErrorCode::invalid_argument,
         "chart {}: {} actual values for {} steps, expected one each, NaN where unknown", name,
         chart.actual.size(), horizon);
  }
  for (const FanChart::Band& band : chart.bands) {
    const std::string label = quoted(band.label);
    if (band.low.size() != horizon || band.high.size() != horizon) {
      fail(ErrorCode::invalid_argument,
           "chart {}: band {} has {} low and {} high values, expected {}, one per step", name,
           label, band.low.size(), band.high.size(), horizon);
    }
    for (std::size_t i = 0; i < horizon; ++i) {
      if (!(band.low[i] > band.high[i])) continue;  // a missing edge is a gap
      fail(ErrorCode::invalid_argument,
           "chart {}: band {} runs from {} down to {} at step {}, expected low <= high", name,
           label, band.low[i], band.high[i], i + 1);
    }
  }
  check_times(chart, name);
}

// ------------------------------------------------------------------------------------------ page

// The points that can be read: those of the wide drawing, which include every peak.
std::vector<std::size_t> reachable_steps(const FanView& view) {
  const Frame frame{.left = 0, .right = kWideLayout.width, .steps = view.steps()};
  std::vector<std::size_t> steps;
  const auto add = [&](std::span<const float> values, std::size_t first) {
    for (const std::vector<std::size_t>& run : visible_runs(values, frame, first)) {
      for (const std::size_t i : run) steps.push_back(first + i);
    }
  };
  add(view.history, 0);
  add(view.chart.median, view.history.size());
  return steps;
}

// The values of the tooltip, as JSON for web/report.js.
std::string tooltip_data(const FanView& view) {
  const FanChart& chart = view.chart;
  const std::size_t origin = view.history.size();
  const std::vector<std::size_t> steps = reachable_steps(view);
  const auto forecast_steps = std::span(steps).subspan(static_cast<std::size_t>(
      std::lower_bound(steps.begin(), steps.end(), origin) - steps.begin()));
  io::JsonWriter json(io::JsonLayout::compact);
  const auto write_forecast = [&](std::string_view name, std::span<const float> values) {
    json.key(name).begin_array();
    for (const std::size_t step : forecast_steps) json.value(values[step - origin]);
    json.end_array();
  };
  json.begin_object();
  json.field("history", static_cast<std::uint64_t>(origin));
  json.field("first_number", static_cast<std::uint64_t>(view.first_number));
  json.field("decimals", value_axis_of(view, kWideLayout).decimals);
  json.key("steps").begin_array();
  for (const std::size_t step : steps) json.value(static_cast<std::uint64_t>(step));
  json.end_array();
  if (!view.times.empty()) {
    json.field("precision", name_of(view.precision));
    json.key("times").begin_array();
    for (const std::size_t step : steps) json.value(view.times[step]);
    json.end_array();
  }
  json.key("values").begin_array();
  for (const std::size_t step : steps) {
    json.value(step < origin ? view.history[step] : chart.median[step - origin]);
  }
  json.end_array();
  json.key("bands").begin_array();
  for (const FanChart::Band& band : chart.bands) {
    json.begin_object().field("label", clean_text(band.label));
    write_forecast("low", band.low);
    write_forecast("high", band.high);
    json.end_object();
  }
  json.end_array();
  if (!chart.actual.empty()) write_forecast("actual", chart.actual);
  json.end_object();
  return escape_script_json(json.take());
}

// `heading`: the element for the chart's title; none if it is the page's.
std::string figure(const FanChart& chart, std::string_view heading) {
  const FanView view(chart);
  std::string html = "<figure>\n";
  const auto add = [&](std::string_view before, std::string_view text, std::string_view after) {
    if (!text.empty()) html += fmt::format("{}{}{}\n", before, escape_xml(text), after);
  };
  if (!heading.empty()) {
    add(fmt::format("<{}>", heading), chart.title, fmt::format("</{}>", heading));
  }
  add("<p class=\"subtitle\">", chart.subtitle, "</p>");
  if (chart.warn_untrained) add("<p class=\"note\">", kUntrainedNote, "</p>");
  html += fmt::format("<div class=\"plot\" role=\"img\" aria-label=\"{}\">\n",
                      escape_xml(description(view)));
  html += draw_fan(view, kWideLayout);
  html += draw_fan(view, kNarrowLayout);
  html +=
      fmt::format("<script type=\"application/json\">{}</script>\n</div>\n", tooltip_data(view));
  add("<p class=\"footnote\">", chart.footnote, "</p>");
  return html + "</figure>\n";
}

}  // namespace

std::string fan_chart_svg(const FanChart& chart) {
  check(chart);
  return draw_fan(FanView(chart), kAloneLayout);
}

std::string fan_chart_html(std::span<const FanChart> charts, std::string_view page_title) {
  if (charts.empty()) {
    fail(ErrorCode::invalid_argument,
         "the page {} has no chart, expected at least one; perhaps no series was forecast",
         quoted(page_title));
  }
  for (const FanChart& chart : charts) check(chart);  // all before any is drawn
  std::string body;
  for (const FanChart& chart : charts) {
    body += figure(chart, chart.title == page_title ? "" : "h2");
  }
  return html_page(page_title, body);
}

std::string fan_chart_figure(const FanChart& chart) {
  check(chart);
  return figure(chart, "h3");
}

}  // namespace toto::report
