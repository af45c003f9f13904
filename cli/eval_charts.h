// The charts of `toto eval --report` and `--plots`: the best, the median and the worst window of a
// data set.
#pragma once

#include <string>
#include <vector>

#include "cli/settings/settings.h"
#include "eval/evaluate.h"
#include "report/fan_chart.h"

namespace toto::cli {

struct WindowChart {
  std::string label;  // "best"
  report::FanChart chart;
};

// Forecasts these windows once more, which gives the same bits: keeping every forecast until the
// median is known would take memory without bound.
std::vector<WindowChart> window_charts(const tables::InputData& input,
                                       const eval::DatasetResult& result,
                                       const eval::EvalOptions& options,
                                       const LoadedEngine& loaded);

}  // namespace toto::cli
