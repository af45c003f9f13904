// How values are distributed: bars over equal intervals, those below zero in another colour.
#pragma once

#include <string>
#include <vector>

namespace toto::report {

struct Histogram {
  std::string title;           // for screen readers
  std::string x_label;         // the quantity and its unit
  std::string y_label;         // what is counted
  std::vector<double> values;  // at least one, all finite
};

// Drawings for wide and narrow windows, for a page made by html_page. Zero is always between two
// bars. Error(invalid_argument) for no value or one that is not finite.
std::string histogram_figure(const Histogram& histogram);

}  // namespace toto::report
