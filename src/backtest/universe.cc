#include "backtest/universe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <ranges>
#include <tuple>

#include "base/median.h"

namespace toto::backtest {
namespace {

// Seconds of the world's clock where the file names a zone.
std::int64_t moment(const SymbolPlan& plan, std::size_t target_bar) {
  const tables::Bars& bars = *plan.bars;
  const tables::Ticks time = bars.times[plan.first + target_bar];
  return bars.style.steps ? time : tables::utc_seconds(time, bars.style);
}

// Target bars of one symbol, by their times.
std::map<std::int64_t, std::size_t> bars_by_moment(const SymbolPlan& plan) {
  std::map<std::int64_t, std::size_t> bars;
  for (std::size_t k = 0; k < plan.count; ++k) bars.emplace(moment(plan, k), k);
  return bars;
}

// [symbol][common date]: the target bar. Empty if some file numbers its steps and another does not.
std::vector<std::vector<std::size_t>> common_bars(std::span<const SymbolResult> results) {
  std::vector<std::map<std::int64_t, std::size_t>> all;
  for (const SymbolResult& result : results) {
    if (result.plan.bars->style.steps != results.front().plan.bars->style.steps) return {};
    all.push_back(bars_by_moment(result.plan));
  }
  std::vector<std::vector<std::size_t>> common(results.size());
  for (const std::int64_t time : std::views::keys(all.front())) {
    const bool everywhere =
        std::ranges::all_of(all, [time](const auto& bars) { return bars.contains(time); });
    if (!everywhere) continue;
    for (std::size_t s = 0; s < all.size(); ++s) common[s].push_back(all[s].at(time));
  }
  return common;
}

// Mean over the symbols of their equity, each from 1 before the first common date.
Simulation mean_of(std::span<const SymbolResult> results, std::size_t strategy,
                   const std::vector<std::vector<std::size_t>>& common) {
  Simulation together;
  together.equity.resize(common.front().size());
  for (std::size_t s = 0; s < results.size(); ++s) {
    const std::vector<double>& equity = results[s].strategies[strategy].simulation.equity;
    const std::size_t first = common[s].front();
    const double before = first == 0 ? 1 : equity[first - 1];
    for (std::size_t i = 0; i < common[s].size(); ++i) {
      together.equity[i] += before > 0 ? equity[common[s][i]] / before : 0;
    }
  }
  double before = 1;
  for (double& equity : together.equity) {
    equity /= static_cast<double>(results.size());
    together.returns.push_back(before == 0 ? 0 : equity / before - 1);
    before = equity;
  }
  return together;
}

PortfolioMetrics metrics_of(const Portfolio& portfolio, std::size_t strategy) {
  const TradingMetrics metrics =
      trading_metrics(portfolio.strategies[strategy], portfolio.bars_per_year);
  return {.total_return = metrics.total_return,
          .cagr = metrics.cagr,
          .volatility = metrics.volatility,
          .sharpe = metrics.sharpe,
          .max_drawdown = metrics.max_drawdown};
}

}  // namespace

std::optional<Portfolio> portfolio_of(std::span<const SymbolResult> results) {
  const auto common = common_bars(results);
  if (common.empty() || common.front().empty()) return {};
  Portfolio portfolio{.clock = results.front().plan.bars,
                      .bars_per_year = results.front().plan.bars_per_year};
  for (const std::size_t k : common.front()) {
    portfolio.bars.push_back(results.front().plan.first + k);
  }
  for (const SymbolResult& result : results) {
    portfolio.bars_per_year = std::min(portfolio.bars_per_year, result.plan.bars_per_year);
  }
  for (std::size_t s = 0; s < results.front().strategies.size(); ++s) {
    portfolio.strategies.push_back(mean_of(results, s, common));
  }
  return portfolio;
}

std::vector<UniverseRow> universe_of(std::span<const SymbolResult> results) {
  const std::optional<Portfolio> portfolio = portfolio_of(results);
  std::vector<UniverseRow> rows;
  for (std::size_t s = 0; s < results.front().strategies.size(); ++s) {
    UniverseRow& row = rows.emplace_back();
    row.strategy = results.front().strategies[s].strategy;
    std::vector<double> returns;
    for (const SymbolResult& result : results) {
      const TradingMetrics& metrics = result.strategies[s].metrics;
      const SymbolReturn here = {result.plan.bars->symbol, metrics.total_return};
      if (returns.empty() || here.total_return > row.best.total_return) row.best = here;
      if (returns.empty() || here.total_return < row.worst.total_return) row.worst = here;
      returns.push_back(here.total_return);
      row.num_trades += metrics.trades;
      const StrategyResult* benchmark = result.find(benchmark_strategy());
      if (benchmark != nullptr && here.total_return > benchmark->metrics.total_return) {
        ++row.num_ahead;
      }
    }
    row.mean_return =
        std::accumulate(returns.begin(), returns.end(), 0.0) / static_cast<double>(returns.size());
    row.median_return = median(std::move(returns));
    if (portfolio) row.portfolio = metrics_of(*portfolio, s);
  }
  return rows;
}

std::vector<UniverseRow> by_median(std::vector<UniverseRow> rows) {
  std::sort(rows.begin(), rows.end(), [](const UniverseRow& a, const UniverseRow& b) {
    return std::tuple(-a.median_return, order_of(*a.strategy)) <
           std::tuple(-b.median_return, order_of(*b.strategy));
  });
  return rows;
}

double mean_excess(const SymbolResult& result) {
  const StrategyResult* benchmark = result.find(benchmark_strategy());
  double sum = 0;
  std::size_t count = 0;
  for (const StrategyResult& strategy : result.strategies) {
    if (&strategy == benchmark || benchmark == nullptr) continue;
    sum += strategy.metrics.total_return - benchmark->metrics.total_return;
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

std::vector<std::size_t> telling_symbols(std::span<const SymbolResult> results, std::size_t count) {
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (results.size() <= count) return order;
  std::vector<double> excess;
  for (const SymbolResult& result : results) excess.push_back(mean_excess(result));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(-excess[a], a) < std::tuple(-excess[b], b);
  });
  const std::size_t third = count / 3;
  const std::size_t middle = (order.size() - third) / 2;
  std::vector<std::size_t> chosen(order.begin(),
                                  order.begin() + static_cast<std::ptrdiff_t>(third));
  for (std::size_t i = 0; i < third; ++i) chosen.push_back(order[middle + i]);
  for (std::size_t i = order.size() - third; i < order.size(); ++i) chosen.push_back(order[i]);
  return chosen;
}

}  // namespace toto::backtest
