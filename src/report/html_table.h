// A table for a page made by html_page.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace toto::report {

// Rows of plain text, escaped here; the first row is the heading. The first `num_words` columns are
// aligned left, the others right. `classes`: CSS classes of the rows, or empty.
std::string html_table(std::span<const std::vector<std::string>> rows, std::size_t num_words = 1,
                       std::span<const std::string> classes = {});

}  // namespace toto::report
