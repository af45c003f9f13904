#include "report/line_chart.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "report/axis.h"
#include "report/plot.h"
#include "report/svg.h"

namespace toto::report {
namespace {

constexpr double kPlotHeight = 220;
constexpr double kSwatch = 20, kRow = 20;

// Draws from top to bottom; `y_` is the lower edge of the part drawn so far.
class LineDrawing {
 public:
  explicit LineDrawing(const LineChart& chart) : chart_(chart) {}

  std::string draw() {
    ValueRange range;
    for (const LineChart::Line& line : chart_.lines) range.add(line.values);
    constexpr double kTickDistance = 40;
    const ValueAxis axis =
        value_axis(range.low, range.high, static_cast<int>(kPlotHeight / kTickDistance));
    draw_legend();
    y_ += 26;
    frame_ = {.left = kPageMargin + label_width(axis) + 8,
              .top = y_,
              .right = kPageWidth - kPageMargin,
              .bottom = y_ + kPlotHeight,
              .steps = chart_.lines.front().values.size(),
              .low = axis.low,
              .high = axis.high};
    draw_value_axis(svg_, axis, frame_);
    svg_.text("t-tick", kPageMargin, frame_.top - 10, clean_text(chart_.y_label));
    for (const LineChart::Line& line : chart_.lines) {
      draw_line(svg_, class_of(line), line.values, frame_, 0);
    }
    const std::vector<StepTick> ticks =
        chart_.times.empty() ? number_ticks(1, frame_.steps, frame_.step_width(), kSmallSize)
                             : calendar_ticks(chart_.times, frame_.step_width(), kSmallSize);
    draw_step_axis(svg_, ticks, frame_, kPageMargin, kPageWidth - kPageMargin);
    return page_svg(svg_, kPageWidth, std::ceil(frame_.bottom + 38 + kPageMargin), chart_.title);
  }

 private:
  static std::string class_of(const LineChart::Line& line) {
    return fmt::format("l-line l-{}{}", line.color, line.dashed ? " l-dashed" : "");
  }

  void draw_legend() {
    double x = kPageMargin, row = 12;
    for (const LineChart::Line& line : chart_.lines) {
      const std::string text = fit_text(clean_text(line.label), kFontSize, kPageWidth / 2);
      const double width = kSwatch + 6 + text_width(text, kFontSize);
      if (x > kPageMargin && x + width > kPageWidth) {
        x = kPageMargin;
        row += kRow;
      }
      draw_rule(svg_, class_of(line), x + 1, row, x + kSwatch - 1, row);
      svg_.text("t-legend", x + kSwatch + 6, row + 4.5, text);
      x += width + 12;
    }
    y_ = row + 8;
  }

  const LineChart& chart_;
  Frame frame_;
  SvgWriter svg_;
  double y_ = 0;
};

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
}

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  check(chart);
  return LineDrawing(chart).draw();
}

}  // namespace toto::report
