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

std::string share(double value, int decimals) {
  if (!std::isfinite(value)) return std::string(kUndefinedMark);
  return fmt::format("{:.{}f} %", 100 * value, decimals);
}

std::string decimal(double value, int decimals) {
  if (!std::isfinite(value)) return std::string(kUndefinedMark);
  return fmt::format("{:.{}f}", value, decimals);
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return std::string(kUndefinedMark);
  std::string text = fmt::format("{:#.{}g}", value, digits);  // zeros at the end count too
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string points(double value) {
  if (!std::isfinite(value)) return std::string(kUndefinedMark);
  return fmt::format("{:+.2f}", 100 * value);
}

std::string p_value(double value) { return value < 0.001 ? "< 0.001" : decimal(value, 3); }

std::string price(double value) {
  const double size = std::abs(value);
  return decimal(value, size >= 10 ? 2 : size >= 0.1 ? 4 : 8);
}

std::string bars_in_words(std::size_t count) {
  return count == 1 ? "one bar" : fmt::format("{} bars", count);
}

std::string section(std::string_view title, const std::string& body) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", report::escape_xml(title), body);
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
  const auto word = [&](std::size_t column) { return column < num_words_ ? "word" : ""; };
  std::string html =
      fmt::format("<div class=\"wide-box{}\"><table>\n<thead><tr>", dense_ ? " dense" : "");
  for (std::size_t i = 0; i < header_.size(); ++i) {
    html += fmt::format("<th scope=\"col\" class=\"{}\">{}</th>", word(i),
                        report::escape_xml(header_[i]));
  }
  html += "</tr></thead>\n<tbody>\n";
  const bool grouped = dense_ && num_words_ > 1;
  const std::string* group = nullptr;
  for (const std::vector<Cell>& row : rows_) {
    const bool same = group != nullptr && *group == row.front().text;
    html += grouped && group != nullptr && !same ? "<tr class=\"first\">" : "<tr>";
    group = &row.front().text;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == 0 && grouped && same) {
        html += "<td></td>";
        continue;
      }
      const std::string_view mark = wrap_last_ && i + 1 == row.size() ? "why"
                                    : row[i].mark == Mark::none       ? word(i)
                                    : row[i].mark == Mark::better     ? "better"
                                                                      : "worse";
      const std::string attribute = mark.empty() ? "" : fmt::format(" class=\"{}\"", mark);
      html += fmt::format("<td{}>{}</td>", attribute, report::escape_xml(row[i].text));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace toto::backtest
