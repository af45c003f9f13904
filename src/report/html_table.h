// A table for a page made by html_page.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace toto::report {

// Rows of plain text, which is escaped here; the first row is the heading. The first `num_words`
// columns begin at the left, figures end at the right.
std::string html_table(std::span<const std::vector<std::string>> rows, std::size_t num_words = 1);

}  // namespace toto::report
