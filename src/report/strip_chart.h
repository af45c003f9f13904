// Distributions side by side: a dot for every value, a stroke for the median, on one logarithmic
// axis, where twice as long looks the same for fast and slow.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace toto::report {

struct StripChart {
  struct Strip {
    std::string label;
    std::vector<double> values;  // at least one, all above 0
    std::size_t color = 0;       // below kMaxLines of line_chart.h
    std::string remark;          // behind the dots: "p50 1.2 ms"
  };
  std::string title;    // for those who hear the chart instead of seeing it
  std::string x_label;  // what is measured, with its unit
  std::vector<Strip> strips;
};

// An SVG for a page made by html_page. Error(invalid_argument) for values no axis can show.
std::string strip_chart_svg(const StripChart& chart);

}  // namespace toto::report
