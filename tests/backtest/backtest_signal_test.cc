// The decision about the coming bar: the same bits as a backtest that has the bar, its time, its
// probability and its words.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "backtest/signal.h"
#include "backtest_fixture.h"
#include "base/elementary.h"
#include "test_model.h"

namespace toto::backtest {
namespace {

// Weekdays, or every day.
tables::Bars walk_of_days(unsigned seed, std::size_t count, bool weekends) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<Row> rows;
  double close = 100;
  for (std::size_t i = 0; i < count; ++i) {
    const double open = close * std::exp(noise(engine) / 3);
    close = open * std::exp(noise(engine));
    rows.push_back({open, std::max(open, close) * std::exp(std::abs(noise(engine))),
                    std::min(open, close) * std::exp(-std::abs(noise(engine))), close});
  }
  tables::Bars bars = make_bars(rows);
  tables::Ticks day = bars.times[0];
  for (tables::Ticks& time : bars.times) {
    while (!weekends && tables::weekday(day) >= 5) day += tables::kDay;
    time = day;
    day += tables::kDay;
  }
  return bars;
}

tables::Bars first_bars(const tables::Bars& bars, std::size_t count) {
  tables::Bars part = bars;
  part.times.resize(count);
  part.lines.resize(count);
  for (auto* prices : {&part.open, &part.high, &part.low, &part.close}) prices->resize(count);
  return part;
}

// Prices around the last ones, different at each decision; reads the bars up to it only.
class Scattered final : public ForecastSource {
 public:
  void forecast(std::span<const TargetRequest> requests,
                std::span<TargetForecast> results) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const TargetRequest& request = requests[i];
      std::mt19937 engine(static_cast<unsigned>(request.decision * 4 +
                                                static_cast<std::size_t>(request.target) + 1));
      engine.discard(10);
      std::normal_distribution<double> noise(0, 0.006);
      results[i].point =
          request.bars->prices(request.target)[request.decision] * std::exp(noise(engine));
      for (std::size_t q = 0; q < kNumLevels; ++q) {
        results[i].quantiles[q] = results[i].point * (1 + 0.002 * (static_cast<double>(q) - 4));
      }
    }
  }
};

