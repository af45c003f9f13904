// The rows that the table and the page share.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "eval/eval_report.h"

namespace toto::eval {

using Cells = std::vector<std::string>;

// About four digits; "-" for no value.
std::string figure_text(std::optional<double> value);
std::string percent_text(std::optional<double> share);  // "79.3 %"

// "3 series, 30 windows of 48 steps, season 24, 1 series skipped"
std::string summary_of(const DatasetResult& result, int horizon);

// The heading, then one row per contender.
std::vector<Cells> metric_rows(const DatasetResult& result, const EvalReport& report);

// Ratios of the model to its baselines.
Cells ratio_heading(std::string what);
Cells ratio_cells(std::string name, const Scores& scores);
// The same for geometric means, which have no coverage.
Cells mean_cells(std::string name, const std::function<RatioMean(Contender)>& mean_to);
// Over all data sets, if there are several.
Cells overall_cells(const EvalReport& report);

}  // namespace toto::eval
