// Line charts of a report: drawing, refusals and escaped text.
#include "report/line_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fan_chart_examples.h"
#include "io_fixture.h"
#include "report/histogram.h"

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
  const std::string svg = line_chart_figure(two_lines());
  for (const char* part :
       {"l-0", "l-8", ">first<", ">second<", ">equity<", "aria-label=\"Equity\""}) {
    EXPECT_TRUE(has(svg, part)) << part;
  }
  EXPECT_TRUE(has(svg, "class=\"wide\"") && has(svg, "class=\"narrow\"")) << svg;
}

TEST(LineChart, TheLegendSwitchesLinesAndMarkers) {
  LineChart chart = two_lines();
  chart.lines[1].shown = false;
  chart.markers = {
      {.label = "trades",
       .marks = {{.step = 0, .value = 1, .sign = LineChart::Sign::up, .text = "long at 1"},
                 {.step = 2, .value = 4, .sign = LineChart::Sign::out, .text = "out"}}}};
  const std::string html = line_chart_figure(chart);
  EXPECT_TRUE(has(html, "data-line=\"0\" aria-pressed=\"true\""));
  EXPECT_TRUE(has(html, "data-line=\"1\" aria-pressed=\"false\""));
  EXPECT_TRUE(has(html, "<g data-line=\"1\" class=\"off\">"));
  EXPECT_TRUE(has(html, "<g data-line=\"2\"><path class=\"m-out\""));
  EXPECT_TRUE(has(html, R"("markers":[[{"at":0,"text":"long at 1"},{"at":2,"text":"out"}]])"))
      << html;
  EXPECT_TRUE(has(html, ">4<")) << "the axis holds markers beyond the lines";
  chart.markers[0].marks[1].step = 3;
  io::expect_error(ErrorCode::invalid_argument, {"\"trades\"", "step 3 of 3"},
                   [&] { line_chart_figure(chart); });
}

TEST(LineChart, ALongSeriesHasAThousandReadings) {
  LineChart chart{.title = "Long", .y_label = "y", .times = {}, .lines = {}};
  chart.lines.push_back({.label = "one", .values = std::vector<float>(100'000, 1.5f)});
  chart.lines[0].values[7] = 2;
  const std::string html = line_chart_figure(chart);
  EXPECT_LT(html.size(), 60'000u);
  EXPECT_TRUE(has(html, "99900]")) << "the last step with a reading";
}

TEST(Histogram, CountsGainsAndLossesApart) {
  const std::string html = histogram_figure({.title = "Trades",
                                             .x_label = "percent",
                                             .y_label = "trades",
                                             .values = {-1, -0.4, 0, 0.3, 2}});
  for (const char* part :
       {"h-loss", "h-gain", "class=\"narrow\"", "aria-label=\"Trades\"", ">percent<"}) {
    EXPECT_TRUE(has(html, part)) << part;
  }
  EXPECT_FALSE(
      has(histogram_figure({.title = "T", .x_label = "x", .y_label = "y", .values = {3, 3}}),
          "h-loss"));
  for (const double scale : {1e-7, 1.0, 1e9}) {
    EXPECT_FALSE(has(
        histogram_figure({.title = "T", .x_label = "x", .y_label = "y", .values = {-scale, scale}}),
        "nan"));
  }
  io::expect_error(ErrorCode::invalid_argument, {"0 values"}, [] { histogram_figure({}); });
  io::expect_error(ErrorCode::invalid_argument, {"\"\"", "finite"},
                   [] { histogram_figure({"", "", "", {HUGE_VAL}}); });
}

TEST(LineChart, GapsAndConstantsAreFine) {
  constexpr float kGap = std::numeric_limits<float>::quiet_NaN();
  LineChart chart = two_lines();
  chart.lines[0].values = {kGap, kGap, kGap};
  chart.lines[1].values = {1, kGap, 1};
  EXPECT_FALSE(has(line_chart_figure(chart), "nan"));
  chart.lines = {{.label = "one", .values = {5}, .color = 1}};
  EXPECT_TRUE(has(line_chart_figure(chart), "t-dot"));
  chart.times = {0};
  EXPECT_TRUE(has(line_chart_figure(chart), "1970"));
}

TEST(LineChart, TextIsEscaped) {
  LineChart chart = two_lines();
  chart.title = chart.y_label = chart.lines[0].label = "<script>\"&";
  const std::string svg = line_chart_figure(chart);
  EXPECT_FALSE(has(svg, "<script>"));
  EXPECT_TRUE(has(svg, "&lt;script&gt;"));
}

TEST(LineChart, WrongShapesAreRefused) {
  const auto refused = [](const LineChart& chart, std::string_view part) {
    io::expect_error(ErrorCode::invalid_argument, {"\"Equity\"", part},
                     [&] { line_chart_figure(chart); });
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
