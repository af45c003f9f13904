// The sections of the report about one symbol.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

#include "backtest/report_parts.h"
#include "report/axis.h"
#include "report/fan_chart.h"

namespace toto::backtest {
namespace {

// Times of consecutive bars; empty if they are step numbers or outside the calendar.
std::vector<std::int64_t> seconds_of(const tables::Bars& bars, std::size_t first,
                                     std::size_t count) {
  std::vector<std::int64_t> times;
  if (bars.style.steps) return times;
  for (std::size_t i = first; i < first + count; ++i) {
    times.push_back(tables::utc_seconds(bars.times[i], bars.style));
  }
  const bool usable = times.empty() || (times.front() >= report::kEarliestTime &&
                                        times.back() <= report::kLatestTime);
  return usable ? times : std::vector<std::int64_t>();
}

Rules with_total_cost(const Rules& rules, double bps) {
  Rules changed = rules;
  changed.costs.fee = bps * kBasisPoint;
  changed.costs.slippage = 0;
  return changed;
}

double return_at_cost(const SymbolResult& result, const Strategy& strategy, double bps) {
  return run_strategy(strategy, result.plan, result.forecasts,
                      with_total_cost(result.plan.rules, bps))
      .metrics.total_return;
}

// The cost of a side at which nothing is earned, by bisection.
std::string break_even(const SymbolResult& result, const Strategy& strategy) {
  constexpr double kMostBps = 1000;
  double low = 0, high = kMostBps;
  const double free = return_at_cost(result, strategy, 0);
  if (free == 0) return "–";
  if (free < 0) return "none";
  if (return_at_cost(result, strategy, high) > 0) return fmt::format("over {}", kMostBps);
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (return_at_cost(result, strategy, middle) > 0 ? low : high) = middle;
  }
  return decimal(low, 1);
}

// Target bars [begin, end) as a fan; each step is a separate forecast, made `lag` bars before it.
std::string fan(const SymbolResult& result, std::size_t begin, std::size_t end, std::string title,
                bool trained) {
  constexpr std::size_t kHistory = 30;
  const tables::Bars& bars = *result.plan.bars;
  const std::size_t first = result.plan.first + begin;
  const std::size_t history = std::min(first, kHistory);
  report::FanChart chart;
  chart.title = std::move(title);
  const std::string before = bars_in_words(result.plan.rules.lag) + " before";
  chart.subtitle =
      fmt::format("{} separate forecasts: the band and median of each bar were forecast {} it",
                  end - begin, before);
  chart.origin_label = fmt::format("Each bar's band was forecast {}", before);
  chart.y_label = "close";
  chart.warn_untrained = !trained;
  chart.max_history = static_cast<int>(kHistory);
  chart.history_times = seconds_of(bars, first - history, history);
  chart.forecast_times = seconds_of(bars, first, end - begin);
  if (chart.history_times.size() != history) chart.forecast_times.clear();
  if (chart.forecast_times.empty()) chart.history_times.clear();
  for (std::size_t i = first - history; i < first; ++i) {
    chart.history.push_back(static_cast<float>(bars.close[i]));
  }
  report::FanChart::Band wide{
      .label = fmt::format("80 %, forecast {}", before), .low = {}, .high = {}};
  report::FanChart::Band narrow{
      .label = fmt::format("40 %, forecast {}", before), .low = {}, .high = {}};
  for (std::size_t k = begin; k < end; ++k) {
    const TargetForecast& forecast = forecast_of(result.forecasts[k], tables::Target::close);
    chart.median.push_back(static_cast<float>(forecast.quantiles[4]));
    chart.actual.push_back(static_cast<float>(bars.close[result.plan.first + k]));
    wide.low.push_back(static_cast<float>(forecast.quantiles[0]));
    wide.high.push_back(static_cast<float>(forecast.quantiles[8]));
    narrow.low.push_back(static_cast<float>(forecast.quantiles[2]));
    narrow.high.push_back(static_cast<float>(forecast.quantiles[6]));
  }
  chart.bands = {std::move(wide), std::move(narrow)};
  return report::fan_chart_figure(chart);
}

}  // namespace

std::string cost_sweep(const SymbolResult& result) {
  Table table(
      {"Total return at a cost of", "0 bps", "5 bps", "10 bps", "20 bps", "break-even, bps"});
  for (const StrategyResult& strategy : result.strategies) {
    std::vector<Table::Cell> row = {strategy.strategy->name};
    for (const double bps : {0.0, 5.0, 10.0, 20.0}) {
      row.emplace_back(percent(return_at_cost(result, *strategy.strategy, bps)));
    }
    row.emplace_back(break_even(result, *strategy.strategy));
    table.add(std::move(row));
  }
  return heading("Cost sweep") +
         paragraph(
             "Cost per side of a trade, fees and slippage together; at the break-even cost the "
             "total "
             "return is zero.",
             "subtitle") +
         table.html();
}

