// Figures of returns, trades and forecasts, compared with hand calculations and Boost.Math.
#include <gtest/gtest.h>

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "backtest/accuracy.h"
#include "backtest/trading_metrics.h"
#include "backtest/transform.h"
#include "backtest_fixture.h"
#include "base/median.h"
#include "io_fixture.h"

namespace toto::backtest {
namespace {

Simulation from_returns(const std::vector<double>& returns) {
  Simulation simulation;
  double equity = 1;
  for (const double value : returns) {
    equity *= 1 + value;
    simulation.equity.push_back(equity);
    simulation.returns.push_back(value);
  }
  return simulation;
}

// --------------------------------------------------------------------------------------- trading

TEST(TradingMetrics, AgainstBuyHold) {
  // Means 0.01 and 0.005. Products of deviations: 5, 50, 30, -5 x 1e-5; squares of buy-hold's:
  // 2.5, 62.5, 22.5, 2.5 x 1e-5. Beta 0.0008/0.0009.
  const std::vector<double> hold = {0.01, -0.02, 0.02, 0.01};
  const Simulation simulation = from_returns({0.02, -0.01, 0.03, 0});
  const TradingMetrics metrics = trading_metrics(simulation, 252, hold);
  EXPECT_NEAR(metrics.beta, 8.0 / 9, kExact);
  EXPECT_NEAR(metrics.alpha, (0.01 - 8.0 / 9 * 0.005) * 252, kExact);
  // Ahead by 0.01, 0.01, 0.01, -0.01: mean 0.005, standard deviation 0.01.
  EXPECT_NEAR(metrics.information_ratio, 0.5 * std::sqrt(252.0), 1e-11);
  // S^2 = 0.0001 / (0.001/3) = 0.3; no skew; kurtosis 8.5e-8 / 0.00025^2 = 1.36.
  const boost::math::normal normal;
  EXPECT_NEAR(metrics.probabilistic_sharpe,
              boost::math::cdf(normal, std::sqrt(0.3 * 3 / (1 + 0.09 * 0.3))), kExact);
  // Sorted -0.01, 0, ...: 0.05 x 3 = 0.15 of the way.
  EXPECT_NEAR(metrics.var_95, -0.0085, kExact);
  EXPECT_NEAR(metrics.cvar_95, -0.01, kExact);
  const TradingMetrics itself = trading_metrics(simulation, 252);
  EXPECT_TRUE(std::isnan(itself.beta));
  EXPECT_TRUE(std::isnan(itself.alpha));
  EXPECT_TRUE(std::isnan(itself.information_ratio));
  EXPECT_EQ(itself.probabilistic_sharpe, metrics.probabilistic_sharpe);
  const TradingMetrics equal = trading_metrics(from_returns(hold), 252, hold);
  EXPECT_NEAR(equal.beta, 1, kExact);
  EXPECT_NEAR(equal.alpha, 0, kExact);
  EXPECT_TRUE(std::isnan(equal.information_ratio)) << "never ahead or behind";
  const std::vector<double> flat(4, 0.01);
  EXPECT_TRUE(std::isnan(trading_metrics(simulation, 252, flat).beta)) << "no variance";
  EXPECT_TRUE(std::isnan(trading_metrics(simulation, 252, flat).alpha));
  const TradingMetrics one = trading_metrics(from_returns({-0.1}), 252, std::vector<double>{0.1});
  EXPECT_TRUE(std::isnan(one.beta));
  EXPECT_TRUE(std::isnan(one.probabilistic_sharpe));
  EXPECT_EQ(one.var_95, -0.1);
  EXPECT_EQ(one.cvar_95, -0.1);
  const TradingMetrics idle = trading_metrics(from_returns({0, 0, 0, 0}), 252, hold);
  EXPECT_EQ(idle.beta, 0);
  EXPECT_EQ(idle.alpha, 0);
  EXPECT_TRUE(std::isnan(idle.probabilistic_sharpe));
  EXPECT_EQ(idle.cvar_95, 0);
}

TEST(TradingMetrics, AQuarterOfAYearCanBeAnnualised) {
  EXPECT_TRUE(too_short_to_annualise(62, 252));
  EXPECT_FALSE(too_short_to_annualise(63, 252));
  EXPECT_TRUE(too_short_to_annualise(250, 365 * 24));
}

TEST(TradingMetrics, OfFourReturns) {
  Simulation simulation = from_returns({0.1, -0.05, 0.0, 0.02});
  simulation.trades = {{.side = Side::buy,
                        .entry_price = 100,
                        .exit_price = 110,
                        .share = 1,
                        .fee = 0.01,
                        .net_return = 0.09},
                       {.side = Side::sell,
                        .entry_price = 100,
                        .exit_price = 105,
                        .share = 0.5,
                        .fee = 0.02,
                        .net_return = -0.03}};
  simulation.bars_held = 3;
  simulation.num_ambiguous_bars = 2;
  const TradingMetrics metrics = trading_metrics(simulation, 252);
  const double total = 1.1 * 0.95 * 1.02 - 1;
  EXPECT_NEAR(metrics.total_return, total, kExact);
  EXPECT_NEAR(metrics.cagr, std::pow(1 + total, 63) - 1, 1e-9);
  // Mean 0.0175; deviations 0.0825, -0.0675, -0.0175, 0.0025; squares sum to 0.011675.
  const double deviation = std::sqrt(0.011675 / 3);
  EXPECT_NEAR(metrics.volatility, deviation * std::sqrt(252.0), kExact);
  EXPECT_NEAR(metrics.sharpe, 0.0175 / deviation * std::sqrt(252.0), kExact);
  EXPECT_NEAR(metrics.sortino, 0.0175 / std::sqrt(0.0025 / 4) * std::sqrt(252.0), kExact);
  EXPECT_NEAR(metrics.max_drawdown, -0.05, kExact);
  EXPECT_EQ(metrics.max_drawdown_bars, 3u) << "from bar 1 to the end: 1.0659 is below 1.1";
  EXPECT_NEAR(metrics.calmar, metrics.cagr / 0.05, 1e-9);
  EXPECT_EQ(metrics.exposure, 0.75);
  EXPECT_NEAR(metrics.turnover, (1 * 2.1 + 0.5 * 2.05) / 4, kExact);
  EXPECT_EQ(metrics.trades, 2u);
  EXPECT_EQ(metrics.win_rate, 0.5);
  EXPECT_NEAR(metrics.profit_factor, 3, kExact);
  EXPECT_NEAR(metrics.average_trade, 0.03, kExact);
  EXPECT_NEAR(metrics.fees_paid, 0.03, kExact);
  EXPECT_EQ(metrics.ambiguous_bars, 2u);
}

TEST(TradingMetrics, TheRollingSharpeLooksBackOnly) {
  const std::vector<double> returns = {0.01, 0.03, -0.01, 0.01};
  const std::vector<double> values = rolling_sharpe(returns, 3, 100);
  ASSERT_EQ(values.size(), 4u);
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
  // Both triples have a mean of 0.01 and squares of deviations that sum to 0.0008.
  EXPECT_NEAR(values[2], 0.01 / 0.02 * 10, kExact);
  EXPECT_NEAR(values[3], 0.01 / 0.02 * 10, kExact);
  EXPECT_TRUE(std::isnan(rolling_sharpe(returns, 5, 100)[3]));
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(TradingMetrics, UndefinedFiguresAreNan) {
  const TradingMetrics idle = trading_metrics(from_returns({0, 0, 0}), 252);
  EXPECT_EQ(idle.volatility, 0);
  EXPECT_EQ(idle.total_return, 0);
  EXPECT_EQ(idle.cagr, 0);
  EXPECT_EQ(idle.max_drawdown, 0);
  EXPECT_EQ(idle.max_drawdown_bars, 0u);
  for (const double value : {idle.sharpe, idle.sortino, idle.calmar, idle.win_rate,
                             idle.profit_factor, idle.average_trade}) {
    EXPECT_TRUE(std::isnan(value));
  }
  const TradingMetrics one = trading_metrics(from_returns({-0.1}), 252);
  EXPECT_TRUE(std::isnan(one.volatility));
  EXPECT_TRUE(std::isnan(one.sharpe));
  EXPECT_NEAR(one.sortino, -std::sqrt(252.0), kExact);
  EXPECT_EQ(one.max_drawdown_bars, 1u) << "the peak is the start";
  // 0.1 is not exact in binary: the deviation of equal returns is 0 all the same.
  EXPECT_TRUE(std::isnan(trading_metrics(from_returns({0.1, 0.1, 0.1}), 252).sharpe));
  const TradingMetrics ruined = trading_metrics(from_returns({-1.5}), 252);
  EXPECT_TRUE(std::isnan(ruined.cagr));
  EXPECT_TRUE(std::isnan(ruined.calmar));
  EXPECT_EQ(ruined.max_drawdown, -1.5);
}

TEST(TradingMetrics, DrawdownRunsFromTheLastPeakToItsRecovery) {
  const auto drawdown = [](std::vector<double> equity) { return max_drawdown(equity); };
  // Bars 1 to 7: the peak of 2 is last seen at bar 3, reached again at bar 6.
  EXPECT_EQ(drawdown({1.5, 2, 2, 1, 1.5, 2, 1.5}).bars, 3u);
  EXPECT_EQ(drawdown({1.5, 2, 2, 1, 1.5, 2, 1.5}).depth, -0.5);
  EXPECT_EQ(drawdown({0.8, 0.9, 1.0}).bars, 3u) << "back at the start";
  EXPECT_EQ(drawdown({0.8, 0.9, 0.95}).bars, 3u) << "never back: to the end";
  EXPECT_EQ(drawdown({1, 1.1, 1.2}).bars, 0u);
  // Two of the same depth: the first one.
  EXPECT_EQ(drawdown({0.5, 1, 0.5, 0.6, 0.7}).bars, 2u);
}

// -------------------------------------------------------------------------------------- forecasts

TEST(ForecastAccuracy, OfThreeForecasts) {
  // Closes 100, 102, 101 before the targets 103, 103, 99.
  const tables::Bars bars = make_bars({{1, 1, 1, 100},
                                       {1, 1, 1, 102},
                                       {1, 1, 1, 101},
                                       {1, 1, 1, 103},
                                       {1, 1, 1, 103},
                                       {1, 1, 1, 99}});
  std::vector<BarForecast> forecasts = {make_forecast(102, 1, 1), make_forecast(104, 1, 1),
                                        make_forecast(104, 1, 1)};
  forecasts[0][0].quantiles = {99, 100, 101, 101.5, 102, 102.5, 103, 104, 105};
  const ForecastAccuracy accuracy = forecast_accuracy(bars, tables::Target::close, 3, 1, forecasts);
  // Errors -1, 1, 5; persistence says 101, 103, 103: errors -2, 0, 4.
  EXPECT_NEAR(accuracy.model.mae, 7.0 / 3, kExact);
  EXPECT_NEAR(accuracy.model.rmse, std::sqrt(27.0 / 3), kExact);
  EXPECT_NEAR(accuracy.model.smape, (2.0 / 205 + 2.0 / 207 + 10.0 / 203) / 3, kExact);
  EXPECT_NEAR(accuracy.model.mase, 7.0 / 3 / 1.5, kExact) << "the scale is (2 + 1) / 2";
  EXPECT_NEAR(accuracy.persistence.mae, 2, kExact);
  EXPECT_NEAR(accuracy.persistence.rmse, std::sqrt(20.0 / 3), kExact);
  EXPECT_NEAR(accuracy.persistence.mase, 2 / 1.5, kExact);
  // Quantile loss of a degenerate forecast f: sum over tau of 2 |y - f| tau (y > f) or (1 - tau)
  // (y <= f), each 4.5 in sum: 9 |y - f|. The first forecast by hand: y = 103,
  // 2 (4 x 0.1 + 3 x 0.2 + 2 x 0.3 + 1.5 x 0.4 + 1 x 0.5 + 0.5 x 0.6 + 0 + 1 x 0.2 + 2 x 0.1)
  // = 6.8.
  const double mean_actual = (103.0 + 103 + 99) / 3;
  EXPECT_NEAR(accuracy.model.wql, (6.8 + 9 + 45) / 27 / mean_actual, kExact);
  EXPECT_NEAR(accuracy.persistence.wql, (18.0 + 0 + 36) / 27 / mean_actual, kExact);
  EXPECT_NEAR(accuracy.coverage_80, 1.0 / 3, kExact);
  // Bars that moved: the first (up, forecast up) and the third (down, forecast up).
  EXPECT_EQ(accuracy.direction_accuracy, 0.5);
  EXPECT_NEAR(accuracy.coverage[6], 1, kExact);
  EXPECT_NEAR(accuracy.coverage[0], 2.0 / 3, kExact);
  // Differences of absolute errors: -1, 1, 1. Mean 1/3, variance 8/9; Harvey (n + 1 - 2)/n = 2/3.
  const double statistic = std::sqrt(2.0 / 3) * (1.0 / 3) / std::sqrt(8.0 / 9 / 3);
  const boost::math::students_t student(2);
  EXPECT_NEAR(accuracy.dm_p_value,
              2 * boost::math::cdf(boost::math::complement(student, statistic)), 1e-12);
}

TEST(ForecastAccuracy, UndefinedOnConstantPrices) {
  const tables::Bars bars = make_bars(std::vector<Row>(4, {100, 100, 100, 100}));
  const std::vector<BarForecast> forecasts(2, make_forecast(100, 100, 100));
  const ForecastAccuracy accuracy = forecast_accuracy(bars, tables::Target::close, 2, 1, forecasts);
  EXPECT_EQ(accuracy.model.mae, 0);
  EXPECT_TRUE(std::isnan(accuracy.model.mase));
  EXPECT_TRUE(std::isnan(accuracy.direction_accuracy));
  EXPECT_TRUE(std::isnan(accuracy.dm_p_value));
  EXPECT_EQ(accuracy.coverage_80, 1);
}

TEST(DieboldMariano, TwoStepsAheadByHand) {
  // Differences 1, 2, 3, 6: mean 3, deviations -2, -1, 0, 3. gamma0 = 14/4, gamma1 = (2 + 0 + 0)/4.
  // Variance of the mean (3.5 + 2 x 0.5)/4; Harvey: (4 + 1 - 4 + 2/4)/4 = 0.375.
  const std::vector<double> differences = {1, 2, 3, 6};
  const double statistic = std::sqrt(0.375) * 3 / std::sqrt(4.5 / 4);
  const boost::math::students_t student(3);
  EXPECT_NEAR(diebold_mariano(differences, 2),
              2 * boost::math::cdf(boost::math::complement(student, statistic)), 1e-12);
  // Alternating: gamma0 = 1, gamma1 = -3/4, the variance 1 - 1.5 is not above 0.
  EXPECT_TRUE(std::isnan(diebold_mariano(std::vector<double>{1, -1, 1, -1}, 2)));
  EXPECT_TRUE(std::isnan(diebold_mariano(std::vector<double>{0.1, 0.1, 0.1}, 1)));
  EXPECT_TRUE(std::isnan(diebold_mariano(std::vector<double>{5}, 1)));
}

TEST(DieboldMariano, StudentTailAgreesWithBoost) {
  for (const double df : {1.0, 2.0, 5.0, 49.0, 249.0, 5000.0}) {
    const boost::math::students_t student(df);
    for (const double t : {0.0, 1e-8, 0.01, 0.5, 1.0, 1.96, 3.0, 8.0, 30.0}) {
      const double expected = 2 * boost::math::cdf(boost::math::complement(student, t));
      EXPECT_NEAR(student_two_sided(t, df), expected, 1e-10 * expected + 1e-300) << df << " " << t;
      EXPECT_EQ(student_two_sided(-t, df), student_two_sided(t, df));
    }
  }
}

// ------------------------------------------------------------------------------------- transforms

TEST(Transform, EveryTargetIsMeasuredFromTheClose) {
  // open, high, low, close
  const tables::Bars bars = make_bars(
      {{90, 120, 80, 100}, {105, 120, 95, 110}, {100, 132, 99, 121}, {110, 121, 55, 60.5}});
  std::vector<float> context;
  const auto series = [&](Transform transform, tables::Target target, std::size_t decision,
                          std::size_t lag, std::size_t most = 100) {
    make_context(transform, bars, target, decision, lag, most, context);
    return context;
  };
  using tables::Target;
  EXPECT_EQ(series(Transform::pct, Target::close, 3, 1), (std::vector<float>{0.1f, 0.1f, -0.5f}));
  EXPECT_EQ(series(Transform::pct, Target::close, 3, 2), (std::vector<float>{0.21f, -0.45f}));
  // Highs 120, 132, 121 over closes 100, 110, 121; lows 95, 99, 55; opens 105, 100, 110.
  EXPECT_EQ(series(Transform::pct, Target::high, 3, 1), (std::vector<float>{0.2f, 0.2f, 0}));
  EXPECT_EQ(series(Transform::pct, Target::low, 2, 1), (std::vector<float>{-0.05f, -0.1f}));
  EXPECT_EQ(series(Transform::pct, Target::open, 1, 1), (std::vector<float>{0.05f}));
  EXPECT_EQ(series(Transform::pct, Target::high, 3, 2), (std::vector<float>{0.32f, 0.1f}));
  EXPECT_EQ(series(Transform::pct, Target::close, 3, 1, 2), (std::vector<float>{0.1f, -0.5f}));
  EXPECT_FLOAT_EQ(series(Transform::log, Target::high, 2, 1)[1], std::log(1.2f));
  EXPECT_FLOAT_EQ(series(Transform::log, Target::close, 3, 1, 1)[0], std::log(0.5f));
  EXPECT_EQ(series(Transform::price, Target::low, 3, 2), (std::vector<float>{80, 95, 99, 55}));
  EXPECT_EQ(num_points(Transform::pct, 3, 2), 2u);
  EXPECT_EQ(num_points(Transform::pct, 0, 2), 0u);
  EXPECT_EQ(num_points(Transform::price, 3, 2), 4u);
  EXPECT_EQ(to_price(Transform::pct, 0.25, 80), 100);
  EXPECT_NEAR(to_price(Transform::log, std::log(1.25), 80), 100, 1e-12);
  EXPECT_EQ(to_price(Transform::price, 7, 80), 7);
}

TEST(Transform, ContextsBeginWithABlock) {
  // Blocks of 4096 / 8 = 512 points.
  EXPECT_EQ(context_start(4095, 4096), 0u);
  EXPECT_EQ(context_start(4096, 4096), 0u);
  EXPECT_EQ(context_start(4097, 4096), 512u);
  EXPECT_EQ(context_start(4608, 4096), 512u);
  EXPECT_EQ(context_start(4609, 4096), 1024u);
  // 100 / 8 = 12: 150 points leave 50 too many, five blocks.
  EXPECT_EQ(context_start(150, 100), 60u);
  // Fewer than 8: blocks of one point, the context slides.
  EXPECT_EQ(context_start(20, 7), 13u);
  EXPECT_EQ(context_start(5, 1), 4u);
  const tables::Bars bars = make_bars(std::vector<Row>(150, {1, 1, 1, 1}));
  std::vector<float> context;
  make_context(Transform::price, bars, tables::Target::close, 149, 1, 100, context);
  EXPECT_EQ(context.size(), 90u);
}

TEST(Transform, ChangesBeyondFloatAreRefusedWithTheirLine) {
  const tables::Bars bars = make_bars({{1, 1, 1, 1e-30}, {1, 1, 1, 1e30}});
  io::expect_error(ErrorCode::corrupt_file,
                   {"TEST.csv: line 3", "close 1e+30 after a close of 1e-30"},
                   [&] { check_changes(bars, Transform::pct, 1); });
  check_changes(bars, Transform::log, 1);
  check_changes(bars, Transform::price, 1);
}

}  // namespace
}  // namespace toto::backtest
