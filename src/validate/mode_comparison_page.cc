// A comparison as an HTML page: every latency as a dot, and the forecasts next to the actual
// values.
#include <cmath>

#include "base/error.h"
#include "report/html_table.h"
#include "report/line_chart.h"
#include "report/page.h"
#include "report/strip_chart.h"
#include "report/svg.h"
#include "validate/mode_comparison_rows.h"

namespace toto::validate {
namespace {

using report::escape_xml;

std::size_t color_of(Mode mode) { return static_cast<std::size_t>(mode); }

std::string boxed(std::string_view title, std::string_view svg) {
  return fmt::format("<h3>{}</h3>\n<div class=\"wide-box lines\">\n{}</div>\n", escape_xml(title),
                     svg);
}

std::vector<const CompareRow*> rows_of(const CompareReport& report, const std::string& symbol) {
  std::vector<const CompareRow*> rows;
  for (const CompareRow& row : report.rows) {
    if (row.symbol == symbol) rows.push_back(&row);
  }
  return rows;
}

std::string latency_chart(const std::vector<const CompareRow*>& rows) {
  report::StripChart chart{
      .title = fmt::format("Time of every forecast of {}", rows[0]->symbol),
      .x_label = "ms, logarithmic; one dot per forecast, the stroke is the median",
      .strips = {}};
  for (const CompareRow* row : rows) {
    chart.strips.push_back(
        {.label = std::string(name_of(row->mode)),
         .values = row->milliseconds,
         .color = color_of(row->mode),
         .remark = fmt::format("p50 {:.3g}, p95 {:.3g} ms", row->latency.p50, row->latency.p95)});
  }
  return boxed(chart.title, report::strip_chart_svg(chart));
}

// Shows one mode: the lines of the others would cover it.
std::string forecast_chart(const CompareReport& report, const CompareRow& row) {
  report::LineChart chart{.title = fmt::format("{}: forecasts of {} mode and actual values",
                                               row.symbol, name_of(row.mode)),
                          .y_label = fmt::format("the last {} values", row.actual.size()),
                          .times = {},
                          .lines = {}};
  chart.lines.push_back({.label = "actual", .values = row.actual, .color = 0});
  chart.lines.push_back(
      {.label = fmt::format(
           "forecast, {} ahead",
           report.horizon == 1 ? "1 step" : fmt::format("1 to {} steps", report.horizon)),
       .values = row.predicted,
       .color = 1});
  return fmt::format("<h3>{}</h3>\n{}", escape_xml(chart.title), report::line_chart_figure(chart));
}

// Marks the failed checks.
std::string checks_table(const CompareReport& report) {
  std::vector<std::string> classes = {""};
  for (const CheckResult& check : report.checks) classes.emplace_back(check.passed ? "" : "failed");
  return fmt::format("<div class=\"checks\">\n{}</div>\n",
                     report::html_table(check_rows(report.checks), 3, classes));
}

}  // namespace

std::string page_html(const CompareReport& report) {
  std::string body = fmt::format(
      "<p class=\"subtitle\">{}</p>\n<p class=\"footnote\">{}</p>\n"
      "<p{}><strong>{}</strong></p>\n<ul>\n",
      escape_xml(setting_of(report)), escape_xml(made_of(report)),
      report.passed() ? "" : " class=\"worse\"", escape_xml(verdict_of(report)));
  for (const std::string& sentence : report.findings()) {
    body += fmt::format("<li>{}</li>\n", escape_xml(sentence));
  }
  body += "</ul>\n";
  for (const std::string& warning : report.warnings) {
    body += fmt::format("<p class=\"note\">{}</p>\n", escape_xml(warning));
  }
  if (!report.trained) {
    body += "<p class=\"note\">Untrained weights: the MAE says nothing about a real model</p>\n";
  }
  std::string times, forecasts, last;
  for (const CompareRow& row : report.rows) {
    if (row.symbol == last) continue;
    last = row.symbol;
    const std::vector<const CompareRow*> rows = rows_of(report, row.symbol);
    times += latency_chart(rows);
    forecasts += forecast_chart(report, *rows.back());
  }
  body += "<section>\n<h2>Time and memory</h2>\n" + times + "<div class=\"dense\">\n" +
          report::html_table(speed_rows(report), 2) + "</div>\n" +
          "</section>\n<section>\n<h2>Accuracy</h2>\n<p class=\"subtitle\">MAE against the actual "
          "values, next to that of persistence. Deviations are from reference, of mean, median and "
          "quantiles, in the unit of the data. Optimised modes are also compared with each other, "
          "bit for bit.</p>\n" +
          report::html_table(accuracy_rows(report), 2) + forecasts + "</section>\n";
  body += "<section>\n<h2>Checks</h2>\n" + checks_table(report) + "</section>\n";
  return report::html_page("Modes side by side", body);
}

}  // namespace toto::validate
