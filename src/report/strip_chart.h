// Distributions as strips: a dot per value and a stroke at the median, on one logarithmic axis.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace toto::report {

struct StripChart {
  struct Strip {
    std::string label;
    std::vector<double> values;  // at least one, all above 0
    std::size_t color = 0;       // below kLineColors of line_chart.h
    std::string remark;          // after the dots: "p50 1.2 ms"
  };
  std::string title;    // for screen readers
  std::string x_label;  // the quantity and its unit
  std::vector<Strip> strips;
};

// An SVG for a page made by html_page. Error(invalid_argument) for values that are not positive and
// finite.
std::string strip_chart_svg(const StripChart& chart);

}  // namespace toto::report