bool same_price(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

void expect_same(const BarOrders& a, const BarOrders& b, std::string_view what) {
  EXPECT_EQ(a.num_legs, b.num_legs) << what;
  EXPECT_EQ(a.share, b.share) << what;
  for (std::size_t leg = 0; leg < a.legs.size(); ++leg) {
    EXPECT_EQ(a.legs[leg].side, b.legs[leg].side) << what;
    EXPECT_EQ(a.legs[leg].at_limit, b.legs[leg].at_limit) << what;
    EXPECT_TRUE(same_price(a.legs[leg].entry, b.legs[leg].entry)) << what;
    EXPECT_TRUE(same_price(a.legs[leg].take_profit, b.legs[leg].take_profit)) << what;
  }
}

// The signal after bar `last` against the backtest of the file with all bars.
void expect_agreement(const tables::Bars& all, std::size_t last, const BacktestSpec& spec,
                      ForecastSource& source) {
  const PreparedBacktest early = prepare_signal(spec, {.bars = {first_bars(all, last + 1)}});
  ASSERT_EQ(early.plan.symbols.size(), 1u);
  const auto signals = signals_of(early.plan.symbols, spec.strategies, source);
  const PreparedBacktest later = prepare(spec, {.bars = {first_bars(all, last + 1 + spec.lag)}});
  const SymbolPlan& plan = later.plan.symbols.at(0);
  EXPECT_EQ(plan.first, early.plan.symbols[0].first);
  EXPECT_EQ(plan.count, early.plan.symbols[0].count);
  EXPECT_EQ(plan.bars_per_year, early.plan.symbols[0].bars_per_year);
  const auto forecasts = forecast_all(later.plan.symbols, source);
  const SymbolSignal& signal = signals.at(0);
  EXPECT_EQ(signal.target_time, plan.bars->time_text(last + spec.lag));
  EXPECT_EQ(signal.last_time, plan.bars->time_text(last));
  EXPECT_EQ(signal.last_price, all.close[last]);
  EXPECT_EQ(signal.forecast, forecasts[0].back());
  for (std::size_t s = 0; s < spec.strategies.size(); ++s) {
    const auto orders =
        decide(*spec.strategies[s], {*plan.bars, plan.first, forecasts[0], plan.rules});
    expect_same(signal.strategies[s].orders, orders.back(), spec.strategies[s]->name);
  }
}

TEST(Signal, IsTheDecisionOfABacktestThatHasTheBar) {
  Scattered source;
  for (const bool weekends : {false, true}) {
    const tables::Bars all = walk_of_days(weekends ? 5 : 4, 330, weekends);
    for (const std::size_t lag : {1u, 2u, 5u}) {
      for (const bool tuned : {false, true}) {
        BacktestSpec spec;
        spec.windows = 60;
        spec.lag = lag;
        spec.tune_offsets = tuned;
        spec.fill_at_close = tuned && lag > 1;
        spec.borrow_apr = 0.03;
        for (std::size_t last = 240; last < 320; last += 7)
          expect_agreement(all, last, spec, source);
      }
    }
  }
}

TEST(Signal, ADirectionThatLostIsShutDownAsInTheBacktest) {
  // Of 80 decisions some must be shut down, or the test above proves nothing about it.
  Scattered source;
  const tables::Bars all = walk_of_days(4, 330, false);
  BacktestSpec spec;
  spec.windows = 60;
  spec.strategies = {&parse_strategy("simple"), &parse_strategy("unprofit-shutdown")};
  std::size_t shut = 0;
  for (std::size_t last = 240; last < 320; ++last) {
    const PreparedBacktest early = prepare_signal(spec, {.bars = {first_bars(all, last + 1)}});
    const auto signal = signals_of(early.plan.symbols, spec.strategies, source).at(0);
    if (signal.strategies[1].orders.legs[0].side != Side::flat) continue;
    ++shut;
    EXPECT_NE(signal.strategies[1].reason.find("trade of simple lost"), std::string::npos);
  }
  EXPECT_GT(shut, 10u);
  EXPECT_LT(shut, 70u);
}

// Four forecasts instead of four for each window, where no strategy looks back.
TEST(Signal, LooksBackOnlyForStrategiesThatDo) {
  class Counting final : public ForecastSource {
   public:
    void forecast(std::span<const TargetRequest> requests,
                  std::span<TargetForecast> results) override {
      count += requests.size();
      Scattered().forecast(requests, results);
    }
    std::size_t count = 0;
  };
  const std::vector<tables::Bars> bars = {walk_of_days(4, 330, false)};
  BacktestSpec spec;
  spec.windows = 60;
  const auto count = [&](std::vector<const Strategy*> strategies, bool tuned) {
    spec.tune_offsets = tuned;
    const PreparedBacktest prepared = prepare_signal(spec, {.bars = bars});
    Counting source;
    signals_of(prepared.plan.symbols, strategies, source);
    return source.count;
  };
  EXPECT_EQ(count({&parse_strategy("simple"), &parse_strategy("maxdiff")}, false), 4u);
  EXPECT_EQ(count({&parse_strategy("simple"), &parse_strategy("maxdiff")}, true), 240u);
  EXPECT_EQ(count({&parse_strategy("unprofit-shutdown")}, false), 240u);
}

TEST(Signal, TheComingBarsFollowTheCalendarOfTheFile) {
  const auto times = [](tables::Bars bars, std::size_t lag) {
    const std::size_t size = bars.size();
    const auto extended = with_coming_bars(std::vector{std::move(bars)}, lag);
    std::vector<std::string> texts;
    for (std::size_t i = size; i < extended[0].size(); ++i)
      texts.push_back(extended[0].time_text(i));
    return texts;
  };
  // 2024-01-01 is a Monday: the 40th weekday is Friday, 23 February.
  EXPECT_EQ(times(walk_of_days(1, 40, false), 2),
            (std::vector<std::string>{"2024-02-26", "2024-02-27"}));
  EXPECT_EQ(times(walk_of_days(1, 40, true), 1), (std::vector<std::string>{"2024-02-10"}));
  tables::Bars hours = walk_of_days(1, 100, true);
  for (std::size_t i = 0; i < hours.size(); ++i) {
    hours.times[i] = hours.times[0] + static_cast<tables::Ticks>(i) * tables::kHour;
  }
  hours.style.has_clock = true;
  EXPECT_EQ(times(hours, 1), (std::vector<std::string>{"2024-01-05T04:00"}));
  tables::Bars months = walk_of_days(1, 40, true);
  for (std::size_t i = 0; i < months.size(); ++i) {
    months.times[i] = tables::midnight(tables::first_of_month(2020 * 12 + static_cast<int>(i)));
  }
  EXPECT_EQ(times(months, 1).at(0).substr(5), times(months, 13).at(12).substr(5));
}

class EngineSignal : public ::testing::Test {
 protected:
  testing::TemporaryFolder models_;
  Engine engine_ = Engine::load(testing::made_model(models_));
};

TEST_F(EngineSignal, AgreesWithTheBacktestOfTheSameEngine) {
  const tables::Bars all = walk_of_days(9, 160, false);
  for (const Transform transform : {Transform::pct, Transform::log, Transform::price}) {
    for (const std::size_t lag : {1u, 3u}) {
      BacktestSpec spec;
      spec.windows = 12;
      spec.lag = lag;
      spec.transform = transform;
      const SourceOptions options = source_options(spec, lag);
      for (const std::size_t last : {140u, 151u}) {
        ForecastCache cache;
        EngineSource source(engine_, options, cache);
        expect_agreement(all, last, spec, source);
      }
    }
  }
}

// The quantile at the level 1 - P is the last close.
TEST_F(EngineSignal, TheProbabilityIsThatOfTheDistribution) {
  const std::vector<tables::Bars> bars = {walk_of_days(9, 160, false)};
  for (const Transform transform : {Transform::pct, Transform::log, Transform::price}) {
    for (const std::size_t lag : {1u, 3u}) {
      BacktestSpec spec;
      spec.windows = 5;
      spec.lag = lag;
      spec.transform = transform;
      const SourceOptions options = source_options(spec, lag);
      ForecastCache cache;
      EngineSource source(engine_, options, cache);
      const double up = source.probability_up({&bars[0], 159, tables::Target::close});
      ASSERT_GT(up, 0);
      ASSERT_LT(up, 1);
      Series series;
      make_context(transform, bars[0], tables::Target::close, 159, lag, 4096, series.values);
      constexpr double kAside = 1e-6;
      const Forecast near =
          engine_.forecast(series, {.horizon = static_cast<int>(lag),
                                    .quantiles = {1 - up - kAside, 1 - up, 1 - up + kAside}});
      const float threshold =
          transform == Transform::price ? static_cast<float>(bars[0].close[159]) : 0.0f;
      EXPECT_LE(near.quantiles[lag - 1], threshold) << name_of(transform) << lag;
      EXPECT_GE(near.quantiles[3 * lag - 1], threshold) << name_of(transform) << lag;
      EXPECT_LT(near.quantiles[lag - 1], near.quantiles[3 * lag - 1]);
    }
  }
}

TEST_F(EngineSignal, TheRunHasTheSameSignalAsTheCommand) {
  const std::vector<tables::Bars> bars = {walk_of_days(9, 160, false)};
  BacktestSpec spec;
  spec.windows = 12;
  const PreparedBacktest for_signal = prepare_signal(spec, {.bars = bars});
  const SignalRun alone = run_signal(for_signal, engine_, "small");
  ASSERT_EQ(alone.signals.size(), 1u);
  const io::Json json = io::parse_json(alone.json, "signal");
  const io::Json& symbol = *json.find("symbols")->find("TEST");
  EXPECT_EQ(symbol.find("strategies")->object.size(), all_strategies().size());
  EXPECT_EQ(symbol.find("target_time")->string, alone.signals[0].target_time);
  EXPECT_EQ(symbol.find("probability_up")->real, alone.signals[0].probability_up);
  EXPECT_EQ(json.find("settings")->find("lag_test"), nullptr);
  EXPECT_EQ(json.find("settings")->find("to"), nullptr);
}

// ------------------------------------------------------------------------------------------ words

StrategySignal signal_by(const char* strategy, const BarForecast& forecast, tables::Asset asset) {
  const std::vector<tables::Bars> bars = {make_bars({{100, 101, 99, 100}, {100, 100, 100, 100}})};
  Rules rules;
  rules.asset = asset;
  const std::vector<BarForecast> forecasts = {forecast};
  const Outlook outlook{bars[0], 1, forecasts, rules};
  const Strategy& row = parse_strategy(strategy);
  const BarOrders orders = decide(row, outlook).back();
  return {&row, orders, reason_of(row, outlook, 0, orders)};
}

TEST(SignalWords, SayWhatIsOrderedAndWhy) {
  constexpr auto kStock = tables::Asset::stock;
  constexpr auto kCrypto = tables::Asset::crypto;
  const BarForecast up = make_forecast(100.5, 99, 102), down = make_forecast(99, 97, 100.5);
  EXPECT_EQ(signal_by("buy-hold", down, kStock).reason, "The benchmark is always long.");
  EXPECT_EQ(signal_by("simple", up, kStock).reason,
            "The close is predicted at 100.50, 0.50 % above the last one.");
  EXPECT_EQ(
      signal_by("simple", down, kCrypto).reason,
      "The close is predicted at 99.00, 1.00 % below the last one; crypto is never sold short.");
  EXPECT_EQ(signal_by("all-signals", down, kStock).reason,
            "Close, high and low are all predicted down.");
  EXPECT_EQ(signal_by("all-signals", up, kStock).reason,
            "Close up, high up, low unchanged: the predictions do not agree.");
  EXPECT_EQ(signal_by("ci-guard", up, kStock).reason,
            "The predicted change of +0.500 % is beyond the band of 0.000 %.");
  EXPECT_EQ(signal_by("maxdiff", up, kStock).reason,
            "High +2.00 % and low -1.00 % against the last close: more room above.");
  EXPECT_EQ(signal_by("maxdiff", make_forecast(100, 102, 101), kStock).reason,
            "The predicted low 102.00 is not below the predicted high 101.00.");
  EXPECT_EQ(signal_by("maxdiff-alwayson", make_forecast(100, 102, 101), kCrypto).reason,
            "The predicted low 102.00 is not below the predicted high 101.00.");
  const StrategySignal both = signal_by("maxdiff-alwayson", up, kStock);
  EXPECT_EQ(side_of(both), "both");
  EXPECT_EQ(entry_of(both.orders.legs[1], false), "limit 102.00");
  EXPECT_EQ(take_profit_of(both.orders.legs[1]), "99.00");
  EXPECT_EQ(exit_of(*both.strategy, both.orders.legs[1]), "take-profit, else at the close");
  const StrategySignal highlow = signal_by("highlow", down, kStock);
  EXPECT_EQ(side_of(highlow), "short");
  EXPECT_EQ(entry_of(highlow.orders.legs[0], false), "limit 100.50");
  EXPECT_EQ(exit_of(*highlow.strategy, highlow.orders.legs[0]), "at the close");
  const StrategySignal simple = signal_by("simple", up, kStock);
  EXPECT_EQ(entry_of(simple.orders.legs[0], false), "market at the open");
  EXPECT_EQ(entry_of(simple.orders.legs[0], true), "market at the close before");
}

}  // namespace
}  // namespace toto::backtest
