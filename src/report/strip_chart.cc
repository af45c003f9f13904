#include "report/strip_chart.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/median.h"
#include "base/text.h"
#include "report/line_chart.h"
#include "report/plot.h"
#include "report/svg.h"

namespace toto::report {
namespace {

constexpr double kRemarkRoom = 190;
constexpr double kStripHeight = 34, kTop = 28, kBottom = 26;
constexpr double kJitter = 3.5;  // separates dots of equal values

// Where the axis begins and ends: at 1, 2 or 5 times a power of ten.
struct LogAxis {
  double low = 1, high = 10;
  std::vector<double> ticks;
};

LogAxis log_axis(double min, double max) {
  std::vector<double> ladder;
  const int first = static_cast<int>(std::floor(std::log10(min))) - 1;
  const int last = static_cast<int>(std::ceil(std::log10(max))) + 1;
  for (int decade = first; decade <= last; ++decade) {
    for (const double digit : {1, 2, 5}) ladder.push_back(digit * std::pow(10.0, decade));
  }
  auto begin = std::upper_bound(ladder.begin(), ladder.end(), min) - 1;
  auto end = std::lower_bound(ladder.begin(), ladder.end(), max);
  if (begin == end) ++end;
  LogAxis axis{.low = *begin, .high = *end, .ticks = {begin, end + 1}};
  constexpr std::size_t kMostTicks = 10;
  if (axis.ticks.size() > kMostTicks) {  // whole decades are enough
    std::erase_if(axis.ticks, [](double tick) {
      const double exponent = std::log10(tick);
      return std::abs(exponent - std::round(exponent)) > 1e-6;
    });
  }
  return axis;
}

class StripDrawing {
 public:
  explicit StripDrawing(const StripChart& chart) : chart_(chart) {
    double low = HUGE_VAL, high = 0;
    for (const StripChart::Strip& strip : chart.strips) {
      const auto [min, max] = std::minmax_element(strip.values.begin(), strip.values.end());
      low = std::min(low, *min);
      high = std::max(high, *max);
      left_ = std::max(left_, text_width(clean_text(strip.label), kFontSize) + 18);
    }
    left_ = std::min(left_, kPageWidth / 4);
    axis_ = log_axis(low, high);
    bottom_ = kTop + kStripHeight * static_cast<double>(chart.strips.size());
  }

  std::string draw() {
    svg_.text("t-tick", kPageMargin, 12, clean_text(chart_.x_label));
    for (const double tick : axis_.ticks) {
      draw_rule(svg_, "t-grid", x(tick), kTop, x(tick), bottom_);
      svg_.text("t-tick", x(tick), bottom_ + 18, fmt::format("{:g}", tick), "middle");
    }
    double y = kTop + kStripHeight / 2;
    for (const StripChart::Strip& strip : chart_.strips) {
      draw_strip(strip, y);
      y += kStripHeight;
    }
    return page_svg(svg_, kPageWidth, bottom_ + kBottom, chart_.title);
  }

 private:
  double x(double value) const {
    const double begin = std::log(axis_.low);
    const double share = (std::log(value) - begin) / (std::log(axis_.high) - begin);
    return left_ + share * (kPageWidth - kPageMargin - kRemarkRoom - left_);
  }

  void draw_strip(const StripChart::Strip& strip, double y) {
    const std::string color = fmt::format("l-line l-{}", strip.color);
    svg_.text("t-legend", kPageMargin, y + 4.5,
              fit_text(clean_text(strip.label), kFontSize, left_ - 12));
    PathData dots;
    for (std::size_t i = 0; i < strip.values.size(); ++i) {
      const double jitter = kJitter * (static_cast<double>(i % 3) - 1);
      dots.move_to(x(strip.values[i]), y + jitter).line_to(x(strip.values[i]), y + jitter);
    }
    svg_.element("path", {{"class", color + " t-dot s-dots"}, {"d", dots.text()}});
    const double middle = x(median(strip.values));
    draw_rule(svg_, color, middle, y - 11, middle, y + 11);
    svg_.text("t-tick", kPageWidth - kPageMargin, y + 4.5, clean_text(strip.remark), "end");
  }

  const StripChart& chart_;
  LogAxis axis_;
  SvgWriter svg_;
  double left_ = 0, bottom_ = 0;
};

}  // namespace

std::string strip_chart_svg(const StripChart& chart) {
  const std::string name = quoted(chart.title);
  if (chart.strips.empty()) {
    fail(ErrorCode::invalid_argument, "chart {}: no strip, expected at least one", name);
  }
  for (const StripChart::Strip& strip : chart.strips) {
    const bool usable = !strip.values.empty() && strip.color < kLineColors &&
                        std::all_of(
                            strip.values.begin(), strip.values.end(),
                            [](double value) { return value > 1e-300 && value < 1e300; });
    if (usable) continue;
    fail(ErrorCode::invalid_argument,
         "chart {}: the strip {} has {} values and colour {}, expected at least one, all above 0 "
         "and finite, and a colour below {}",
         name, quoted(strip.label), strip.values.size(), strip.color, kLineColors);
  }
  return StripDrawing(chart).draw();
}

}  // namespace toto::report
