// The section of the report about all symbols together.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "backtest/report_parts.h"
#include "backtest/universe.h"

namespace toto::backtest {
namespace {

std::string symbol_return(const SymbolReturn& item) {
  return fmt::format("{} {}", item.symbol, percent(item.total_return, 1));
}

std::string strategies_table(std::span<const UniverseRow> rows, std::size_t num_symbols) {
  std::vector<std::string> header = {"Strategy", "median return", "mean",  "ahead of buy-hold",
                                     "best",     "worst",         "trades"};
  const bool has_portfolio = rows.front().portfolio.has_value();
  if (has_portfolio) {
    header.insert(header.end(), {"portfolio", "its Sharpe", "its drawdown"});
  }
  Table table(header);
  for (const UniverseRow& row : rows) {
    std::vector<Table::Cell> cells = {row.strategy->name,
                                      percent(row.median_return),
                                      percent(row.mean_return),
                                      row.strategy == &benchmark_strategy()
                                          ? std::string()
                                          : fmt::format("{} of {}", row.num_ahead, num_symbols),
                                      symbol_return(row.best),
                                      symbol_return(row.worst),
                                      fmt::format("{}", row.num_trades)};
    if (has_portfolio && row.portfolio.has_value()) {
      const auto& portfolio = *row.portfolio;
      cells.emplace_back(percent(portfolio.total_return));
      cells.emplace_back(decimal(portfolio.sharpe));
      cells.emplace_back(percent(portfolio.max_drawdown));
    }
    table.add(std::move(cells));
  }
  return table.dense().html();
}

// One row per symbol, those where the strategies did best first.
std::string symbols_table(std::span<const SymbolResult> results) {
  std::vector<std::string> header = {"Symbol", "strategies over buy-hold, mean, points"};
  for (const StrategyResult& strategy : results.front().strategies) {
    header.emplace_back(strategy.strategy->name);
  }
  Table table(header);
  std::vector<const SymbolResult*> order;
  for (const SymbolResult& result : results) order.push_back(&result);
  std::sort(order.begin(), order.end(), [](const SymbolResult* a, const SymbolResult* b) {
    return std::tuple(-mean_excess(*a), a) < std::tuple(-mean_excess(*b), b);
  });
  for (const SymbolResult* result : order) {
    const double benchmark = result->find(benchmark_strategy())->metrics.total_return;
    std::vector<Table::Cell> cells = {result->plan.bars->symbol, points(mean_excess(*result))};
    for (const StrategyResult& strategy : result->strategies) {
      const double value = strategy.metrics.total_return;
      cells.emplace_back(percent(value, 1), Table::mark_of(value - benchmark));
    }
    table.add(std::move(cells));
  }
  return table.dense().html();
}

}  // namespace

std::string universe_section(const ReportInput& input) {
  if (input.results.size() < 2) return {};
  const std::vector<UniverseRow> rows = by_median(universe_of(input.results));
  const std::string portfolio =
      rows.front().portfolio
          ? "The portfolio splits the money evenly over the symbols before their first common "
            "date and leaves it there."
          : "The symbols have no date in common, so they make no portfolio.";
  std::string body =
      paragraph("Total returns after all costs, by their median over the symbols. " + portfolio,
                "subtitle") +
      strategies_table(rows, input.results.size());
  if (input.results.size() > kMaxDetailed) {
    body += paragraph("Total return of every symbol, marked against its buy-hold.", "subtitle") +
            symbols_table(input.results);
  }
  return section("All symbols together", body);
}

}  // namespace toto::backtest
