// The rows that the table, the Markdown and the page of a comparison share.
#pragma once

#include <string>
#include <vector>

#include "validate/mode_comparison.h"
#include "validate/text_tables.h"

namespace toto::validate {

// "PASSED: 28 of 28 checks hold"; names the failed ones.
std::string verdict_of(const CompareReport& report);
// "20 forecasts of 1 step per symbol and mode, from up to 512 points, 128 samples, seed 0, ..."
std::string setting_of(const CompareReport& report);
// Date, machine, version and weights.
std::string made_of(const CompareReport& report);

// The heading, then one row per symbol and mode. Two tables: one would be too wide for a page.
std::vector<Cells> speed_rows(const CompareReport& report);
std::vector<Cells> accuracy_rows(const CompareReport& report);

}  // namespace toto::validate
