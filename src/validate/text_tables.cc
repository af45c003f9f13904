#include "validate/text_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace toto::validate {

std::string markdown_cell(std::string_view text) {
  std::string result;
  for (const char c : one_line(text)) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      if (std::string_view("|\\`*_[]").find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
  }
  return result;
}

std::string markdown_table(std::span<const Cells> rows, std::size_t num_words) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += '|';
    for (const std::string& cell : rows[i]) text += fmt::format(" {} |", markdown_cell(cell));
    text += '\n';
    if (i > 0) continue;
    text += '|';
    for (std::size_t j = 0; j < rows[i].size(); ++j) text += j < num_words ? "---|" : "---:|";
    text += '\n';
  }
  return text;
}

std::string markdown_list(std::span<const std::string> texts) {
  std::string list;
  for (const std::string& text : texts) list += fmt::format("- {}\n", markdown_cell(text));
  return list;
}

std::string aligned_table(std::span<const Cells> rows, std::size_t num_words) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = one_line(row[i]);
      line += i == 0 ? "" : "  ";
      line += i < num_words ? fmt::format("{:<{}}", cell, widths[i])
                            : fmt::format("{:>{}}", cell, widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::vector<Cells> check_rows(std::span<const CheckResult> checks) {
  std::vector<Cells> rows = {{"check", "result", "meaning", "figure", "at most"}};
  for (const CheckResult& check : checks) {
    rows.push_back({check.name, check.passed ? "pass" : "FAIL", check.detail,
                    figure_text(check.figure), figure_text(check.bound)});
  }
  return rows;
}

std::string figure_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "-";
}

}  // namespace toto::validate
