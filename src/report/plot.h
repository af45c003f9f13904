// From values to pixels: the frame of a plot and the paths drawn in it. However long a series is,
// its path holds no more points than the frame has pixel columns to show.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

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

// Indices to draw, one list per unbroken stretch of finite values. Up to one value a pixel column
// all of them; beyond that each column's lowest and highest (or one of them), in their order, and a
// stretch ends where a whole column has no value. values[0] stands at step `first`.
std::vector<std::vector<std::size_t>> visible_runs(std::span<const float> values,
                                                   const Frame& frame, std::size_t first,
                                                   Keep keep = Keep::both);

struct LinePaths {
  PathData line;
  PathData dots;  // values with a gap on both sides, as strokes of no length: give them round caps
};
LinePaths line_paths(std::span<const float> values, const Frame& frame, std::size_t first);

// The area between two lines; a step with a gap on both sides is a bar wide enough to be seen. A
// step counts as a gap if either value is missing.
PathData band_path(std::span<const float> low, std::span<const float> high, const Frame& frame,
                   std::size_t first);

}  // namespace toto::report
