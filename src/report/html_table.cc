#include "report/html_table.h"

#include <fmt/format.h>

#include <string_view>

#include "report/svg.h"

namespace toto::report {

std::string html_table(std::span<const std::vector<std::string>> rows, std::size_t num_words) {
  std::string html = "<div class=\"scroll\"><table>\n<thead>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    html += "<tr>";
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      const std::string_view tag = i == 0 || j == 0 ? "th" : "td";
      const std::string_view left = j > 0 && j < num_words ? " class=\"word\"" : "";
      html += fmt::format("<{}{}>{}</{}>", tag, left, escape_xml(rows[i][j]), tag);
    }
    html += i == 0 ? "</tr>\n</thead>\n<tbody>\n" : "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

}  // namespace toto::report
