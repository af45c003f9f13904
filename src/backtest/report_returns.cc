// Where the returns came from: charts, months, drawdowns, sides and trades.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "backtest/report_parts.h"
#include "report/histogram.h"
#include "report/line_chart.h"
#include "report/svg.h"

namespace toto::backtest {
namespace {

using report::LineChart;

// Positions of the tracks drawn at first: buy-hold, a benchmark file and the three with the highest
// Sharpe ratio. Nine crossing lines are unreadable; the legend switches the others on.
std::vector<std::size_t> leaders_of(const Story& story) {
  constexpr std::size_t kShown = 3;
  std::vector<std::size_t> order(story.tracks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) {
    const Track& track = story.tracks[i];
    const bool first = track.strategy == nullptr || track.strategy == &benchmark_strategy();
    const double sharpe = std::isnan(track.metrics.sharpe) ? -HUGE_VAL : track.metrics.sharpe;
    return std::tuple(!first, i != story.best, -sharpe, -track.metrics.total_return, i);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  order.resize(std::min(order.size(), kShown + (story.benchmark_file() == nullptr ? 1 : 2)));
  return order;
}

// One line for each track, in its own colour in every chart.
template <typename Values>
LineChart lines_of(const Story& story, std::string title, std::string y_label,
                   const Values& values) {
  LineChart chart{.title = std::move(title),
                  .y_label = std::move(y_label),
                  .times = story.seconds,
                  .lines = {}};
  const std::vector<std::size_t> leaders = leaders_of(story);
  for (std::size_t i = 0; i < story.tracks.size(); ++i) {
    const Track& track = story.tracks[i];
    const bool is_file = track.strategy == nullptr;
    const std::size_t order = is_file ? 0 : order_of(*track.strategy);
    chart.lines.push_back({.label = track.label,
                           .values = values(track),
                           .color = order % report::kLineColors,
                           .dashed = is_file || order >= report::kLineColors,
                           .shown = std::ranges::find(leaders, i) != leaders.end()});
  }
  return chart;
}

std::string chart_box(const LineChart& chart) {
  return heading(chart.title) + report::line_chart_figure(chart);
}

std::vector<float> with_start(float start, std::span<const double> values) {
  std::vector<float> result = {start};
  for (const double value : values) result.push_back(static_cast<float>(value));
  return result;
}

std::vector<double> drawdowns(std::span<const double> equity) {
  std::vector<double> values;
  double peak = 1;
  for (const double value : equity) {
    peak = std::max(peak, value);
    values.push_back(100 * (value / peak - 1));
  }
  return values;
}

// A quarter of a year, at least 63 bars; 63 where that leaves too little to see.
std::size_t rolling_window(const Story& story) {
  constexpr std::size_t kLeast = 63;
  const auto quarter = static_cast<std::size_t>(std::lround(story.bars_per_year / 4));
  return quarter > kLeast && story.count() >= 2 * quarter ? quarter : kLeast;
}

std::string rolling_sharpe_chart(const Story& story) {
  const std::size_t window = rolling_window(story);
  const std::string title = fmt::format("Sharpe ratio of the last {} bars", window);
  if (story.count() <= window) {
    return heading(title) +
           paragraph(fmt::format("The run has {}, too few for it.", bars_in_words(story.count())),
                     "subtitle");
  }
  return chart_box(lines_of(story, title, "annualised", [&](const Track& track) {
    return with_start(std::numeric_limits<float>::quiet_NaN(),
                      rolling_sharpe(track.returns, window, story.bars_per_year));
  }));
}

// ----------------------------------------------------------------------------------------- trades

// Entries and exits of one track at their prices. A fill moved to the close before is on that bar.
LineChart::Markers markers_of(const Story& story, const Track& track) {
  std::multimap<std::size_t, LineChart::Marker> marks;  // by step, then in the order of the trades
  const auto add = [&](LineChart::Marker mark) { marks.emplace(mark.step, std::move(mark)); };
  const std::size_t start = story.bars.front() - 1;
  for (const Trade& trade : track.trades) {
    const bool is_long = trade.side == Side::buy;
    add({.step = trade.entry_bar - start,
         .value = static_cast<float>(trade.entry_price),
         .sign = is_long ? LineChart::Sign::up : LineChart::Sign::down,
         .text = fmt::format("{} at {}", name_of(trade.side), price(trade.entry_price))});
    add({.step = trade.exit_bar - start,
         .value = static_cast<float>(trade.exit_price),
         .sign = LineChart::Sign::out,
         .text = fmt::format("out at {}, {}", price(trade.exit_price), percent(trade.net_return))});
  }
  LineChart::Markers group{.label = "trades of " + track.label, .marks = {}};
  for (auto& [step, mark] : marks) group.marks.push_back(std::move(mark));
  return group;
}

struct SideFigures {
  std::size_t count = 0, wins = 0;
  double sum = 0;
};

std::vector<Table::Cell> side_cells(std::span<const Trade> trades, Side side) {
  SideFigures figures;
  for (const Trade& trade : trades) {
    if (trade.side != side) continue;
    ++figures.count;
    figures.wins += trade.net_return > 0 ? 1 : 0;
    figures.sum += trade.net_return;
  }
  const auto count = static_cast<double>(figures.count);
  const bool none = figures.count == 0;
  return {fmt::format("{}", figures.count),
          share(none ? kUndefined : static_cast<double>(figures.wins) / count, 1),
          percent(none ? kUndefined : figures.sum / count),
          {percent(none ? kUndefined : figures.sum), Table::mark_of(figures.sum)}};
}

// ----------------------------------------------------------------------------------------- months

// Four shades each way: up to 2, 5 and 10 percent, and beyond.
std::string shade_of(double value) {
  const double size = std::abs(value);
  if (std::isnan(value) || size < 0.0005) return "";
  const int shade = size < 0.02 ? 1 : size < 0.05 ? 2 : size < 0.1 ? 3 : 4;
  return fmt::format("{}{}", value > 0 ? "p" : "n", shade);
}

std::string map_cell(double growth, std::string_view more) {
  if (std::isnan(growth)) return "<td></td>";
  return fmt::format("<td class=\"{}{}\">{}</td>", shade_of(growth - 1), more,
                     report::escape_xml(percent(growth - 1, 1)));
}

}  // namespace

std::string heading(std::string_view text) {
  return fmt::format("<h3>{}</h3>\n", report::escape_xml(text));
}

std::string money_charts(const Story& story) {
  return chart_box(lines_of(story, "Equity", "equity, starting from 1",
                            [](const Track& track) { return with_start(1, track.equity); })) +
         chart_box(
             lines_of(story, "Drawdown", "percent below the highest equity so far",
                      [](const Track& track) { return with_start(0, drawdowns(track.equity)); })) +
         rolling_sharpe_chart(story);
}

std::string price_chart(const Story& story) {
  const tables::Bars& bars = *story.clock;
  const auto first = bars.close.begin() + static_cast<std::ptrdiff_t>(story.bars.front()) - 1;
  LineChart chart{
      .title = "Price and trades",
      .y_label = "close; a triangle is an entry (up: long), a square an exit",
      .times = story.seconds,
      .lines = {{.label = "close",
                 .values = {first, first + static_cast<std::ptrdiff_t>(story.count()) + 1}}}};
  for (const std::size_t i : leaders_of(story)) {
    const Track& track = story.tracks[i];
    if (track.trades.empty() || track.strategy == &benchmark_strategy()) continue;
    chart.markers.push_back(markers_of(story, track));
    chart.markers.back().shown = i == story.best;
  }
  return chart_box(chart);
}

std::string month_map(const Story& story, const Track& track) {
  const tables::Bars& bars = *story.clock;
  if (bars.style.steps) return {};
  std::map<std::int64_t, std::array<double, 13>> years;  // growth by month, then of the year
  for (std::size_t i = 0; i < story.count(); ++i) {
    const tables::CivilDate date = tables::civil_date(bars.times[story.bars[i]]);
    auto [year, is_new] = years.try_emplace(date.year);
    if (is_new) year->second.fill(kUndefined);
    for (const std::size_t column : {static_cast<std::size_t>(date.month) - 1, std::size_t{12}}) {
      double& growth = year->second[column];
      growth = (std::isnan(growth) ? 1 : growth) * (1 + track.returns[i]);
    }
  }
  std::string html = "<div class=\"wide-box dense map\"><table>\n<thead><tr><th>Year</th>";
  for (const char* name : {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct",
                           "Nov", "Dec", "Year"}) {
    html += fmt::format("<th scope=\"col\">{}</th>", name);
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& [year, growth] : years) {
    html += fmt::format("<tr><td>{}</td>", year);
    for (std::size_t month = 0; month < 13; ++month) {
      html += map_cell(growth[month], month == 12 ? " sum" : "");
    }
    html += "</tr>\n";
  }
  return heading(fmt::format("Returns by month, {}", track.label)) + html +
         "</tbody></table></div>\n";
}

std::string drawdown_table(const Story& story) {
  constexpr std::size_t kShown = 5;
  const Track& best = story.best_track();
  const auto spans = drawdown_spans(best.equity, kShown);
  const std::string title = heading(fmt::format("Largest drawdowns of {}", best.label));
  if (spans.empty())
    return title + paragraph("None: it never fell below an earlier value.", "subtitle");
  Table table({"Depth", "peak", "lowest", "recovered", "bars"});
  for (const DrawdownSpan& span : spans) {
    const auto peak = static_cast<std::size_t>(span.peak);
    const std::size_t end = span.recovered.value_or(story.count() - 1);
    table.add({percent(span.depth), span.peak < 0 ? story.start_date() : story.date(peak),
               story.date(span.trough), span.recovered ? story.date(*span.recovered) : "not yet",
               fmt::format("{}", static_cast<std::ptrdiff_t>(end) - span.peak)});
  }
  return title + table.html();
}

std::string sides_table(const Story& story) {
  Table table({"Strategy", "long trades", "won", "average", "sum", "short trades", "won", "average",
               "sum"});
  for (const Track& track : story.tracks) {
    if (track.strategy == nullptr) continue;
    std::vector<Table::Cell> row = {track.label};
    for (const Side side : {Side::buy, Side::sell}) {
      std::ranges::move(side_cells(track.trades, side), std::back_inserter(row));
    }
    table.add(std::move(row));
  }
  return heading("Long against short") +
         paragraph("Returns of trades after costs, as shares of the equity at their entry.",
                   "subtitle") +
         table.dense().html();
}

std::string trade_distribution(const Story& story) {
  const Track& best = story.best_track();
  if (best.trades.size() < 2) return {};
  report::Histogram histogram{.title = fmt::format("Returns of the trades of {}", best.label),
                              .x_label = "return of a trade after costs, percent",
                              .y_label = "trades",
                              .values = {}};
  for (const Trade& trade : best.trades) histogram.values.push_back(100 * trade.net_return);
  return heading(histogram.title) + report::histogram_figure(histogram);
}

}  // namespace toto::backtest
