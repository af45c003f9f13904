#include "report/line_chart.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "io/json.h"
#include "report/axis.h"
#include "report/plot.h"
#include "report/svg.h"

namespace toto::report {
namespace {

constexpr double kTickDistance = 40;
constexpr double kMarkerSize = 5;         // half of its width
constexpr std::size_t kMostSteps = 1000;  // that the tooltip has values for

struct LineLayout {
  std::string_view name;
  double width, plot_height;
};
constexpr LineLayout kLayouts[] = {{"wide", kPageWidth, 240}, {"narrow", kNarrowWidth, 210}};

std::string class_of(const LineChart::Line& line) {
  return fmt::format("l-line l-{}{}", line.color, line.dashed ? " l-dashed" : "");
}

// In every drawing and in the legend: lines first, then markers.
std::string group_attributes(std::size_t number, bool shown) {
  return fmt::format("data-line=\"{}\"{}", number, shown ? "" : " class=\"off\"");
}

ValueAxis axis_of(const LineChart& chart, const LineLayout& layout) {
  ValueRange range;
  for (const LineChart::Line& line : chart.lines) range.add(line.values);
  for (const LineChart::Markers& group : chart.markers) {
    for (const LineChart::Marker& mark : group.marks) range.add(std::span(&mark.value, 1));
  }
  return value_axis(range.low, range.high, static_cast<int>(layout.plot_height / kTickDistance));
}

void add_mark(PathData& path, LineChart::Sign sign, double x, double y) {
  constexpr double kTall = 1.6 * kMarkerSize, kSmall = 0.55 * kMarkerSize;
  switch (sign) {  // the tip of a triangle is the price
    case LineChart::Sign::up:
      path.move_to(x, y).line_to(x + kMarkerSize, y + kTall).line_to(x - kMarkerSize, y + kTall);
      break;
    case LineChart::Sign::down:
      path.move_to(x, y).line_to(x + kMarkerSize, y - kTall).line_to(x - kMarkerSize, y - kTall);
      break;
    case LineChart::Sign::out:
      path.move_to(x - kSmall, y - kSmall).line_to(x + kSmall, y - kSmall);
      path.line_to(x + kSmall, y + kSmall).line_to(x - kSmall, y + kSmall);
      break;
  }
  path.close();
}

std::string draw_marks(const LineChart::Markers& group, const Frame& frame) {
  SvgWriter svg;
  constexpr std::pair<LineChart::Sign, const char*> kClasses[] = {
      {LineChart::Sign::out, "m-out"},
      {LineChart::Sign::up, "m-up"},
      {LineChart::Sign::down, "m-down"}};
  for (const auto& [sign, css_class] : kClasses) {
    PathData path;
    for (const LineChart::Marker& mark : group.marks) {
      if (mark.sign == sign) add_mark(path, sign, frame.x(mark.step), frame.y(mark.value));
    }
    if (!path.empty()) svg.element("path", {{"class", css_class}, {"d", path.text()}});
  }
  return svg.markup();
}

std::string draw(const LineChart& chart, const LineLayout& layout) {
  const ValueAxis axis = axis_of(chart, layout);
  constexpr double kTop = 26;
  const Frame frame = {.left = kPageMargin + label_width(axis) + 8,
                       .top = kTop,
                       .right = layout.width - kPageMargin,
                       .bottom = kTop + layout.plot_height,
                       .steps = chart.lines.front().values.size(),
                       .low = axis.low,
                       .high = axis.high};
  SvgWriter svg;
  draw_value_axis(svg, axis, frame);
  svg.text("t-tick", kPageMargin, frame.top - 12,
           fit_text(clean_text(chart.y_label), kSmallSize, layout.width));
  const std::vector<StepTick> ticks =
      chart.times.empty() ? number_ticks(1, frame.steps, frame.step_width(), kSmallSize)
                          : calendar_ticks(chart.times, frame.step_width(), kSmallSize);
  draw_step_axis(svg, ticks, frame, kPageMargin, layout.width - kPageMargin);
  std::string drawing = svg.markup();
  std::size_t number = 0;
  for (const LineChart::Line& line : chart.lines) {
    SvgWriter inner;
    draw_line(inner, class_of(line), line.values, frame, 0);
    drawing += fmt::format("<g {}>{}</g>", group_attributes(number++, line.shown), inner.markup());
  }
  for (const LineChart::Markers& group : chart.markers) {
    drawing += fmt::format("<g {}>{}</g>", group_attributes(number++, group.shown),
                           draw_marks(group, frame));
  }
  SvgWriter outer;
  outer.open("svg",
             {{"class", layout.name},
              {"viewBox", fmt::format("0 0 {} {}", layout.width, std::ceil(frame.bottom + 39))},
              {"font-size", kFontSize},
              {"aria-hidden", "true"},
              {"data-frame", fmt::format("{} {} {} {} {} {}", frame.x(0), frame.step_width(),
                                         frame.low, frame.high, frame.top, frame.bottom)}});
  return outer.markup() + drawing + "</svg>\n";
}

// The values of the tooltip, as JSON for web/report.js.
std::string tooltip_data(const LineChart& chart) {
  const std::size_t count = chart.lines.front().values.size();
  const std::size_t stride = (count + kMostSteps - 1) / kMostSteps;
  const int decimals = axis_of(chart, kLayouts[0]).decimals;
  const double scale = std::pow(10.0, std::max(decimals, 0));
  io::JsonWriter json(io::JsonLayout::compact);
  const auto each_step = [&](std::string_view name, const auto& write) {
    json.key(name).begin_array();
    for (std::size_t step = 0; step < count; step += stride) write(step);
    json.end_array();
  };
  json.begin_object().field("decimals", decimals);
  each_step("steps", [&](std::size_t step) { json.value(static_cast<std::uint64_t>(step)); });
  if (!chart.times.empty()) {
    json.field("precision", name_of(date_precision(chart.times)));
    each_step("times", [&](std::size_t step) { json.value(chart.times[step]); });
  }
  json.key("lines").begin_array();
  for (const LineChart::Line& line : chart.lines) {
    json.begin_object().field("label", clean_text(line.label));
    json.field("color", static_cast<std::uint64_t>(line.color));
    each_step("values", [&](std::size_t step) {
      const double value = line.values[step];
      json.value(decimals < 0 ? value : std::round(value * scale) / scale);
    });
    json.end_object();
  }
  json.end_array().key("markers").begin_array();
  for (const LineChart::Markers& group : chart.markers) {
    json.begin_array();
    for (const LineChart::Marker& mark : group.marks) {
      json.begin_object().field("at", static_cast<std::uint64_t>(mark.step / stride));
      json.field("text", clean_text(mark.text)).end_object();
    }
    json.end_array();
  }
  json.end_array().end_object();
  return escape_script_json(json.take());
}

std::string legend(const LineChart& chart) {
  std::string html = "<div class=\"legend\">";
  std::size_t number = 0;
  const auto add = [&](std::string_view swatch, const std::string& label, bool shown) {
    html += fmt::format(
        "<button type=\"button\" data-line=\"{}\" aria-pressed=\"{}\"><svg viewBox=\"0 0 20 12\" "
        "aria-hidden=\"true\">{}</svg>{}</button>",
        number++, shown, swatch, escape_xml(label));
  };
  for (const LineChart::Line& line : chart.lines) {
    add(fmt::format("<path class=\"{}\" d=\"M1,6L19,6\"/>", class_of(line)), line.label,
        line.shown);
  }
  for (const LineChart::Markers& group : chart.markers) {
    add("<path class=\"m-up\" d=\"M5,1L9,10L1,10Z\"/><path class=\"m-down\" "
        "d=\"M15,11L19,2L11,2Z\"/>",
        group.label, group.shown);
  }
  return html + "</div>\n";
}

void check(const LineChart& chart) {
  const std::string name = quoted(chart.title);
  if (chart.lines.empty() || chart.lines.front().values.empty()) {
    fail(ErrorCode::invalid_argument, "chart {}: {} lines, expected at least one with values", name,
         chart.lines.size());
  }
  const std::size_t steps = chart.lines.front().values.size();
  for (const LineChart::Line& line : chart.lines) {
    if (line.values.size() == steps && line.color < kLineColors) continue;
    fail(ErrorCode::invalid_argument,
         "chart {}: the line {} has {} values and colour {}, expected {} values and a colour below "
         "{}",
         name, quoted(line.label), line.values.size(), line.color, steps, kLineColors);
  }
  if (!chart.times.empty() && chart.times.size() != steps) {
    fail(ErrorCode::invalid_argument, "chart {}: {} times for {} steps, expected one each", name,
         chart.times.size(), steps);
  }
  for (const LineChart::Markers& group : chart.markers) {
    for (const LineChart::Marker& mark : group.marks) {
      if (mark.step < steps && std::isfinite(mark.value)) continue;
      fail(ErrorCode::invalid_argument, "chart {}: a marker of {} is at step {} of {}, at {}", name,
           quoted(group.label), mark.step, steps, mark.value);
    }
  }
}

}  // namespace

std::string line_chart_figure(const LineChart& chart) {
  check(chart);
  std::string html = "<div class=\"lines\">\n" + legend(chart);
  html +=
      fmt::format("<div class=\"plot\" role=\"img\" aria-label=\"{}\">\n", escape_xml(chart.title));
  for (const LineLayout& layout : kLayouts) html += draw(chart, layout);
  html += fmt::format("<script type=\"application/json\">{}</script>\n</div>\n</div>\n",
                      tooltip_data(chart));
  return html;
}

}  // namespace toto::report
