#include "backtest/universe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/median.h"

namespace toto::backtest {
namespace {

std::span<const tables::Ticks> target_times(const SymbolPlan& plan) {
  return std::span(plan.bars->times).subspan(plan.first, plan.count);
}

bool same_clock(const tables::TimeStyle& a, const tables::TimeStyle& b) {
  return a.steps == b.steps && a.zone == b.zone && a.offset_minutes == b.offset_minutes;
}

bool aligned(std::span<const SymbolResult> results) {
  const SymbolPlan& first = results.front().plan;
  return std::all_of(results.begin(), results.end(), [&](const SymbolResult& result) {
    const SymbolPlan& plan = result.plan;
    return plan.bars_per_year == first.bars_per_year &&
           same_clock(plan.bars->style, first.bars->style) &&
           std::ranges::equal(target_times(plan), target_times(first));
  });
}

PortfolioMetrics portfolio_of(std::span<const SymbolResult> results, std::size_t strategy) {
  const SymbolPlan& plan = results.front().plan;
  Simulation together;
  double before = 1;
  for (std::size_t k = 0; k < plan.count; ++k) {
    double equity = 0;
    for (const SymbolResult& result : results) {
      equity += result.strategies[strategy].simulation.equity[k];
    }
    equity /= static_cast<double>(results.size());
    together.equity.push_back(equity);
    together.returns.push_back(before == 0 ? 0 : equity / before - 1);
    before = equity;
  }
  const TradingMetrics metrics = trading_metrics(together, plan.bars_per_year);
  return {.total_return = metrics.total_return,
          .cagr = metrics.cagr,
          .volatility = metrics.volatility,
          .sharpe = metrics.sharpe,
          .max_drawdown = metrics.max_drawdown};
}

}  // namespace

std::vector<UniverseRow> universe_of(std::span<const SymbolResult> results) {
  const bool has_portfolio = aligned(results);
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
    if (has_portfolio) row.portfolio = portfolio_of(results, s);
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
