#include "report/histogram.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "report/axis.h"
#include "report/plot.h"
#include "report/svg.h"

namespace toto::report {
namespace {

struct BinLayout {
  std::string_view name;
  double width, height;
};
constexpr BinLayout kHistogramLayouts[] = {{"wide", kPageWidth, 170},
                                           {"narrow", kNarrowWidth, 150}};

// Bin i holds the values from (first + i) x width on, below the next.
struct Bins {
  double width = 1;
  double first = 0;  // a whole number
  std::vector<float> counts = {};
};

// The narrowest width of 1, 2 or 5 times a power of ten with at most 32 bins.
Bins bins_of(const std::vector<double>& values) {
  constexpr double kMostBins = 32;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double span = std::max({*high - *low, std::abs(*high) * 1e-6, std::abs(*low) * 1e-6, 1e-9});
  double width = std::pow(10.0, std::floor(std::log10(span / kMostBins)));
  for (int i = 0; span / width + 2 > kMostBins; ++i) width *= i % 3 == 1 ? 2.5 : 2;
  Bins bins{.width = width, .first = std::floor(*low / width)};
  bins.counts.resize(static_cast<std::size_t>(std::floor(*high / width) - bins.first) + 1);
  for (const double value : values) {
    ++bins.counts[static_cast<std::size_t>(std::floor(value / width) - bins.first)];
  }
  return bins;
}

std::string draw_bins(const Histogram& histogram, const Bins& bins, const BinLayout& layout) {
  ValueRange range;
  range.add(bins.counts);
  const ValueAxis axis = value_axis(0, range.high, 5);
  constexpr double kTop = 26;
  const Frame frame = {.left = kPageMargin + label_width(axis) + 8,
                       .top = kTop,
                       .right = layout.width - kPageMargin,
                       .bottom = kTop + layout.height,
                       .low = 0,
                       .high = axis.high};
  const auto num_bins = static_cast<double>(bins.counts.size());
  const auto x_of = [&](double bin) {
    return frame.left + bin / num_bins * (frame.right - frame.left);
  };
  SvgWriter svg;
  draw_value_axis(svg, axis, frame);
  svg.text("t-tick", kPageMargin, kTop - 12, clean_text(histogram.y_label));
  PathData gains, losses;
  for (std::size_t i = 0; i < bins.counts.size(); ++i) {
    if (bins.counts[i] == 0) continue;
    const double left = x_of(static_cast<double>(i)) + 1,
                 right = x_of(static_cast<double>(i) + 1) - 1;
    const double top = std::min(frame.y(bins.counts[i]), frame.bottom - 1);
    PathData& path = bins.first + static_cast<double>(i) < 0 ? losses : gains;
    path.move_to(left, frame.bottom).line_to(left, top).line_to(right, top);
    path.line_to(right, frame.bottom).close();
  }
  if (!losses.empty()) svg.element("path", {{"class", "h-loss"}, {"d", losses.text()}});
  if (!gains.empty()) svg.element("path", {{"class", "h-gain"}, {"d", gains.text()}});
  draw_rule(svg, "t-axis", frame.left, frame.bottom, frame.right, frame.bottom);
  // A label at every n-th edge, so that they do not touch, counted from zero.
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(bins.width) + 1e-9)));
  const auto label = [&](double edge) {
    std::string text = fmt::format("{:.{}f}", edge * bins.width + 0.0, decimals);
    return text.starts_with('-') ? "\u2212" + text.substr(1) : text;
  };
  double widest = 0;
  for (double edge = 0; edge <= num_bins; ++edge) {
    widest = std::max(widest, text_width(label(bins.first + edge), kSmallSize));
  }
  const double step = std::ceil((widest + 14) / (x_of(1) - x_of(0)));
  for (double edge = 0; edge <= num_bins; ++edge) {
    if (std::fmod(bins.first + edge, step) != 0) continue;
    const std::string text = label(bins.first + edge);
    const double half = text_width(text, kSmallSize) / 2;
    draw_rule(svg, "t-axis", x_of(edge), frame.bottom, x_of(edge), frame.bottom + 5);
    svg.text("t-tick", std::clamp(x_of(edge), half, layout.width - half), frame.bottom + 19, text,
             "middle");
  }
  svg.text("t-tick", layout.width - kPageMargin, frame.bottom + 36, clean_text(histogram.x_label),
           "end");
  SvgWriter outer;
  outer.open("svg", {{"class", layout.name},
                     {"viewBox", fmt::format("0 0 {} {}", layout.width, frame.bottom + 42)},
                     {"font-size", kFontSize},
                     {"role", "img"},
                     {"aria-label", histogram.title}});
  return outer.markup() + svg.markup() + "</svg>\n";
}

}  // namespace

std::string histogram_figure(const Histogram& histogram) {
  const bool usable =
      !histogram.values.empty() &&
      std::ranges::all_of(histogram.values, [](double value) { return std::isfinite(value); });
  if (!usable) {
    fail(ErrorCode::invalid_argument,
         "chart {}: {} values, expected at least one and all of them finite",
         quoted(histogram.title), histogram.values.size());
  }
  const Bins bins = bins_of(histogram.values);
  std::string html = "<div class=\"bars\">\n";
  for (const BinLayout& layout : kHistogramLayouts) html += draw_bins(histogram, bins, layout);
  return html + "</div>\n";
}

}  // namespace toto::report
