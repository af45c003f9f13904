#include "report/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/error.h"
#include "io/json.h"
#include "report/axis.h"
#include "report/plot.h"
#include "report/svg.h"

namespace toto::report {
namespace {

constexpr double kWidth = 880, kPlotHeight = 220, kMargin = 1;
constexpr double kSwatch = 20, kRow = 20;

// Draws from top to bottom; `y_` is the lower edge of what is there already.
class LineDrawing {
 public:
  explicit LineDrawing(const LineChart& chart) : chart_(chart) {}

  std::string draw() {
    const ValueAxis axis = axis_of_values();
    double label_width = 0;
    for (const ValueTick& tick : axis.ticks) {
      label_width = std::max(label_width, text_width(tick.label, kSmallSize));
    }
    draw_legend();
    y_ += 26;
    frame_ = {.left = kMargin + label_width + 8,
              .top = y_,
              .right = kWidth - kMargin,
              .bottom = y_ + kPlotHeight,
              .steps = chart_.lines.front().values.size(),
              .low = axis.low,
              .high = axis.high};
    for (const ValueTick& tick : axis.ticks) {
      rule(frame_.left, frame_.right, frame_.y(tick.value), tick.value == 0 ? "t-axis" : "t-grid");
      svg_.text("t-tick", frame_.left - 8, frame_.y(tick.value) + 4, tick.label, "end");
    }
    svg_.text("t-tick", kMargin, frame_.top - 10, clean_text(chart_.y_label));
    for (const LineChart::Line& line : chart_.lines) draw_line(line);
    draw_steps();
    SvgWriter outer;
    outer.open("svg", {{"viewBox", fmt::format("0 0 {} {}", kWidth, std::ceil(y_ + kMargin))},
                       {"font-size", kFontSize},
                       {"role", "img"},
                       {"aria-label", chart_.title}});
    return outer.markup() + svg_.markup() + "</svg>\n";
  }

 private:
  ValueAxis axis_of_values() const {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const LineChart::Line& line : chart_.lines) {
      for (const float value : line.values) {
        if (!std::isfinite(value)) continue;
        low = std::min(low, static_cast<double>(value));
        high = std::max(high, static_cast<double>(value));
      }
    }
    constexpr double kTickDistance = 40;
    return value_axis(low, high, static_cast<int>(kPlotHeight / kTickDistance));
  }

  void rule(double x0, double x1, double y, std::string_view css_class) {
    svg_.element("path",
                 {{"class", css_class}, {"d", PathData().move_to(x0, y).line_to(x1, y).text()}});
  }

  static std::string class_of(const LineChart::Line& line) {
    return fmt::format("l-line l-{}", line.color);
  }

  void draw_legend() {
    double x = kMargin, row = 12;
    for (const LineChart::Line& line : chart_.lines) {
      const std::string text = fit_text(clean_text(line.label), kFontSize, kWidth / 2);
      const double width = kSwatch + 6 + text_width(text, kFontSize);
      if (x > kMargin && x + width > kWidth) {
        x = kMargin;
        row += kRow;
      }
      rule(x + 1, x + kSwatch - 1, row, class_of(line));
      svg_.text("t-legend", x + kSwatch + 6, row + 4.5, text);
      x += width + 12;
    }
    y_ = row + 8;
  }

  void draw_line(const LineChart::Line& line) {
    const LinePaths paths = line_paths(line.values, frame_, 0);
    for (const PathData* path : {&paths.line, &paths.dots}) {
      if (path->empty()) continue;
      const std::string dot = path == &paths.dots ? " t-dot" : "";
      svg_.element("path", {{"class", class_of(line) + dot}, {"d", path->text()}});
    }
  }

  void draw_steps() {
    rule(frame_.left, frame_.right, frame_.bottom, "t-axis");
    const std::vector<StepTick> ticks =
        chart_.times.empty() ? number_ticks(1, frame_.steps, frame_.step_width(), kSmallSize)
                             : calendar_ticks(chart_.times, frame_.step_width(), kSmallSize);
    for (const StepTick& tick : ticks) {
      const double x = frame_.x(tick.step), y = frame_.bottom;
      svg_.element("path",
                   {{"class", "t-axis"}, {"d", PathData().move_to(x, y).line_to(x, y + 5).text()}});
      const auto place = [&](const std::string& label, double baseline) {
        const double half = text_width(label, kSmallSize) / 2;
        svg_.text("t-tick", std::clamp(x, kMargin + half, kWidth - kMargin - half), baseline, label,
                  "middle");
      };
      place(tick.label, y + 19);
      if (!tick.context.empty()) place(tick.context, y + 34);
    }
    y_ = frame_.bottom + 38;
  }

  const LineChart& chart_;
  Frame frame_;
  SvgWriter svg_;
  double y_ = 0;
};

void check(const LineChart& chart) {
  const std::string name = io::quoted(chart.title);
  if (chart.lines.empty() || chart.lines.size() > kMaxLines || chart.lines.front().values.empty()) {
    fail(ErrorCode::invalid_argument, "chart {}: {} lines, expected 1 to {} with values", name,
         chart.lines.size(), kMaxLines);
  }
  const std::size_t steps = chart.lines.front().values.size();
  for (const LineChart::Line& line : chart.lines) {
    if (line.values.size() == steps && line.color < kMaxLines) continue;
    fail(ErrorCode::invalid_argument,
         "chart {}: the line {} has {} values and colour {}, expected {} values and a colour below "
         "{}",
         name, io::quoted(line.label), line.values.size(), line.color, steps, kMaxLines);
  }
  if (!chart.times.empty() && chart.times.size() != steps) {
    fail(ErrorCode::invalid_argument, "chart {}: {} times for {} steps, expected one each", name,
         chart.times.size(), steps);
  }
}

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  check(chart);
  return LineDrawing(chart).draw();
}

}  // namespace toto::report
