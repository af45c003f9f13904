#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "eval/eval_report.h"
#include "eval/eval_rows.h"
#include "report/html_table.h"
#include "report/page.h"
#include "report/svg.h"

namespace toto::eval {
namespace {

using report::escape_xml;

constexpr std::string_view kLegend =
    "<p class=\"footnote\">Ratios of the model to a baseline: below 1 the model is better. naive: "
    "the value one season ago, for every quantile. bands: the same with bands from its own errors. "
    "persistence: the latest value. in 80 %: share of the actual values inside the model's 80 % "
    "band.</p>\n";
constexpr std::size_t kMaxSeriesRows = 200;  // of one data set; --json has all of them

// ------------------------------------------------------------------------------------ ratio bars

struct Bar {
  std::string label;
  std::optional<double> naive, bands;
};

struct BarLayout {
  std::string_view css_class;
  double width, label_width;
};
constexpr BarLayout kWideBars = {"wide", 880, 190};
constexpr BarLayout kNarrowBars = {"narrow", 400, 122};

constexpr double kFontSize = 13, kBarHeight = 9, kRowHeight = 34, kTop = 44;

std::string draw_bars(std::span<const Bar> bars, const BarLayout& layout) {
  double longest = 1.2;
  for (const Bar& bar : bars) {
    longest = std::max({longest, bar.naive.value_or(0), bar.bands.value_or(0)});
  }
  longest = std::min(longest, 3.0);  // longer bars are cut; their number is shown
  const double left = layout.label_width, room = layout.width - left - 52;
  const auto x = [&](double ratio) { return left + room * std::min(ratio, longest) / longest; };
  const double height = kTop + kRowHeight * static_cast<double>(bars.size()) + 22;
  report::SvgWriter svg;
  svg.open("svg", {{"class", layout.css_class},
                   {"viewBox", fmt::format("0 0 {} {}", layout.width, height)},
                   {"font-size", kFontSize},
                   {"aria-hidden", "true"}});
  const auto swatch = [&](std::string_view css_class, double at, std::string_view text) {
    svg.element(
        "rect",
        {{"class", css_class}, {"x", at}, {"y", 3.0}, {"width", 14.0}, {"height", kBarHeight}});
    svg.text("t-legend", at + 19, 12, text);
    return at + 19 + report::text_width(text, kFontSize) + 16;
  };
  swatch("t-bar-second", swatch("t-bar", 0, "over seasonal naive"), "over its bands");
  const double one = x(1);
  svg.text("t-tick", one, kTop - 12, "1: as good", "middle");
  // Drawn before the numbers, whose outline then covers it.
  const double bottom = height - 22;
  svg.element("path",
              {{"class", "t-origin"},
               {"d", report::PathData().move_to(one, kTop - 6).line_to(one, bottom).text()}});
  double y = kTop;
  for (const Bar& bar : bars) {
    svg.text("t-legend", 0, y + 15,
             report::fit_text(report::clean_text(bar.label), kFontSize, left - 10));
    double top = y + 1;
    for (const auto& [ratio, css_class] :
         {std::pair(bar.naive, "t-bar"), std::pair(bar.bands, "t-bar-second")}) {
      if (ratio) {
        svg.element("rect", {{"class", css_class},
                             {"x", left},
                             {"y", top},
                             {"width", x(*ratio) - left},
                             {"height", kBarHeight}});
      }
      svg.text("t-tick", ratio ? x(*ratio) + 6 : left, top + 9, figure_text(ratio));
      top += kBarHeight + 3;
    }
    y += kRowHeight;
  }
  svg.close();
  return svg.markup();
}

std::string bars_figure(const EvalReport& report) {
  std::vector<Bar> bars;
  const auto add = [&](std::string label, const Ratios& naive, const Ratios& bands) {
    bars.push_back({.label = std::move(label), .naive = naive.wql, .bands = bands.wql});
  };
  for (const DatasetResult& result : report.datasets) {
    add(result.name, result.total.ratios_to(Contender::seasonal_naive),
        result.total.ratios_to(Contender::seasonal_naive_bands));
  }
  if (report.datasets.size() > 1) {
    add("geometric mean", report.overall(Contender::seasonal_naive).mean(),
        report.overall(Contender::seasonal_naive_bands).mean());
  }
  return "<figure>\n<h2>Weighted quantile loss of the model over that of seasonal naive</h2>\n"
         "<p class=\"subtitle\">Below 1 the model is better. The table has the same figures.</p>\n"
         "<div class=\"bars\">\n" +
         draw_bars(bars, kWideBars) + draw_bars(bars, kNarrowBars) + "</div>\n</figure>\n";
}

// ---------------------------------------------------------------------------------------- tables

std::string summary_table(const EvalReport& report) {
  std::vector<Cells> rows = {ratio_heading("data set")};
  for (const DatasetResult& result : report.datasets) {
    rows.push_back(ratio_cells(result.name, result.total));
  }
  if (report.datasets.size() > 1) rows.push_back(overall_cells(report));
  return report::html_table(rows);
}

std::string series_table(const DatasetResult& result) {
  if (result.series.size() < 2) return {};
  const std::size_t shown = std::min(result.series.size(), kMaxSeriesRows);
  std::vector<Cells> rows = {ratio_heading("series")};
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back(ratio_cells(result.series[i].id, result.series[i].scores));
  }
  return fmt::format("<details><summary>{} of {} series</summary>\n{}</details>\n", shown,
                     result.series.size(), report::html_table(rows));
}

}  // namespace

std::string page_html(const EvalReport& report,
                      std::span<const std::vector<report::FanChart>> charts) {
  const tables::EngineBlock& engine = report.engine;
  std::string body = fmt::format(
      "<p class=\"subtitle\">{}</p>\n",
      escape_xml(fmt::format(
          "Rolling forecasts of {} from at most {} values of history, model {}, mode {}, "
          "toto.cpp {}",
          counted(report.windows.horizon, "step"), report.context, engine.model, engine.mode,
          engine.version)));
  if (!engine.trained) {
    body +=
        "<p class=\"note\">Untrained weights: these figures say nothing about a real model</p>\n";
  }
  body += summary_table(report);
  body += kLegend;
  body += bars_figure(report);
  for (std::size_t i = 0; i < report.datasets.size(); ++i) {
    const DatasetResult& result = report.datasets[i];
    body +=
        fmt::format("<section>\n<h2>{}</h2>\n<p class=\"subtitle\">{}</p>\n{}{}",
                    escape_xml(result.name), escape_xml(summary_of(result, report.windows.horizon)),
                    report::html_table(metric_rows(result, report)), series_table(result));
    for (const report::FanChart& chart : charts[i]) body += report::fan_chart_figure(chart);
    body += "</section>\n";
  }
  return report::html_page(fmt::format("Forecast accuracy of {}", engine.model), body);
}

}  // namespace toto::eval