std::string lag_comparison(const SymbolResult& result, const SymbolResult* other,
                           std::size_t other_lag) {
  std::string html = heading("Decision lag");
  if (other == nullptr) {
    return html + paragraph(
                      "Not tested: the run with the other lag was skipped, or the symbol has "
                      "too little history for it.",
                      "subtitle");
  }
  const std::size_t lag = result.plan.rules.lag;
  Table table({"Decided before the bar", bars_in_words(lag), bars_in_words(other_lag),
               "difference, points"});
  for (const StrategyResult& strategy : result.strategies) {
    const StrategyResult* late = other->find(*strategy.strategy);
    if (late == nullptr) continue;
    const double here = strategy.metrics.total_return, there = late->metrics.total_return;
    table.add({strategy.strategy->name, percent(here), percent(there), points(there - here)});
  }
  return html +
         paragraph(
             other_lag > lag
                 ? "An edge that one more bar of delay destroys may be an artefact of timing."
                 : "An edge that exists only with a later decision, based on newer bars, may be "
                   "an artefact of timing.",
             "subtitle") +
         table.html();
}

std::string forecast_charts(const SymbolResult& result, bool trained) {
  constexpr std::size_t kSpan = 25;
  const std::size_t count = result.plan.count, width = std::min(count, kSpan);
  const tables::Bars& bars = *result.plan.bars;
  std::size_t worst = 0;
  double largest = -1;
  for (std::size_t k = 0; k < count; ++k) {
    const double actual = bars.close[result.plan.first + k];
    const double miss =
        std::abs(forecast_of(result.forecasts[k], tables::Target::close).point / actual - 1);
    if (miss > largest) {
      largest = miss;
      worst = k;
    }
  }
  std::string html =
      fan(result, count - width, count, fmt::format("{}: the latest bars", bars.symbol), trained);
  // The worst miss in the middle, as far as there are bars on both sides.
  const std::size_t begin = std::min(worst > width / 2 ? worst - width / 2 : 0, count - width);
  if (begin + width == count) return html;
  return html +
         fan(result, begin, begin + width,
             fmt::format("{}: around the worst miss, {} on {}", bars.symbol,
                         percent(largest, 1).substr(1), bars.time_text(result.plan.first + worst)),
             trained);
}

std::string coverage_table(const SymbolResult& result) {
  std::vector<std::string> header = {"Share of values at or below"};
  for (std::size_t i = 0; i < kNumLevels; ++i) header.push_back(fmt::format("q{:.1f}", level(i)));
  Table table(header);
  for (const tables::Target target : tables::kTargets) {
    std::vector<Table::Cell> row = {name_of(target)};
    for (const double share : result.accuracy[static_cast<std::size_t>(target)].coverage) {
      row.emplace_back(decimal(share));
    }
    table.add(std::move(row));
  }
  return heading("Coverage by quantile") +
         paragraph("A calibrated forecast has 0.10 under q0.1, 0.20 under q0.2, and so on.",
                   "subtitle") +
         table.html();
}

std::string worst_trades(const SymbolResult& result) {
  constexpr std::size_t kShown = 10;
  // The same fills under several strategies are one trade; buy-hold makes no decisions.
  const auto key_of = [](const Trade& trade) {
    return std::tuple(trade.net_return, trade.exit_bar, trade.entry_bar, trade.side,
                      trade.entry_price, trade.exit_price);
  };
  std::map<decltype(key_of(Trade())), std::vector<std::string_view>> trades;
  for (const StrategyResult& strategy : result.strategies) {
    if (strategy.strategy == &benchmark_strategy()) continue;
    for (const Trade& trade : strategy.simulation.trades) {
      trades[key_of(trade)].push_back(strategy.strategy->name);
    }
  }
  const tables::Bars& bars = *result.plan.bars;
  Table table({"Strategy", "side", "in", "at", "out", "at", "return"}, 2);
  std::size_t shown = 0;
  for (const auto& [key, strategies] : trades) {
    if (++shown > kShown) break;
    const auto& [net_return, exit_bar, entry_bar, side, entry_price, exit_price] = key;
    table.add({fmt::format("{}", fmt::join(strategies, ", ")), name_of(side),
               bars.time_text(entry_bar), price(entry_price), bars.time_text(exit_bar),
               price(exit_price), percent(net_return)});
  }
  return heading("Worst trades") + table.html();
}

}  // namespace toto::backtest
