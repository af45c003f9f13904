// A table for a page made by html_page.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace toto::report {

// Rows of plain text, which is escaped here; the first row is the heading.
std::string html_table(std::span<const std::vector<std::string>> rows);

}  // namespace toto::report
