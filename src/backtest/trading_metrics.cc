#include "backtest/trading_metrics.h"

#include <algorithm>
#include <cmath>

namespace toto::backtest {
namespace {

double ratio(double numerator, double denominator) {
  return denominator == 0 ? kUndefined : numerator / denominator;
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// ddof 1. Equal values deviate by exactly nothing, however their mean was rounded.
double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return kUndefined;
  const auto differs = [&](double value) { return value != values.front(); };
  if (std::none_of(values.begin(), values.end(), differs)) return 0;
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double sortino_ratio(std::span<const double> returns, double bars_per_year) {
  double sum = 0;
  for (const double value : returns) sum += value < 0 ? value * value : 0;
  const double downside = std::sqrt(sum / static_cast<double>(returns.size()));
  return ratio(mean(returns), downside) * std::sqrt(bars_per_year);
}

double probabilistic_sharpe(std::span<const double> returns) {
  const double errors = sharpe_ratio(returns, 1) / sharpe_error(returns);
  return 0.5 * std::erfc(-errors / std::sqrt(2));
}

// Linear between the two nearest returns.
double quantile(std::span<const double> values, double level) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double place = level * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double step = below + 1 < sorted.size() ? sorted[below + 1] - sorted[below] : 0;
  return sorted[below] + (place - static_cast<double>(below)) * step;
}

void add_tail(std::span<const double> returns, TradingMetrics& metrics) {
  metrics.var_95 = quantile(returns, 0.05);
  double sum = 0;
  std::size_t count = 0;
  for (const double value : returns) {
    if (value > metrics.var_95) continue;
    sum += value;
    ++count;
  }
  metrics.cvar_95 = ratio(sum, static_cast<double>(count));
}

void add_benchmark(std::span<const double> returns, std::span<const double> benchmark, double year,
                   TradingMetrics& metrics) {
  if (benchmark.size() != returns.size()) return;
  const double centre = mean(returns), base = mean(benchmark);
  const double deviation = standard_deviation(benchmark);
  double covariance = 0;  // times n - 1
  std::vector<double> ahead;
  for (std::size_t i = 0; i < returns.size(); ++i) {
    covariance += (returns[i] - centre) * (benchmark[i] - base);
    ahead.push_back(returns[i] - benchmark[i]);
  }
  const double sum_of_squares =
      deviation * deviation * static_cast<double>(returns.size() - 1);  // NaN for one bar
  metrics.beta = ratio(covariance, sum_of_squares);
  metrics.alpha = (centre - metrics.beta * base) * year;
  metrics.information_ratio = sharpe_ratio(ahead, year);
}

void add_trades(const std::vector<Trade>& trades, double num_bars, TradingMetrics& metrics) {
  double won = 0, lost = 0, sum = 0, turnover = 0;
  std::size_t wins = 0;
  for (const Trade& trade : trades) {
    sum += trade.net_return;
    if (trade.net_return > 0) {
      ++wins;
      won += trade.net_return;
    } else {
      lost -= trade.net_return;
    }
    turnover += trade.share * (1 + trade.exit_price / trade.entry_price);
    metrics.fees_paid += trade.fee;
  }
  const auto count = static_cast<double>(trades.size());
  metrics.trades = trades.size();
  metrics.turnover = turnover / num_bars;
  metrics.win_rate = ratio(static_cast<double>(wins), count);
  metrics.profit_factor = ratio(won, lost);
  metrics.average_trade = ratio(sum, count);
}

}  // namespace

double sharpe_ratio(std::span<const double> returns, double bars_per_year) {
  return ratio(mean(returns), standard_deviation(returns)) * std::sqrt(bars_per_year);
}

double sharpe_error(std::span<const double> returns) {
  const double deviation = standard_deviation(returns);
  if (!(deviation > 0)) return kUndefined;
  const auto count = static_cast<double>(returns.size());
  const double centre = mean(returns);
  double second = 0, third = 0, fourth = 0;  // central moments
  for (const double value : returns) {
    const double square = (value - centre) * (value - centre);
    second += square / count;
    third += square * (value - centre) / count;
    fourth += square * square / count;
  }
  const double ratio = centre / deviation;
  const double skewness = third / (second * std::sqrt(second));
  const double kurtosis = fourth / (second * second);
  const double variance = 1 - skewness * ratio + (kurtosis - 1) / 4 * ratio * ratio;
  return variance > 0 ? std::sqrt(variance / (count - 1)) : kUndefined;
}

std::vector<double> rolling_sharpe(std::span<const double> returns, std::size_t window,
                                   double bars_per_year) {
  std::vector<double> values(returns.size(), kUndefined);
  for (std::size_t end = window; end <= returns.size(); ++end) {
    values[end - 1] = sharpe_ratio(returns.subspan(end - window, window), bars_per_year);
  }
  return values;
}

Drawdown max_drawdown(std::span<const double> equity) {
  Drawdown worst;
  double peak = 1, worst_peak = 1;
  // Bars are counted from 1 here: 0 is the start.
  std::size_t peak_bar = 0, worst_peak_bar = 0, worst_bar = 0;
  for (std::size_t i = 0; i < equity.size(); ++i) {
    if (equity[i] >= peak) {
      peak = equity[i];
      peak_bar = i + 1;
    } else if (equity[i] / peak - 1 < worst.depth) {
      worst.depth = equity[i] / peak - 1;
      worst_peak = peak;
      worst_peak_bar = peak_bar;
      worst_bar = i;
    }
  }
  if (worst.depth == 0) return worst;
  std::size_t end = worst_bar;
  while (end + 1 < equity.size() && equity[end] < worst_peak) ++end;
  worst.bars = end + 1 - worst_peak_bar;
  return worst;
}

TradingMetrics trading_metrics(const Simulation& simulation, double bars_per_year,
                               std::span<const double> benchmark) {
  const std::vector<double>& returns = simulation.returns;
  const auto num_bars = static_cast<double>(returns.size());
  TradingMetrics metrics;
  metrics.total_return = simulation.equity.back() - 1;
  metrics.cagr = metrics.total_return <= -1
                     ? kUndefined
                     : std::pow(1 + metrics.total_return, bars_per_year / num_bars) - 1;
  metrics.volatility = standard_deviation(returns) * std::sqrt(bars_per_year);
  metrics.sharpe = sharpe_ratio(returns, bars_per_year);
  metrics.sortino = sortino_ratio(returns, bars_per_year);
  const Drawdown drawdown = max_drawdown(simulation.equity);
  metrics.max_drawdown = drawdown.depth;
  metrics.max_drawdown_bars = drawdown.bars;
  metrics.calmar = ratio(metrics.cagr, -drawdown.depth);
  metrics.exposure = static_cast<double>(simulation.bars_held) / num_bars;
  metrics.ambiguous_bars = simulation.num_ambiguous_bars;
  metrics.probabilistic_sharpe = probabilistic_sharpe(returns);
  add_tail(returns, metrics);
  add_benchmark(returns, benchmark, bars_per_year, metrics);
  add_trades(simulation.trades, num_bars, metrics);
  return metrics;
}

}  // namespace toto::backtest
