// The results of each strategy on all symbols of a run together.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backtest/walk_forward.h"

namespace toto::backtest {

// The money split evenly over the symbols before the first of their common dates and left alone:
// its equity is the mean of theirs, so nothing is rebalanced and nothing more is paid.
struct Portfolio {
  const tables::Bars* clock = nullptr;  // the bars of the first symbol
  std::vector<std::size_t> bars = {};   // of the clock: the common dates of all target bars
  double bars_per_year = 0;             // the smallest of the symbols'
  std::vector<Simulation> strategies =
      {};  // equity and returns at the common dates, without trades
};
// None for symbols without a date in common. That of one symbol is the symbol itself.
std::optional<Portfolio> portfolio_of(std::span<const SymbolResult> results);

struct PortfolioMetrics {
  double total_return = 0;
  double cagr = 0;
  double volatility = 0;
  double sharpe = 0;
  double max_drawdown = 0;
};

struct SymbolReturn {
  std::string symbol = {};
  double total_return = 0;
};

struct UniverseRow {
  const Strategy* strategy = nullptr;
  double median_return = 0;
  double mean_return = 0;
  std::size_t num_ahead = 0;  // symbols whose total return is above that of buy-hold
  std::size_t num_trades = 0;
  SymbolReturn best = {}, worst = {};
  // None without a portfolio; see portfolio_of.
  std::optional<PortfolioMetrics> portfolio = {};
};

// One row for each strategy of the run, in its order. At least one result.
std::vector<UniverseRow> universe_of(std::span<const SymbolResult> results);

// The best median first, for people.
std::vector<UniverseRow> by_median(std::vector<UniverseRow> rows);

// Mean over strategies of what they earned more than buy-hold: how informative a symbol is.
double mean_excess(const SymbolResult& result);

// Positions of at most `count` symbols: those where the strategies did best against buy-hold, those
// in the middle and those where they did worst, a third each; all of them, in the order of the run,
// where there are no more.
std::vector<std::size_t> telling_symbols(std::span<const SymbolResult> results, std::size_t count);

}  // namespace toto::backtest
