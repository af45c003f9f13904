// Strip charts of a report: drawing, refusals and escaped text.
#include "report/strip_chart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fan_chart_examples.h"
#include "io_fixture.h"

namespace toto::report {
namespace {

StripChart two_strips() {
  return {.title = "Times",
          .x_label = "ms",
          .strips = {{.label = "slow", .values = {40, 50, 41}, .color = 0, .remark = "p50 41"},
                     {.label = "fast", .values = {0.5, 0.5}, .color = 2, .remark = "p50 0.5"}}};
}

std::size_t count(const std::string& text, char c) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), c));
}

TEST(StripChart, DrawsADotForEveryValueAndALogarithmicAxis) {
  const std::string svg = strip_chart_svg(two_strips());
  for (const char* part : {">slow<", ">fast<", ">ms<", ">p50 41<", "aria-label=\"Times\"", ">0.5<",
                           ">50<", "l-0", "l-2"}) {
    EXPECT_TRUE(has(svg, part)) << part << "\n" << svg;
  }
  const std::size_t dots = svg.find("s-dots");
  EXPECT_EQ(count(svg.substr(dots, svg.find('>', dots) - dots), 'M'), 3U);
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(StripChart, OneValueAndManyDecadesAreFine) {
  StripChart chart = two_strips();
  chart.strips.resize(1);
  for (const std::vector<double>& values :
       {std::vector<double>{1}, {0.0001, 1e7}, {2}, {5, 5}, {1e-250, 1e250}}) {
    chart.strips[0].values = values;
    const std::string svg = strip_chart_svg(chart);
    EXPECT_FALSE(has(svg, "nan") || has(svg, "inf")) << svg;
  }
}

TEST(StripChart, HostileTextStaysText) {
  StripChart chart = two_strips();
  chart.title = chart.x_label = chart.strips[0].label = chart.strips[0].remark =
      "<script>\"&\n\x01";
  EXPECT_FALSE(has(strip_chart_svg(chart), "<script"));
}

TEST(StripChart, RefusesValuesThatAreNotPositive) {
  const auto refused = [](const std::vector<double>& values, std::size_t color = 0) {
    StripChart chart = two_strips();
    chart.strips[1].values = values;
    chart.strips[1].color = color;
    EXPECT_THROW(strip_chart_svg(chart), Error);
  };
  refused({});
  refused({0});
  refused({-1});
  refused({NAN});
  refused({INFINITY});
  refused({1}, 9);
  EXPECT_THROW(strip_chart_svg({}), Error);
}

}  // namespace
}  // namespace toto::report
