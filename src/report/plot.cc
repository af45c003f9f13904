#include "report/plot.h"

#include <fmt/format.h>

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
    // In the order of time: a line never runs backwards inside its column.
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
    if (run.size() == 1) path.line_to(start_x, start_y);  // zero length: drawn by its round caps
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
  // Equal gaps in both edges: their runs match one to one.
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
    if (upper.size() == 1) {  // no neighbour to span an area with: a bar
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

void ValueRange::add(std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, static_cast<double>(value));
    high = std::max(high, static_cast<double>(value));
  }
}

double label_width(const ValueAxis& axis) {
  double width = 0;
  for (const ValueTick& tick : axis.ticks) {
    width = std::max(width, text_width(tick.label, kSmallSize));
  }
  return width;
}

void draw_rule(SvgWriter& svg, std::string_view css_class, double x0, double y0, double x1,
               double y1) {
  svg.element("path",
              {{"class", css_class}, {"d", PathData().move_to(x0, y0).line_to(x1, y1).text()}});
}

void draw_line(SvgWriter& svg, std::string_view css_class, std::span<const float> values,
               const Frame& frame, std::size_t first) {
  const LinePaths paths = line_paths(values, frame, first);
  if (!paths.line.empty()) svg.element("path", {{"class", css_class}, {"d", paths.line.text()}});
  if (paths.dots.empty()) return;
  svg.element("path", {{"class", fmt::format("{} t-dot", css_class)}, {"d", paths.dots.text()}});
}

void draw_value_axis(SvgWriter& svg, const ValueAxis& axis, const Frame& frame) {
  for (const ValueTick& tick : axis.ticks) {
    const double y = frame.y(tick.value);
    draw_rule(svg, tick.value == 0 ? "t-axis" : "t-grid", frame.left, y, frame.right, y);
    svg.text("t-tick", frame.left - 8, y + 4, tick.label, "end");
  }
}

bool draw_step_axis(SvgWriter& svg, std::span<const StepTick> ticks, const Frame& frame,
                    double left, double right) {
  const double y = frame.bottom;
  draw_rule(svg, "t-axis", frame.left, y, frame.right, y);
  bool has_context = false;
  for (const StepTick& tick : ticks) {
    const double x = frame.x(tick.step);
    const auto place = [&](double baseline, const std::string& label) {
      const double half = text_width(label, kSmallSize) / 2;
      svg.text("t-tick", std::clamp(x, left + half, right - half), baseline, label, "middle");
    };
    draw_rule(svg, "t-axis", x, y, x, y + 5);
    place(y + 19, tick.label);
    if (tick.context.empty()) continue;
    place(y + 34, tick.context);
    has_context = true;
  }
  return has_context;
}

std::string page_svg(const SvgWriter& drawing, double width, double height,
                     std::string_view title) {
  SvgWriter outer;
  outer.open("svg", {{"viewBox", fmt::format("0 0 {} {}", width, height)},
                     {"font-size", kFontSize},
                     {"role", "img"},
                     {"aria-label", title}});
  return outer.markup() + drawing.markup() + "</svg>\n";
}

}  // namespace toto::report
