// Tables for Markdown and for a terminal; text from files cannot break out of them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validate/judged_report.h"

namespace toto::validate {

using Cells = std::vector<std::string>;

// Escapes text for a table cell or a line of Markdown, which may be shown as HTML.
std::string markdown_cell(std::string_view text);

// The first row is the heading; texts are escaped here. The first `num_words` columns are aligned
// left, the others (numbers) right.
std::string markdown_table(std::span<const Cells> rows, std::size_t num_words);

// "- text" per line, escaped.
std::string markdown_list(std::span<const std::string> texts);

// For a terminal: columns as wide as their widest cell.
std::string aligned_table(std::span<const Cells> rows, std::size_t num_words);

// The heading, then name, result, meaning, figure and bound of each check.
std::vector<Cells> check_rows(std::span<const CheckResult> checks);

// Four significant digits; "-" for no value.
std::string figure_text(const std::optional<double>& value);

}  // namespace toto::validate
