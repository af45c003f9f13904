// Line charts of a report: drawing, refusals and escaped text.
#include "report/line_chart.h"

#include <gtest/gtest.h>

#include <limits>

#include "fan_chart_examples.h"
#include "io_fixture.h"

namespace toto::report {
namespace {

LineChart two_lines() {
  return {.title = "Equity",
          .y_label = "equity",
          .times = {},
          .lines = {{.label = "first", .values = {1, 2, 3}, .color = 0},
                    {.label = "second", .values = {1, 0.5f, 0.25f}, .color = 8}}};
}

TEST(LineChart, DrawsEveryLineInItsColourWithALegend) {
  const std::string svg = line_chart_svg(two_lines());
  for (const char* part :
       {"l-0", "l-8", ">first<", ">second<", ">equity<", "aria-label=\"Equity\""}) {
    EXPECT_TRUE(has(svg, part)) << part;
  }
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(LineChart, GapsAndConstantsAreFine) {
  constexpr float kGap = std::numeric_limits<float>::quiet_NaN();
  LineChart chart = two_lines();
  chart.lines[0].values = {kGap, kGap, kGap};
  chart.lines[1].values = {1, kGap, 1};
  EXPECT_FALSE(has(line_chart_svg(chart), "nan"));
  chart.lines = {{.label = "one", .values = {5}, .color = 1}};
  EXPECT_TRUE(has(line_chart_svg(chart), "t-dot"));
  chart.times = {0};
  EXPECT_TRUE(has(line_chart_svg(chart), "1970"));
}

TEST(LineChart, TextIsEscaped) {
  LineChart chart = two_lines();
  chart.title = chart.y_label = chart.lines[0].label = "<script>\"&";
  const std::string svg = line_chart_svg(chart);
  EXPECT_FALSE(has(svg, "<script>"));
  EXPECT_TRUE(has(svg, "&lt;script&gt;"));
}

TEST(LineChart, WrongShapesAreRefused) {
  const auto refused = [](const LineChart& chart, std::string_view part) {
    io::expect_error(ErrorCode::invalid_argument, {"\"Equity\"", part},
                     [&] { line_chart_svg(chart); });
  };
  LineChart chart = two_lines();
  chart.lines[1].values.pop_back();
  refused(chart, "2 values");
  chart = two_lines();
  chart.lines[1].color = kLineColors;
  refused(chart, "colour 9");
  chart = two_lines();
  chart.times = {1};
  refused(chart, "1 times for 3 steps");
  chart.lines.clear();
  refused(chart, "0 lines");
}

}  // namespace
}  // namespace toto::report
