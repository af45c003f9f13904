#include "backtest/report_parts.h"

#include <fmt/format.h>

#include <cmath>

#include "report/svg.h"

namespace toto::backtest {
namespace {

constexpr std::string_view kUndefinedMark = "–";

}  // namespace

std::string percent(double value, int decimals) {
  if (!std::isfinite(value)) return std::string(kUndefinedMark);
  return fmt::format("{:+.{}f} %", 100 * value, decimals);
}

std::string decimal(double value, int decimals) {
  if (!std::isfinite(value)) return std::string(kUndefinedMark);
  return fmt::format("{:.{}f}", value, decimals);
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return std::string(kUndefinedMark);
  return fmt::format("{:.{}g}", value, digits);
}

std::string paragraph(std::string_view text, std::string_view css_class) {
  const std::string attribute =
      css_class.empty() ? "" : fmt::format(" class=\"{}\"", report::escape_xml(css_class));
  return fmt::format("<p{}>{}</p>\n", attribute, report::escape_xml(text));
}

std::string list_of_sentences(const std::vector<std::string>& sentences) {
  std::string html = "<ul class=\"plain\">\n";
  for (const std::string& sentence : sentences) {
    html += fmt::format("<li>{}</li>\n", report::escape_xml(sentence));
  }
  return html + "</ul>\n";
}

std::string Table::html() const {
  std::string html = "<div class=\"wide-box\"><table>\n<thead><tr>";
  for (const std::string& name : header_) {
    html += fmt::format("<th scope=\"col\">{}</th>", report::escape_xml(name));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : rows_) {
    html += "<tr>";
    for (const Cell& cell : row) {
      const std::string_view mark = cell.mark == Mark::none     ? ""
                                    : cell.mark == Mark::better ? " class=\"better\""
                                                                : " class=\"worse\"";
      html += fmt::format("<td{}>{}</td>", mark, report::escape_xml(cell.text));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace toto::backtest
