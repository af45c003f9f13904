// Figures of a strategy's returns and trades. Undefined ones are NaN, which JSON writes as null.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backtest/trading.h"

namespace toto::backtest {

struct TradingMetrics {
  double total_return = 0;  // compounded
  double cagr = 0;
  double volatility = 0;  // annualised
  double sharpe = 0;
  double sortino = 0;
  double max_drawdown = 0;            // at most 0
  std::size_t max_drawdown_bars = 0;  // from its peak until that is reached again, or the end
  double calmar = 0;
  double exposure = 0;
  double turnover = 0;
  std::size_t trades = 0;
  double win_rate = 0;
  double profit_factor = 0;
  double average_trade = 0;
  double fees_paid = 0;
  std::size_t ambiguous_bars = 0;
  // Against buy-hold over the same bars; NaN for buy-hold itself.
  double beta = kUndefined;
  double alpha = kUndefined;  // annualised
  double information_ratio = kUndefined;
  double probabilistic_sharpe = 0;  // probability that the true Sharpe ratio is above 0
  double var_95 = 0, cvar_95 = 0;   // 5 % quantile of the returns, and the mean of those up to it
};

// At least one target bar. `benchmark` holds buy-hold's returns, or nothing for buy-hold itself.
TradingMetrics trading_metrics(const Simulation& simulation, double bars_per_year,
                               std::span<const double> benchmark = {});

// Fewer bars than a quarter of a year: annual figures say little, and people are told so.
inline bool too_short_to_annualise(std::size_t num_bars, double bars_per_year) {
  return 4 * static_cast<double>(num_bars) < bars_per_year;
}

// mean / standard deviation (ddof 1) x sqrt(bars a year); NaN if there is no deviation.
double sharpe_ratio(std::span<const double> returns, double bars_per_year);

// Standard error of the Sharpe ratio per bar, by its skew and kurtosis: Bailey and Lopez de Prado
// (2012). NaN where undefined.
double sharpe_error(std::span<const double> returns);

// Of the last `window` returns at each bar; NaN where there are fewer. `window` at least 2.
std::vector<double> rolling_sharpe(std::span<const double> returns, std::size_t window,
                                   double bars_per_year);

struct Drawdown {
  double depth = 0;  // at most 0
  std::size_t bars = 0;
};
// Of an equity that starts from 1 before the first of these.
Drawdown max_drawdown(std::span<const double> equity);

}  // namespace toto::backtest
