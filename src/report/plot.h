// From values to pixels: the frame of a plot and the paths drawn in it. A path has at most two
// points per pixel column, however long its series.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/axis.h"
#include "report/svg.h"

namespace toto::report {

// A rectangle on the drawing (y grows downwards) that `steps` equally spaced steps and the values
// from `low` to `high` are spread over.
struct Frame {
  double left = 0, top = 0, right = 0, bottom = 0;
  std::size_t steps = 1;
  double low = 0, high = 1;

  static constexpr double kInset =
      10;  // keeps the first and last point, and a bar there, off the edges

  double step_width() const {
    const double width = right - left - 2 * kInset;
    return steps > 1 ? width / static_cast<double>(steps - 1) : width;
  }
  double x(std::size_t step) const {
    if (steps <= 1) return (left + right) / 2;
    return left + kInset + static_cast<double>(step) * step_width();
  }
  double y(double value) const { return bottom - (value - low) / (high - low) * (bottom - top); }
};

enum class Keep { lowest, highest, both };

// Indices to draw, one list per unbroken run of finite values. With at most one value per pixel
// column all of them; otherwise the lowest and highest of each column (or one of them) in their
// order, and a run ends at a column without values. values[0] is at step `first`.
std::vector<std::vector<std::size_t>> visible_runs(std::span<const float> values,
                                                   const Frame& frame, std::size_t first,
                                                   Keep keep = Keep::both);

struct LinePaths {
  PathData line;
  PathData dots;  // values with a gap on both sides, as strokes of zero length: use round caps
};
LinePaths line_paths(std::span<const float> values, const Frame& frame, std::size_t first);

// The area between two lines; a step with a gap on both sides is a bar. A step is a gap if either
// value is missing.
PathData band_path(std::span<const float> low, std::span<const float> high, const Frame& frame,
                   std::size_t first);

// The range of all finite values added; low > high if there is none.
struct ValueRange {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(std::span<const float> values);
};

// Room for the labels of a value axis to the left of the frame.
double label_width(const ValueAxis& axis);

void draw_rule(SvgWriter& svg, std::string_view css_class, double x0, double y0, double x1,
               double y1);
// A line through the values; values[0] is at step `first`.
void draw_line(SvgWriter& svg, std::string_view css_class, std::span<const float> values,
               const Frame& frame, std::size_t first);
// A rule and a label per tick.
void draw_value_axis(SvgWriter& svg, const ValueAxis& axis, const Frame& frame);
// Below the frame; labels stay between `left` and `right`. Whether there is a second row of them.
bool draw_step_axis(SvgWriter& svg, std::span<const StepTick> ticks, const Frame& frame,
                    double left, double right);
// Pixels: a chart on a page, and what it leaves free at its edges.
inline constexpr double kPageWidth = 880, kPageMargin = 1;
inline constexpr double kNarrowWidth = 400;  // the drawing for narrow windows
// The drawing in an <svg> for a page; `title` is for screen readers.
std::string page_svg(const SvgWriter& drawing, double width, double height, std::string_view title);

}  // namespace toto::report
