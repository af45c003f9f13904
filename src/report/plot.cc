#include "report/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace toto::report {

std::vector<std::vector<std::size_t>> visible_runs(std::span<const float> values,
                                                   const Frame& frame, std::size_t first,
                                                   Keep keep) {
  // A column is one step, or as many steps as share a pixel.
  const bool dense = frame.step_width() < 1;
  const auto column_of = [&](std::size_t i) {
    return dense ? static_cast<std::size_t>(frame.x(first + i)) : i;
  };
  std::vector<std::vector<std::size_t>> runs;
  bool in_run = false;
  for (std::size_t i = 0; i < values.size();) {
    const std::size_t column = column_of(i);
    std::size_t lowest = values.size(), highest = values.size();
    for (; i < values.size() && column_of(i) == column; ++i) {
      if (!std::isfinite(values[i])) continue;
      if (lowest == values.size() || values[i] < values[lowest]) lowest = i;
      if (highest == values.size() || values[i] > values[highest]) highest = i;
    }
    const bool any = lowest != values.size();  // both or neither were found
    if (any && !in_run) runs.emplace_back();
    in_run = any;
    if (!any) continue;
    if (keep != Keep::both) {
      runs.back().push_back(keep == Keep::lowest ? lowest : highest);
      continue;
    }
    // In the order of time, so that a line never runs backwards inside its column.
    runs.back().push_back(std::min(lowest, highest));
    if (lowest != highest) runs.back().push_back(std::max(lowest, highest));
  }
  return runs;
}

LinePaths line_paths(std::span<const float> values, const Frame& frame, std::size_t first) {
  LinePaths paths;
  for (const std::vector<std::size_t>& run : visible_runs(values, frame, first)) {
    PathData& path = run.size() == 1 ? paths.dots : paths.line;
    const auto point = [&](std::size_t i) {
      return std::pair(frame.x(first + i), frame.y(values[i]));
    };
    const auto [start_x, start_y] = point(run.front());
    path.move_to(start_x, start_y);
    if (run.size() == 1) path.line_to(start_x, start_y);  // of no length, yet drawn by its caps
    for (const std::size_t i : std::span(run).subspan(1)) {
      const auto [x, y] = point(i);
      path.line_to(x, y);
    }
  }
  return paths;
}

PathData band_path(std::span<const float> low, std::span<const float> high, const Frame& frame,
                   std::size_t first) {
  constexpr double kNarrowestBar = 8, kWidestBar = 2 * Frame::kInset, kFlattestBar = 1;
  // With the same gaps in both edges their runs match one to one.
  constexpr float kGap = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> bottom(low.begin(), low.end()), top(high.begin(), high.end());
  for (std::size_t i = 0; i < bottom.size(); ++i) {
    if (!std::isfinite(low[i]) || !std::isfinite(high[i])) bottom[i] = top[i] = kGap;
  }
  const auto bottom_runs = visible_runs(bottom, frame, first, Keep::lowest);
  const auto top_runs = visible_runs(top, frame, first, Keep::highest);
  PathData path;
  for (std::size_t r = 0; r < top_runs.size(); ++r) {
    const std::vector<std::size_t>& upper = top_runs[r];
    const std::vector<std::size_t>& lower = bottom_runs[r];
    if (upper.size() == 1) {  // no area between neighbours: a bar in its place
      const double half = std::clamp(frame.step_width() * 0.6, kNarrowestBar, kWidestBar) / 2;
      const double x = frame.x(first + upper.front());
      const double y0 = frame.y(top[upper.front()]);
      const double y1 = std::max(frame.y(bottom[lower.front()]), y0 + kFlattestBar);
      path.move_to(x - half, y0).line_to(x + half, y0).line_to(x + half, y1).line_to(x - half, y1);
      path.close();
      continue;
    }
    // Along the upper edge to the right, back along the lower one.
    path.move_to(frame.x(first + upper.front()), frame.y(top[upper.front()]));
    for (const std::size_t i : std::span(upper).subspan(1)) {
      path.line_to(frame.x(first + i), frame.y(top[i]));
    }
    for (auto i = lower.rbegin(); i != lower.rend(); ++i) {
      path.line_to(frame.x(first + *i), frame.y(bottom[*i]));
    }
    path.close();
  }
  return path;
}

}  // namespace toto::report
