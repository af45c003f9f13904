// The rows that the table, the Markdown and the page of a comparison share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "validate/compare.h"

namespace toto::validate {

using Cells = std::vector<std::string>;

// "PASSED: 28 of 28 checks hold", or which do not.
std::string verdict_of(const CompareReport& report);
// "20 forecasts of 1 step a symbol and mode, from 512 points, 128 samples, seed 0"
std::string setting_of(const CompareReport& report);

// The heading, then a row for each symbol and mode, by subject: all three would not fit a page.
std::vector<Cells> speed_rows(const CompareReport& report);
std::vector<Cells> accuracy_rows(const CompareReport& report);
std::vector<Cells> check_rows(std::span<const Check> checks);

}  // namespace toto::validate
