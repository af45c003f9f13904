// Every strategy and every fill rule, on bars with results computed by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "backtest/strategy.h"
#include "backtest_fixture.h"
#include "io_fixture.h"

namespace toto::backtest {
namespace {

// The bar before the first decision's target closes at 100; `rows` are the target bars.
tables::Bars after_100(std::vector<Row> rows) {
  rows.insert(rows.begin(), {100, 100, 100, 100});
  return make_bars(rows);
}

Simulation run(const Strategy& strategy, const tables::Bars& bars,
               const std::vector<BarForecast>& forecasts, const Rules& rules = {}) {
  const auto orders = decide(strategy, {bars, 1, forecasts, rules});
  return simulate(strategy, bars, 1, orders, rules.costs);
}

std::vector<Side> sides(const Strategy& strategy, const tables::Bars& bars,
                        const std::vector<BarForecast>& forecasts, const Rules& rules = {}) {
  std::vector<Side> result;
  for (const BarOrders& orders : decide(strategy, {bars, 1, forecasts, rules})) {
    result.push_back(orders.legs[0].side);
  }
  return result;
}

constexpr Side kLong = Side::buy, kShort = Side::sell, kFlat = Side::flat;

// ------------------------------------------------------------------------------------- holding

TEST(Holding, BuyHoldIsOneTradeWithCostsOnBothSides) {
  const tables::Bars bars = after_100({{100, 111, 99, 110}, {110, 125, 108, 120}});
  Rules rules;
  rules.costs = {.fee = 0.001, .slippage = 0.01};
  const std::vector<BarForecast> forecasts(2, make_forecast(1, 1, 1));
  const Simulation result = run(parse_strategy("buy-hold"), bars, forecasts, rules);
  ASSERT_EQ(result.trades.size(), 1u);
  const Trade& trade = result.trades[0];
  // In at 100 x 1.01 = 101, out at 120 x 0.99 = 118.8.
  EXPECT_DOUBLE_EQ(trade.entry_price, 101);
  EXPECT_DOUBLE_EQ(trade.exit_price, 118.8);
  EXPECT_EQ(trade.entry_bar, 1u);
  EXPECT_EQ(trade.exit_bar, 2u);
  // Fee 0.001 x (1 + 118.8/101); return 118.8/101 - 1 - fee.
  EXPECT_NEAR(trade.fee, 0.001 * (1 + 118.8 / 101), kExact);
  EXPECT_NEAR(trade.net_return, 118.8 / 101 - 1 - 0.001 * (1 + 118.8 / 101), kExact);
  // At the first close: 1 + 110/101 - 1 - 0.001, the entry's fee alone.
  EXPECT_NEAR(result.equity[0], 110.0 / 101 - 0.001, kExact);
  EXPECT_NEAR(result.equity[1], 1 + trade.net_return, kExact);
  EXPECT_NEAR(result.returns[0], 110.0 / 101 - 1.001, kExact);
  EXPECT_NEAR((1 + result.returns[0]) * (1 + result.returns[1]), result.equity[1], kExact);
  EXPECT_EQ(result.bars_held, 2u);
}

TEST(Holding, AChangeOfSideClosesAndOpensAtTheSameOpen) {
  // Long on bars 1 and 2, short on 3 and 4.
  const tables::Bars bars = after_100(
      {{100, 111, 99, 110}, {110, 125, 108, 120}, {121, 122, 100, 105}, {104, 106, 95, 99}});
  const std::vector<BarForecast> forecasts = {make_forecast(101, 1, 1), make_forecast(111, 1, 1),
                                              make_forecast(119, 1, 1), make_forecast(104, 1, 1)};
  EXPECT_EQ(sides(parse_strategy("simple"), bars, forecasts),
            (std::vector<Side>{kLong, kLong, kShort, kShort}));
  const Simulation result = run(parse_strategy("simple"), bars, forecasts);
  ASSERT_EQ(result.trades.size(), 2u);
  EXPECT_EQ(result.trades[0].exit_price, 121);  // the open of bar 3
  EXPECT_EQ(result.trades[0].exit_bar, 3u);
  EXPECT_NEAR(result.trades[0].net_return, 0.21, kExact);
  EXPECT_EQ(result.trades[1].side, kShort);
  EXPECT_EQ(result.trades[1].entry_price, 121);
  EXPECT_EQ(result.trades[1].exit_price, 99);
  EXPECT_NEAR(result.trades[1].net_return, 22.0 / 121, kExact);
  // Equity: 1.1, 1.2, then 1.21 x (1 - (105/121 - 1)), then 1.21 x (1 + 22/121) = 1.43.
  EXPECT_NEAR(result.equity[1], 1.2, kExact);
  EXPECT_NEAR(result.equity[2], 1.21 * (1 + 16.0 / 121), kExact);
  EXPECT_NEAR(result.equity[3], 1.43, kExact);
  EXPECT_EQ(result.bars_held, 4u);
}

TEST(Holding, FillsAtTheCloseBeforeBelongToTheirOwnBar) {
  const tables::Bars bars =
      after_100({{102, 111, 99, 110}, {112, 125, 108, 120}, {121, 122, 100, 105}});
  const std::vector<BarForecast> forecasts = {make_forecast(101, 1, 1), make_forecast(111, 1, 1),
                                              make_forecast(119, 1, 1)};
  Rules rules;
  rules.costs = {.fee = 0.01, .fill_at_close = true};
  const Simulation result = run(parse_strategy("simple"), bars, forecasts, rules);
  ASSERT_EQ(result.trades.size(), 2u);
  EXPECT_EQ(result.trades[0].entry_price, 100);
  EXPECT_EQ(result.trades[0].entry_bar, 0u);
  EXPECT_EQ(result.trades[0].exit_price, 120);
  EXPECT_EQ(result.trades[0].exit_bar, 2u);
  EXPECT_EQ(result.trades[1].entry_bar, 2u);
  // Long return 0.2 - 0.01 x 2.2 = 0.178. Marked at 120 the equity is 1.2 - 0.01: the exit's fee
  // and the next entry's fall into bar 3.
  EXPECT_NEAR(result.equity[1], 1.19, kExact);
  const double short_return = (120.0 - 105) / 120 - 0.01 * (1 + 105.0 / 120);
  EXPECT_NEAR(result.equity[2], 1.178 * (1 + short_return), kExact);
}

TEST(Holding, BorrowIsPaidForEachBarHeldShortButNotForTheBarOfTheExit) {
  const tables::Bars bars =
      after_100({{100, 100, 100, 100}, {100, 100, 100, 100}, {100, 100, 100, 100}});
  const std::vector<BarForecast> forecasts = {make_forecast(99, 1, 1), make_forecast(99, 1, 1),
                                              make_forecast(101, 1, 1)};
  Rules rules;
  rules.costs.borrow = 0.001;
  const Simulation result = run(parse_strategy("simple"), bars, forecasts, rules);
  ASSERT_EQ(result.trades.size(), 2u);
  EXPECT_NEAR(result.trades[0].net_return, -0.002, kExact);
  EXPECT_NEAR(result.trades[1].net_return, 0, kExact) << "a long position borrows nothing";
  EXPECT_NEAR(result.equity[0], 0.999, kExact);
  EXPECT_NEAR(result.equity[1], 0.998, kExact);
  EXPECT_NEAR(result.equity[2], 0.998, kExact);
}

TEST(Holding, AllSignalsLooksAtEachSeriesOwnLastValue) {
  // Last values: close 100, low 95, high 105.
  tables::Bars bars = make_bars({{100, 105, 95, 100}, {100, 105, 95, 100}});
  const auto side = [&](double close, double low, double high) {
    return sides(parse_strategy("all-signals"), bars, {make_forecast(close, low, high)})[0];
  };
  EXPECT_EQ(side(101, 96, 106), kLong);
  EXPECT_EQ(side(99, 94, 104), kShort);
  EXPECT_EQ(side(101, 96, 105), kFlat) << "the high does not move";
  EXPECT_EQ(side(101, 94, 106), kFlat);
  EXPECT_EQ(side(99, 94, 106), kFlat);
}

TEST(Holding, CiGuardWaitsForMoreThanTheBand) {
  const tables::Bars bars = make_bars({{100, 100, 100, 100}, {100, 100, 100, 100}});
  const auto side = [&](double close, double q04, double q06, double multiplier) {
    BarForecast forecast = make_forecast(close, 1, 1);
    forecast[0].quantiles[3] = q04;
    forecast[0].quantiles[5] = q06;
    Rules rules;
    rules.ci_multiplier = multiplier;
    return sides(parse_strategy("ci-guard"), bars, {forecast}, rules)[0];
  };
  // w = (102 - 98)/100 = 0.04.
  EXPECT_EQ(side(105, 98, 102, 1), kLong);
  EXPECT_EQ(side(103, 98, 102, 1), kFlat);
  EXPECT_EQ(side(95, 98, 102, 1), kShort);
  EXPECT_EQ(side(97, 98, 102, 1), kFlat);
  EXPECT_EQ(side(103, 98, 102, 0.5), kLong) << "w = 0.02";
  EXPECT_EQ(side(105, 98, 102, 2), kFlat) << "w = 0.08";
  EXPECT_EQ(side(100, 100, 100, 1), kFlat) << "0 is neither above nor below 0";
}

TEST(Holding, UnprofitShutdownFollowsTheTradesOfSimple) {
  // Closes and opens: simple is long on bar 1, short on 2, long on 3 and 4, short on 5, long on 6.
  const tables::Bars bars = after_100({{100, 100, 90, 90},      // long: out at 90, -10 %
                                       {90, 90, 80, 80},        // short from 90, out at 80: +11 %
                                       {80, 90, 80, 90},        // long from 80 ...
                                       {90, 100, 90, 100},      // ... out at 100: +25 %
                                       {100, 120, 100, 120},    // short from 100, out at 120: -20 %
                                       {120, 130, 120, 130}});  // long
  const auto up = [](double last) { return make_forecast(last + 1, 1, 1); };
  const auto down = [](double last) { return make_forecast(last - 1, 1, 1); };
  const std::vector<BarForecast> forecasts = {up(100), down(90),  up(80),
                                              up(90),  down(100), up(120)};
  // Bar 1 (decided at 0): no trade known. Bar 2 short: none known. Bar 3 long, decided after bar 2:
  // the long trade closed at the open of bar 2 lost: flat, and on bar 4 still. Bar 5 short: the one
  // closed at bar 3 won. Bar 6 long: the long trade that was not taken, closed at bar 5, won.
  EXPECT_EQ(sides(parse_strategy("unprofit-shutdown"), bars, forecasts),
            (std::vector<Side>{kLong, kShort, kFlat, kFlat, kShort, kLong}));
}

TEST(Holding, UnprofitShutdownKnowsNoTradeClosedAfterTheDecision) {
  // Lag 2: bar 4 is decided after bar 2. The long trade of bars 2 closed at the open of bar 3.
  const tables::Bars bars = make_bars({{100, 100, 100, 100},
                                       {100, 100, 100, 100},
                                       {100, 100, 90, 90},  // long, loses
                                       {90, 90, 90, 90},    // short
                                       {90, 90, 90, 90},    // long
                                       {90, 90, 90, 90}});  // long
  Rules rules;
  rules.lag = 2;
  const std::vector<BarForecast> forecasts = {make_forecast(101, 1, 1), make_forecast(99, 1, 1),
                                              make_forecast(91, 1, 1), make_forecast(91, 1, 1)};
  const auto orders = decide(parse_strategy("unprofit-shutdown"), {bars, 2, forecasts, rules});
  EXPECT_EQ(orders[2].legs[0].side, kLong) << "decided after bar 2, the loss is booked at bar 3";
  EXPECT_EQ(orders[3].legs[0].side, kFlat) << "decided after bar 3";
}

TEST(Holding, CryptoIsNeverShort) {
  const tables::Bars bars = after_100({{100, 101, 90, 95}});
  Rules rules;
  rules.asset = tables::Asset::crypto;
  const std::vector<BarForecast> down = {make_forecast(90, 80, 95)};
  for (const Strategy& strategy : all_strategies()) {
    for (const BarOrders& orders : decide(strategy, {bars, 1, down, rules})) {
      for (const Order& order : orders.legs) {
        EXPECT_NE(order.side, kShort) << strategy.name;
      }
    }
  }
  EXPECT_EQ(run(parse_strategy("simple"), bars, down, rules).equity[0], 1);
}

TEST(Holding, ARuinedStrategyStaysFlat) {
  // Short from 100; the close at 250 leaves -0.5. Out at the next open, then never in again.
  const tables::Bars bars =
      after_100({{100, 250, 100, 250}, {260, 260, 260, 260}, {100, 100, 50, 50}});
  const std::vector<BarForecast> forecasts(3, make_forecast(1, 1, 1));
  const Simulation result = run(parse_strategy("simple"), bars, forecasts);
  ASSERT_EQ(result.trades.size(), 1u);
  EXPECT_EQ(result.trades[0].exit_price, 260);
  EXPECT_NEAR(result.equity[0], -0.5, kExact);
  EXPECT_NEAR(result.equity[2], -0.6, kExact);
  EXPECT_EQ(result.returns[2], 0);
  EXPECT_EQ(result.bars_held, 1u);
}

TEST(Holding, ConstantPricesLoseTheCosts) {
  const tables::Bars bars = after_100(std::vector<Row>(5, {100, 100, 100, 100}));
  const std::vector<BarForecast> forecasts(5, make_forecast(100, 100, 100));
  Rules rules;
  rules.costs.fee = 0.001;
  for (const Strategy& strategy : all_strategies()) {
    const Simulation result = run(strategy, bars, forecasts, rules);
    if (strategy.name == "entry-takeprofit") {  // a round trip each bar
      EXPECT_NEAR(result.equity.back(), std::pow(1 - 0.002, 5), kExact);
    } else if (strategy.name == "buy-hold" || strategy.name == "simple" ||  // no rise: short
               strategy.name == "unprofit-shutdown") {  // the only trade closes with the last bar
      EXPECT_NEAR(result.equity.back(), 1 - 0.002, kExact) << strategy.name;
    } else {
      EXPECT_TRUE(result.trades.empty()) << strategy.name;
      EXPECT_EQ(result.equity.back(), 1) << strategy.name;
    }
  }
}

TEST(Forecasts, ABarThatCannotExistIsIncoherent) {
  const auto coherent = [](double close, double low, double high, double open) {
    return is_coherent(make_forecast(close, low, high, open));
  };
  EXPECT_TRUE(coherent(101, 95, 105, 100));
  EXPECT_TRUE(coherent(100, 100, 100, 100)) << "equal prices are possible";
  EXPECT_FALSE(coherent(101, 100.5, 105, 100)) << "the low is above the open";
  EXPECT_FALSE(coherent(94, 95, 105, 100)) << "the close is below the low";
  EXPECT_FALSE(coherent(106, 95, 105, 100));
  EXPECT_FALSE(coherent(101, 95, 105, 107)) << "the open is above the high";
}

// ------------------------------------------------------------------------------------ round trips

TEST(RoundTrip, EntryTakeprofitFillsOnlyStrictlyThroughItsPrice) {
  const std::vector<BarForecast> up = {make_forecast(101, 95, 105)};
  // Touching 105 is not trading through it.
  EXPECT_EQ(run(parse_strategy("entry-takeprofit"), after_100({{100, 105, 99, 102}}), up)
                .trades[0]
                .exit_price,
            102);
  EXPECT_EQ(run(parse_strategy("entry-takeprofit"), after_100({{100, 105.01, 99, 102}}), up)
                .trades[0]
                .exit_price,
            105);
  // Short: take-profit at the predicted low.
  const std::vector<BarForecast> down = {make_forecast(99, 95, 105)};
  const Trade touched =
      run(parse_strategy("entry-takeprofit"), after_100({{100, 101, 95, 98}}), down).trades[0];
  EXPECT_EQ(touched.side, kShort);
  EXPECT_EQ(touched.exit_price, 98);
  const Trade through =
      run(parse_strategy("entry-takeprofit"), after_100({{100, 101, 94, 98}}), down).trades[0];
  EXPECT_EQ(through.exit_price, 95);
  EXPECT_NEAR(through.net_return, 0.05, kExact);
}

TEST(RoundTrip, ATakeProfitOnTheWrongSideIsNotPlaced) {
  // The bar opens at 106, above the predicted high of 105: selling at 105 would take a loss.
  const std::vector<BarForecast> up = {make_forecast(101, 95, 105)};
  const Simulation result =
      run(parse_strategy("entry-takeprofit"), after_100({{106, 107, 99, 102}}), up);
  EXPECT_EQ(result.trades[0].exit_price, 102);
  // Exactly at the entry fill: 100 x 1.05.
  Rules rules;
  rules.costs.slippage = 0.05;
  const Simulation equal =
      run(parse_strategy("entry-takeprofit"), after_100({{100, 107, 99, 102}}), up, rules);
  EXPECT_DOUBLE_EQ(equal.trades[0].entry_price, 105);
  EXPECT_DOUBLE_EQ(equal.trades[0].exit_price, 102 * 0.95);
}

TEST(RoundTrip, EntryAtTheCloseBeforeMeetsAGapThroughTheTakeProfit) {
  Rules rules;
  rules.costs.fill_at_close = true;
  const std::vector<BarForecast> up = {make_forecast(101, 95, 105)};
  const Trade trade =
      run(parse_strategy("entry-takeprofit"), after_100({{110, 112, 108, 109}}), up, rules)
          .trades[0];
  EXPECT_EQ(trade.entry_price, 100);
  EXPECT_EQ(trade.entry_bar, 0u);
  EXPECT_EQ(trade.exit_bar, 1u);
  EXPECT_EQ(trade.exit_price, 110) << "the bar never trades at 105: out at its open";
  // Short from 100, take-profit at 95; the bar opens at 90.
  const std::vector<BarForecast> down = {make_forecast(99, 95, 105)};
  const Trade short_trade =
      run(parse_strategy("entry-takeprofit"), after_100({{90, 93, 88, 92}}), down, rules).trades[0];
  EXPECT_EQ(short_trade.exit_price, 90);
  EXPECT_NEAR(short_trade.net_return, 0.1, kExact);
}

TEST(RoundTrip, HighlowEntersAtTheLimitAndLeavesAtTheClose) {
  Rules rules;
  rules.costs = {.fee = 0.001, .slippage = 0.01};
  const std::vector<BarForecast> up = {make_forecast(101, 95, 105)};
  EXPECT_TRUE(
      run(parse_strategy("highlow"), after_100({{100, 110, 95, 104}}), up, rules).trades.empty())
      << "a low of 95 only touches the limit";
  const Simulation result =
      run(parse_strategy("highlow"), after_100({{100, 110, 94, 104}}), up, rules);
  ASSERT_EQ(result.trades.size(), 1u);
  // In at 95 without slippage, out at 104 x 0.99 = 102.96.
  EXPECT_EQ(result.trades[0].entry_price, 95);
  EXPECT_DOUBLE_EQ(result.trades[0].exit_price, 102.96);
  EXPECT_NEAR(result.equity[0], 102.96 / 95 - 0.001 * (1 + 102.96 / 95), kExact);
  // Short: in at the predicted high, out at 98 x 1.01.
  const std::vector<BarForecast> down = {make_forecast(99, 95, 105)};
  const Trade trade =
      run(parse_strategy("highlow"), after_100({{100, 106, 94, 98}}), down, rules).trades[0];
  EXPECT_EQ(trade.side, kShort);
  EXPECT_EQ(trade.entry_price, 105);
  EXPECT_DOUBLE_EQ(trade.exit_price, 98.98);
}

TEST(RoundTrip, AGapThroughTheLimitFillsAtTheOpen) {
  // The whole bar lies below the limit of 95: it never trades there.
  Rules rules;
  rules.costs.slippage = 0.01;
  const std::vector<BarForecast> up = {make_forecast(101, 95, 105)};
  const Trade trade =
      run(parse_strategy("highlow"), after_100({{90, 92, 88, 91}}), up, rules).trades[0];
  EXPECT_EQ(trade.entry_price, 90) << "without slippage";
  EXPECT_NEAR(trade.net_return, 91 * 0.99 / 90 - 1, kExact);
  // It opens below the limit and trades above it later: still in at the open.
  const Trade inside = run(parse_strategy("highlow"), after_100({{94, 99, 93, 98}}), up).trades[0];
  EXPECT_EQ(inside.entry_price, 94);
  // An open at the limit itself is not beyond it.
  const Trade at = run(parse_strategy("highlow"), after_100({{95, 99, 94, 98}}), up).trades[0];
  EXPECT_EQ(at.entry_price, 95);
  const std::vector<BarForecast> down = {make_forecast(99, 95, 105)};
  const Trade sold =
      run(parse_strategy("highlow"), after_100({{110, 112, 108, 109}}), down).trades[0];
  EXPECT_EQ(sold.side, kShort);
  EXPECT_EQ(sold.entry_price, 110);
  EXPECT_NEAR(sold.net_return, 1.0 / 110, kExact);
}

TEST(RoundTrip, ATakeProfitBeyondTheFillAtTheOpenIsPlaced) {
  // Limit 95, take-profit 105. In at the open of 90, then through 105: 15/90.
  const std::vector<BarForecast> up = {make_forecast(101, 95, 106)};
  const Trade trade = run(parse_strategy("maxdiff"), after_100({{90, 107, 88, 100}}), up).trades[0];
  EXPECT_EQ(trade.entry_price, 90);
  EXPECT_EQ(trade.exit_price, 106);
  EXPECT_NEAR(trade.net_return, 16.0 / 90, kExact);
}

TEST(RoundTrip, ATakeProfitNeverFillsAtAnOpenBeforeItsEntry) {
  // The bar opens at 110, beyond the take-profit of 106, falls through the limit of 95 and closes
  // at 107: in at 95, out at 106 on the way up. The open is over when the entry fills.
  const std::vector<BarForecast> up = {make_forecast(101, 95, 106)};
  const Simulation result = run(parse_strategy("maxdiff"), after_100({{110, 111, 94, 107}}), up);
  ASSERT_EQ(result.trades.size(), 1u);
  EXPECT_EQ(result.trades[0].entry_price, 95);
  EXPECT_EQ(result.trades[0].exit_price, 106);
  EXPECT_EQ(result.num_ambiguous_bars, 0u);
}

// Every limit of every strategy, on bars that gap and forecasts that miss.
TEST(RoundTrip, NoFillLiesOutsideItsBar) {
  std::mt19937 engine(17);
  std::normal_distribution<double> noise(0, 0.03);
  std::vector<Row> rows;
  std::vector<BarForecast> forecasts;
  double close = 100;
  for (int i = 0; i < 400; ++i) {
    const double open = close * std::exp(noise(engine)), last = close;
    close = open * std::exp(noise(engine));
    rows.push_back({open, std::max(open, close) * (1 + std::abs(noise(engine))),
                    std::min(open, close) * (1 - std::abs(noise(engine))), close});
    const double low = last * (1 - std::abs(noise(engine)));
    forecasts.push_back(
        make_forecast(last * std::exp(noise(engine)), low, low * (1 + std::abs(noise(engine)))));
  }
  const tables::Bars bars = after_100(rows);
  std::size_t at_limits = 0;
  for (const bool at_close : {false, true}) {
    Rules rules;
    rules.costs.fill_at_close = at_close;
    for (const Strategy& strategy : all_strategies()) {
      for (const Trade& trade : run(strategy, bars, forecasts, rules).trades) {
        EXPECT_GE(trade.entry_price, bars.low[trade.entry_bar]) << strategy.name;
        EXPECT_LE(trade.entry_price, bars.high[trade.entry_bar]) << strategy.name;
        EXPECT_GE(trade.exit_price, bars.low[trade.exit_bar]) << strategy.name;
        EXPECT_LE(trade.exit_price, bars.high[trade.exit_bar]) << strategy.name;
        at_limits += strategy.kind == Strategy::Kind::limit ? 1 : 0;
      }
    }
  }
  EXPECT_GT(at_limits, 1000u);
}

TEST(RoundTrip, MaxdiffSideFollowsTheSumOfBothMoves) {
  const tables::Bars bars = after_100({{100, 104, 96, 100}});
  // h = 0.06, l = -0.05: long; h = 0.04, l = -0.05: short.
  EXPECT_EQ(sides(parse_strategy("maxdiff"), bars, {make_forecast(90, 95, 106)})[0], kLong);
  EXPECT_EQ(sides(parse_strategy("maxdiff"), bars, {make_forecast(110, 95, 104)})[0], kShort);
  EXPECT_EQ(sides(parse_strategy("maxdiff"), bars, {make_forecast(110, 105, 104)})[0], kFlat)
      << "the low is not below the high";
  EXPECT_EQ(sides(parse_strategy("maxdiff"), bars, {make_forecast(110, 104, 104)})[0], kFlat);
}

// Long: in at 95, take-profit at 106, with every order of events a bar can show.
TEST(RoundTrip, BothOrdersWithinABar) {
  const std::vector<BarForecast> forecast = {make_forecast(100, 95, 106)};
  const auto result = [&](Row row) {
    return run(parse_strategy("maxdiff"), after_100({row}), forecast);
  };
  const Simulation only_entry = result({100, 106, 94, 103});
  EXPECT_EQ(only_entry.trades[0].exit_price, 103) << "106 is touched, not passed";
  EXPECT_EQ(only_entry.num_ambiguous_bars, 0u);
  EXPECT_TRUE(result({100, 107, 95, 103}).trades.empty()) << "95 is touched, not passed";
  const Simulation unknown = result({100, 107, 94, 103});
  EXPECT_EQ(unknown.trades[0].exit_price, 103) << "the high may have come first";
  EXPECT_EQ(unknown.num_ambiguous_bars, 1u);
  const Simulation opened_below = result({94.5, 107, 94, 103});
  EXPECT_EQ(opened_below.trades[0].exit_price, 106);
  EXPECT_EQ(opened_below.trades[0].entry_price, 94.5);
  EXPECT_EQ(opened_below.num_ambiguous_bars, 0u);
  EXPECT_EQ(result({95, 107, 94, 103}).num_ambiguous_bars, 1u) << "open at, not through";
  const Simulation closed_above = result({100, 108, 94, 107});
  EXPECT_EQ(closed_above.trades[0].exit_price, 106);
  EXPECT_NEAR(closed_above.trades[0].net_return, 106.0 / 95 - 1, kExact);
  EXPECT_EQ(result({100, 108, 94, 106}).num_ambiguous_bars, 1u) << "close at, not beyond";
}

TEST(RoundTrip, MaxdiffShortMirrorsTheLong) {
  const std::vector<BarForecast> forecast = {make_forecast(100, 94, 105)};  // h + l < 0
  const auto result = [&](Row row) {
    return run(parse_strategy("maxdiff"), after_100({row}), forecast);
  };
  const Simulation opened_above = result({105.5, 106, 93, 100});
  EXPECT_EQ(opened_above.trades[0].side, kShort);
  EXPECT_EQ(opened_above.trades[0].entry_price, 105.5);
  EXPECT_EQ(opened_above.trades[0].exit_price, 94);
  EXPECT_NEAR(opened_above.trades[0].net_return, 1 - 94 / 105.5, kExact);
  EXPECT_EQ(result({100, 106, 93, 100}).num_ambiguous_bars, 1u);
  EXPECT_EQ(result({100, 106, 92, 93}).trades[0].exit_price, 94);
}

TEST(RoundTrip, AlwaysOnTradesBothLegsWithHalfTheMoneyEach) {
  const std::vector<BarForecast> forecast = {make_forecast(100, 95, 105)};
  Rules rules;
  rules.costs.fee = 0.001;
  // Both limits are passed in an unknown order: both legs go out at the close of 101.
  const Simulation both =
      run(parse_strategy("maxdiff-alwayson"), after_100({{100, 106, 94, 101}}), forecast, rules);
  ASSERT_EQ(both.trades.size(), 2u);
  const double long_return = 0.5 * (101.0 / 95 - 1 - 0.001 * (1 + 101.0 / 95));
  const double short_return = 0.5 * (1 - 101.0 / 105 - 0.001 * (1 + 101.0 / 105));
  EXPECT_NEAR(both.trades[0].net_return, long_return, kExact);
  EXPECT_NEAR(both.trades[0].fee, 0.0005 * (1 + 101.0 / 95), kExact);
  EXPECT_NEAR(both.trades[1].net_return, short_return, kExact);
  EXPECT_NEAR(both.equity[0], 1 + long_return + short_return, kExact);
  EXPECT_EQ(both.num_ambiguous_bars, 1u) << "one bar, counted once";
  EXPECT_EQ(both.bars_held, 1u);
  // Crypto: the long leg with everything.
  rules.asset = tables::Asset::crypto;
  const Simulation crypto =
      run(parse_strategy("maxdiff-alwayson"), after_100({{100, 106, 94, 101}}), forecast, rules);
  ASSERT_EQ(crypto.trades.size(), 1u);
  EXPECT_NEAR(crypto.trades[0].net_return, 2 * long_return, kExact);
}

TEST(RoundTrip, InvalidPricesPlaceNoOrder) {
  const tables::Bars bars = after_100({{100, 106, 94, 101}});
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(run(parse_strategy("highlow"), bars, {make_forecast(101, -5, 105)}).trades.empty());
  EXPECT_TRUE(
      run(parse_strategy("highlow"), bars, {make_forecast(101, infinite, 105)}).trades.empty());
  EXPECT_TRUE(run(parse_strategy("highlow"), bars, {make_forecast(99, 95, -1)}).trades.empty());
  EXPECT_TRUE(
      run(parse_strategy("highlow"), bars, {make_forecast(101, kNoPrice, 105)}).trades.empty());
}

// --------------------------------------------------------------------------------------- offsets

TEST(Offsets, AreLearnedFromEarlierWindowsOnly) {
  // Every low is 95.2, the forecast says 95: the limit is never reached. Offset +0.25 % makes it
  // 95.2375 and earns 100/95.2375 - 1 a bar.
  const std::vector<Row> rows(6, {100, 101, 95.2, 100});
  const tables::Bars bars = after_100(rows);
  const std::vector<BarForecast> forecasts(6, make_forecast(101, 95, 105));
  Rules rules;
  EXPECT_TRUE(run(parse_strategy("highlow"), bars, forecasts, rules).trades.empty());
  rules.tune_offsets = true;
  const Simulation tuned = run(parse_strategy("highlow"), bars, forecasts, rules);
  ASSERT_EQ(tuned.trades.size(), 5u) << "nothing is known before the first window is over";
  EXPECT_EQ(tuned.trades[0].entry_bar, 2u);
  EXPECT_NEAR(tuned.trades[0].entry_price, 95 * 1.0025, kExact);
  // The holding strategies and entry-takeprofit have nothing to tune.
  for (const char* name : {"simple", "entry-takeprofit"}) {
    const Strategy& strategy = parse_strategy(name);
    Rules plain;
    EXPECT_EQ(run(strategy, bars, forecasts, rules).equity,
              run(strategy, bars, forecasts, plain).equity);
  }
}

// ----------------------------------------------------------------------------------------- speed

// Some tens of milliseconds.
TEST(Speed, AMillionOrdersTakeAMoment) {
  constexpr std::size_t kBars = 1'000'000;
  std::vector<Row> rows;
  for (std::size_t i = 0; i <= kBars; ++i) {
    const double base = 100 + static_cast<double>(i % 7);
    rows.push_back({base, base + 3, base - 3, base + 1});
  }
  const tables::Bars bars = make_bars(rows);
  BarOrders orders;
  orders.legs[0] = {.side = kLong, .at_limit = true, .entry = 99.5, .take_profit = 104};
  const std::vector<BarOrders> all(kBars, orders);
  const double start = io::cpu_seconds();
  const Simulation result = simulate_round_trips(bars, 1, all, {.fee = 0.0005});
  const double seconds = io::cpu_seconds() - start;
  EXPECT_GT(result.trades.size(), kBars / 4);
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_LT(seconds, io::kHangSeconds);
}

}  // namespace
}  // namespace toto::backtest
