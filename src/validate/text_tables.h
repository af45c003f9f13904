// Tables of text, in Markdown and for a terminal, that stay what they are whatever the texts hold.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validate/verify.h"

namespace toto::validate {

using Cells = std::vector<std::string>;

// A text inside a table or a line, which may be shown as HTML.
std::string markdown_cell(std::string_view text);

// The first row is the heading; texts are escaped here. The first `num_words` columns begin at the
// left, figures end at the right.
std::string markdown_table(std::span<const Cells> rows, std::size_t num_words);

// For a terminal: columns as wide as their widest cell.
std::string aligned_table(std::span<const Cells> rows, std::size_t num_words);

// The heading, then name, result, meaning, figure and bound of every check.
std::vector<Cells> check_rows(std::span<const Check> checks);

// With four digits; a dash for no value.
std::string figure_text(const std::optional<double>& value);

}  // namespace toto::validate
