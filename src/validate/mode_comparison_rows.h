// The rows that the table, the Markdown and the page of a comparison share.
#pragma once

#include <string>
#include <vector>

#include "validate/mode_comparison.h"
#include "validate/text_tables.h"

namespace toto::validate {

// "PASSED: 28 of 28 checks hold", or which do not.
std::string verdict_of(const CompareReport& report);
// "20 forecasts of 1 step a symbol and mode, from 512 points, 128 samples, seed 0"
std::string setting_of(const CompareReport& report);
// When, where, by which version and of which weights
std::string made_of(const CompareReport& report);

// The heading, then a row for each symbol and mode, by subject: both together would not fit a page.
std::vector<Cells> speed_rows(const CompareReport& report);
std::vector<Cells> accuracy_rows(const CompareReport& report);

}  // namespace toto::validate
