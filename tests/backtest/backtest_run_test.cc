// The walk forward: target bars, contexts, the earnings of an oracle, the no-lookahead proof, and
// the cache of forecasts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "backtest/backtest_report.h"
#include "backtest/lookahead.h"
#include "backtest/walk_forward.h"
#include "backtest_fixture.h"
#include "base/elementary.h"
#include "io_fixture.h"
#include "test_model.h"

namespace toto::backtest {
namespace {

tables::Bars random_bars(unsigned seed, std::size_t count, const std::string& symbol = "TEST") {
  std::mt19937 engine(seed);
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<Row> rows;
  double close = 100;
  for (std::size_t i = 0; i < count; ++i) {
    const double open = close * std::exp(0.1 * noise(engine));
    close *= std::exp(noise(engine));
    const double high = std::max(open, close) * std::exp(std::abs(noise(engine)));
    const double low = std::min(open, close) * std::exp(-std::abs(noise(engine)));
    rows.push_back({open, high, low, close});
  }
  return make_bars(rows, symbol);
}

// Knows bar decision + ahead: perfect foresight if that is the lag of the run.
class Oracle final : public ForecastSource {
 public:
  explicit Oracle(std::size_t ahead) : ahead_(ahead) {}
  void forecast(std::span<const TargetRequest> requests,
                std::span<TargetForecast> results) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto& prices = requests[i].bars->prices(requests[i].target);
      const double value = prices[std::min(requests[i].decision + ahead_, prices.size() - 1)];
      results[i].point = value;
      results[i].quantiles.fill(value);
    }
  }

 private:
  std::size_t ahead_;
};

class Coin final : public ForecastSource {
 public:
  void forecast(std::span<const TargetRequest> requests,
                std::span<TargetForecast> results) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const double last = requests[i].bars->prices(requests[i].target)[requests[i].decision];
      std::mt19937 engine(static_cast<unsigned>(requests[i].decision) * 7919u + 1u);
      engine.discard(10);
      results[i].point = last * (engine() % 2 == 0 ? 1.01 : 0.99);
      results[i].quantiles.fill(results[i].point);
    }
  }
};

std::vector<SymbolResult> run(const RunPlan& plan, ForecastSource& source) {
  return evaluate(plan.symbols, forecast_all(plan.symbols, source), every_strategy());
}

// ------------------------------------------------------------------------------------------ plan

TEST(Plan, TargetBarsAreTheLastOnesOrThoseOfAPeriod) {
  const std::vector<tables::Bars> bars = {random_bars(1, 100)};  // 2024-01-01 to 2024-04-09
  BacktestSpec options;
  options.windows = 10;
  RunPlan plan = plan_run(bars, options);
  ASSERT_EQ(plan.symbols.size(), 1u);
  EXPECT_EQ(plan.symbols[0].first, 90u);
  EXPECT_EQ(plan.symbols[0].count, 10u);
  EXPECT_EQ(plan.symbols[0].rules.asset, tables::Asset::crypto);
  EXPECT_DOUBLE_EQ(plan.symbols[0].rules.costs.fee, 0.0015);
  options.from = parse_bound("2024-03-01");
  options.to = parse_bound("2024-03-03");
  plan = plan_run(bars, options);
  EXPECT_EQ(bars[0].time_text(plan.symbols[0].first), "2024-03-01");
  EXPECT_EQ(plan.symbols[0].count, 3u) << "both ends belong to it";
  options.to = parse_bound("2024-03");
  EXPECT_EQ(plan_run(bars, options).symbols[0].count, 31u);
  options.to.reset();
  EXPECT_EQ(plan_run(bars, options).symbols[0].count, 40u);
  options.from = parse_bound("2025-01-01");
  plan = plan_run(bars, options);
  EXPECT_TRUE(plan.symbols.empty());
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_NE(plan.skipped[0].reason.find("no bar in the period"), std::string::npos);
  options.from = parse_bound("17");
  io::expect_error(ErrorCode::corrupt_file, {"TEST.csv", "dates", "\"17\""},
                   [&] { plan_run(bars, options); });
  io::expect_error(ErrorCode::invalid_argument, {"\"soon\""}, [] { parse_bound("soon"); });
}

TEST(Plan, ABoundWithoutClockIsTheWholeDay) {
  tables::Bars hours = random_bars(1, 200);
  for (std::size_t i = 0; i < hours.size(); ++i) {
    hours.times[i] = hours.times[0] + static_cast<tables::Ticks>(i) * tables::kHour;
  }
  BacktestSpec options;
  options.from = parse_bound("2024-01-05");
  options.to = parse_bound("2024-01-05");
  EXPECT_EQ(plan_run(std::vector<tables::Bars>{hours}, options).symbols[0].count, 24u);
  options.to = parse_bound("2024-01-05T05:00");
  EXPECT_EQ(plan_run(std::vector<tables::Bars>{hours}, options).symbols[0].count, 6u);
}

TEST(Plan, RequiresThirtyTwoPointsAtTheFirstDecision) {
  // 43 bars, 10 windows: the first target is bar 33, decided after bar 32: 32 changes.
  BacktestSpec options;
  options.windows = 10;
  EXPECT_EQ(plan_run(std::vector<tables::Bars>{random_bars(1, 43)}, options).symbols.size(), 1u);
  const RunPlan short_by_one = plan_run(std::vector<tables::Bars>{random_bars(1, 42)}, options);
  ASSERT_EQ(short_by_one.skipped.size(), 1u);
  EXPECT_EQ(short_by_one.skipped[0].symbol, "TEST");
  EXPECT_NE(short_by_one.skipped[0].reason.find("31 points"), std::string::npos);
  options.transform = Transform::price;
  EXPECT_EQ(plan_run(std::vector<tables::Bars>{random_bars(1, 42)}, options).symbols.size(), 1u);
  options.lag = 2;
  EXPECT_EQ(plan_run(std::vector<tables::Bars>{random_bars(1, 42)}, options).skipped.size(), 1u);
  options.windows = 1000;
  const RunPlan too_many = plan_run(std::vector<tables::Bars>{random_bars(1, 500)}, options);
  ASSERT_EQ(too_many.skipped.size(), 1u);
  // Prices, lag 2: bar 31 has 32 of them, bar 33 is the first target.
  EXPECT_NE(too_many.skipped[0].reason.find("--windows 467 at most"), std::string::npos)
      << too_many.skipped[0].reason;
  options.windows = 467;
  EXPECT_EQ(plan_run(std::vector<tables::Bars>{random_bars(1, 500)}, options).symbols.size(), 1u);
  options.windows = 468;
  EXPECT_EQ(plan_run(std::vector<tables::Bars>{random_bars(1, 500)}, options).skipped.size(), 1u);
  options.windows = 1;
  EXPECT_EQ(plan_run(std::vector<tables::Bars>{random_bars(1, 1)}, options).skipped.size(), 1u);
}

TEST(Plan, ByDefaultAShortSymbolHasFewerTargetBars) {
  BacktestSpec options;
  const auto plan = [&](std::size_t bars) {
    static std::vector<tables::Bars> data;
    data = {random_bars(1, bars)};
    return plan_run(data, options);
  };
  EXPECT_EQ(plan(500).symbols[0].first, 250u);
  EXPECT_EQ(plan(500).symbols[0].count, 250u);
  EXPECT_TRUE(plan(500).notes.empty());
  // The decision after bar 128 has 128 changes: bar 129 is the first target.
  EXPECT_EQ(plan(300).symbols[0].first, 129u);
  EXPECT_EQ(plan(300).symbols[0].count, 171u);
  ASSERT_EQ(plan(300).notes.size(), 1u);
  EXPECT_EQ(plan(300).notes[0],
            "TEST.csv: TEST has 300 bars: 171 target bars instead of 250, so that 128 points of "
            "history are left; --windows N overrides it");
  EXPECT_EQ(plan(378).symbols[0].count, 249u);
  EXPECT_EQ(plan(379).symbols[0].count, 250u);
  EXPECT_TRUE(plan(379).notes.empty());
  EXPECT_EQ(plan(100).symbols[0].count, 1u) << "at least one";
  EXPECT_EQ(plan(34).symbols.size(), 1u);
  EXPECT_EQ(plan(33).skipped.size(), 1u) << "31 points";
  options.lag = 3;
  EXPECT_EQ(plan(300).symbols[0].first, 128u + 5) << "128 changes over 3 bars, and 3 bars more";
  options.transform = Transform::price;
  EXPECT_EQ(plan(300).symbols[0].first, 127u + 3);
  options.windows = 250;
  EXPECT_EQ(plan(260).skipped.size(), 1u) << "what was asked for is not changed";
}

TEST(Plan, TheOtherLagKeepsTheTargetBars) {
  const std::vector<tables::Bars> bars = {random_bars(1, 300), random_bars(2, 34, "SHORT")};
  BacktestSpec options;
  const RunPlan plan = plan_run(bars, options);
  ASSERT_EQ(plan.symbols.size(), 2u);
  options.lag = 2;
  const RunPlan other = with_lag(plan, options);
  ASSERT_EQ(other.symbols.size(), 1u) << "SHORT has 30 changes over two bars";
  EXPECT_EQ(other.symbols[0].first, plan.symbols[0].first);
  EXPECT_EQ(other.symbols[0].count, plan.symbols[0].count);
  EXPECT_EQ(other.symbols[0].rules.lag, 2u);
}

TEST(Plan, CurrencyPairsHaveTheirOwnCosts) {
  const std::vector<tables::Bars> bars = {random_bars(1, 200, "EURUSD")};
  BacktestSpec options;
  SymbolPlan plan = plan_run(bars, options).symbols[0];
  EXPECT_EQ(plan.rules.asset, tables::Asset::fx);
  EXPECT_EQ(plan.asset_reason, "named by two currencies");
  EXPECT_EQ(plan.bars_per_year, 260);
  EXPECT_DOUBLE_EQ(plan.rules.costs.fee, 0.00005);
  EXPECT_DOUBLE_EQ(plan.rules.costs.slippage, 0.00005);
  options.asset = tables::Asset::stock;
  options.slippage_bps = 3;
  plan = plan_run(bars, options).symbols[0];
  EXPECT_EQ(plan.asset_reason, "as given");
  EXPECT_DOUBLE_EQ(plan.rules.costs.fee, 0.0005);
  EXPECT_DOUBLE_EQ(plan.rules.costs.slippage, 0.0003);
}

TEST(Plan, AnnualFiguresUseTheGivenBarsPerYear) {
  BacktestSpec options;
  const std::vector<tables::Bars> bars = {random_bars(1, 100)};
  EXPECT_EQ(plan_run(bars, options).symbols[0].bars_per_year, 365);
  options.bars_per_year = 52;
  options.borrow_apr = 0.52;
  EXPECT_EQ(plan_run(bars, options).symbols[0].bars_per_year, 52);
  EXPECT_DOUBLE_EQ(plan_run(bars, options).symbols[0].rules.costs.borrow, 0.01);
}

TEST(Plan, WarnsOfFillsAtTheCloseOfTheDecision) {
  BacktestSpec options;
  EXPECT_EQ(fill_warning(options), "");
  options.fill_at_close = true;
  EXPECT_NE(fill_warning(options).find("--decision-lag 2"), std::string::npos);
  options.lag = 2;
  EXPECT_EQ(fill_warning(options), "") << "a bar later it can be had";
}

// ---------------------------------------------------------------------------------------- oracles

TEST(Oracles, PerfectForesightEarnsWhatArithmeticSays) {
  // The close goes 100, 110, 99, 108.9, ...: up 10 %, down 10 %. Every bar opens at the last close.
  std::vector<Row> rows;
  double close = 100;
  for (int i = 0; i < 60; ++i) {
    const double open = close;
    close *= i % 2 == 0 ? 1.1 : 0.9;
    rows.push_back({open, std::max(open, close), std::min(open, close), close});
  }
  const std::vector<tables::Bars> bars = {make_bars(rows)};
  BacktestSpec options;
  options.windows = 20;
  options.asset = tables::Asset::stock;
  options.fee_bps = 10;
  options.slippage_bps = 0;
  Oracle oracle(1);
  const std::vector<SymbolResult> results = run(plan_run(bars, options), oracle);
  // Ten longs of 0.1 - 0.001 x 2.1 and ten shorts of 0.1 - 0.001 x 1.9.
  const double expected = std::pow(1.1 - 0.0021, 10) * std::pow(1.1 - 0.0019, 10) - 1;
  const StrategyResult* simple = results[0].find(parse_strategy("simple"));
  EXPECT_NEAR(simple->metrics.total_return, expected, 1e-9);
  EXPECT_EQ(simple->metrics.win_rate, 1);
  EXPECT_EQ(simple->metrics.trades, 20u);
  EXPECT_EQ(results[0].incoherent_bars, 0u);
  EXPECT_EQ(results[0].accuracy[0].model.mae, 0);
  EXPECT_EQ(results[0].accuracy[0].direction_accuracy, 1);
  EXPECT_GT(results[0].accuracy[0].persistence.mae, 1);
}

TEST(Oracles, RandomSignalsLoseTheFeesOnAverage) {
  const std::vector<tables::Bars> bars = {random_bars(3, 20'100)};
  BacktestSpec options;
  options.windows = 20'000;
  options.asset = tables::Asset::stock;
  options.fee_bps = 10;
  options.slippage_bps = 0;
  Coin coin;
  const RunPlan plan = plan_run(bars, options);
  const StrategyResult result =
      run_strategy(parse_strategy("simple"), plan.symbols[0], forecast_all(plan.symbols, coin)[0],
                   plan.symbols[0].rules);
  double gross = 0, square = 0, fees = 0;
  for (const Trade& trade : result.simulation.trades) {
    const double value = trade.net_return + trade.fee;
    gross += value;
    square += value * value;
    fees += trade.fee;
  }
  const auto count = static_cast<double>(result.simulation.trades.size());
  EXPECT_GT(count, 5000);
  EXPECT_LT(std::abs(gross / count), 4 * std::sqrt(square / count / count)) << "no edge";
  EXPECT_NEAR(fees / count, 0.002, 1e-4);
  EXPECT_LT(result.metrics.average_trade, -0.001);
}

// -------------------------------------------------------------------------------------- lookahead

TEST(Lookahead, TheProofPassesAnHonestSourceAndCatchesAnOracle) {
  const std::vector<tables::Bars> bars = {random_bars(4, 120, "A"), random_bars(5, 120, "B")};
  BacktestSpec options;
  options.windows = 30;
  options.asset = tables::Asset::stock;
  for (const bool tuned : {false, true}) {
    options.tune_offsets = tuned;
    const RunPlan plan = plan_run(bars, options);
    Coin coin;
    const LookaheadCheck honest = check_no_lookahead(run(plan, coin), coin, Checked::all);
    EXPECT_TRUE(honest.passed()) << honest.first_difference;
    EXPECT_EQ(honest.num_checked, 60u);
    EXPECT_EQ(honest.num_decisions, 60u);
  }
  const RunPlan plan = plan_run(bars, options);
  for (const std::size_t ahead : {1u, 2u}) {
    Oracle oracle(ahead);
    const std::vector<SymbolResult> results = run(plan, oracle);
    const LookaheadCheck all = check_no_lookahead(results, oracle, Checked::all);
    EXPECT_FALSE(all.passed());
    EXPECT_NE(all.first_difference.find("A at 2024-03-31"), std::string::npos)
        << all.first_difference;
    EXPECT_FALSE(check_no_lookahead(results, oracle, Checked::sample).passed());
  }
  Oracle late(0);  // persistence: knows nothing new
  EXPECT_TRUE(check_no_lookahead(run(plan, late), late, Checked::all).passed());
}

// A forecast from a damaged cache is named as such: nothing looked ahead.
TEST(Lookahead, AWrongKeptForecastIsNotLookahead) {
  const std::vector<tables::Bars> bars = {random_bars(4, 120, "A")};
  BacktestSpec options;
  options.windows = 30;
  const RunPlan plan = plan_run(bars, options);
  Coin coin;
  std::vector<SymbolResult> results = run(plan, coin);
  results[0].forecasts[7][0].point *= 1.001;
  const LookaheadCheck check = check_no_lookahead(results, coin, Checked::all);
  EXPECT_FALSE(check.passed());
  EXPECT_TRUE(check.kept_forecast_differs);
  EXPECT_EQ(check.failure().find("no-lookahead"), std::string::npos) << check.failure();
  EXPECT_NE(check.failure().find("a forecast kept by an earlier run is wrong: A at "),
            std::string::npos);
  EXPECT_EQ(lookahead_sentence(check).find("LOOKAHEAD"), std::string::npos);
  Oracle oracle(1);
  const LookaheadCheck real = check_no_lookahead(run(plan, oracle), oracle, Checked::all);
  EXPECT_FALSE(real.kept_forecast_differs);
  EXPECT_TRUE(real.failure().starts_with("the no-lookahead proof failed: "));
}

TEST(Lookahead, ASampleIsSpreadOverSymbolsAndWindows) {
  std::vector<tables::Bars> bars;
  for (unsigned i = 0; i < 20; ++i) bars.push_back(random_bars(i, 100, fmt::format("S{}", i)));
  BacktestSpec options;
  options.windows = 50;
  Coin coin;
  const LookaheadCheck check =
      check_no_lookahead(run(plan_run(bars, options), coin), coin, Checked::sample);
  EXPECT_TRUE(check.passed());
  EXPECT_EQ(check.num_checked, 32u);
  EXPECT_EQ(check.num_decisions, 1000u);
  EXPECT_FALSE(LookaheadCheck{}.passed()) << "what was not checked has not passed";
}

// -------------------------------------------------------------------------------------- the engine

class EngineSourceTest : public ::testing::Test {
 protected:
  EngineSourceTest() : engine_(Engine::load(testing::made_model(models_))) {
    options_.forecast.point = parse_point("median");
  }
  std::vector<std::vector<BarForecast>> forecasts(std::span<const SymbolPlan> plans,
                                                  ForecastCache& cache) {
    EngineSource source(engine_, options_, cache);
    auto result = forecast_all(plans, source);
    computed_ = source.num_computed();
    patches_ = source.patches();
    return result;
  }
  testing::TemporaryFolder models_;
  io::TemporaryFolder folder_;
  Engine engine_;
  SourceOptions options_;
  std::size_t computed_ = 0;
  PatchCounts patches_;
};

TEST_F(EngineSourceTest, ForecastsAreTheEnginesMappedToPrices) {
  const std::vector<tables::Bars> bars = {random_bars(6, 80)};
  BacktestSpec options;
  options.windows = 3;
  for (const std::size_t lag : {1u, 2u}) {
    options.lag = options_.lag = lag;
    const RunPlan plan = plan_run(bars, options);
    ForecastCache cache;
    const auto all = forecasts(plan.symbols, cache);
    // The last window by hand: changes from the close of a lag before, up to the decision.
    const std::size_t decision = 79 - lag;
    const double last = bars[0].close[decision];
    for (const tables::Target target : tables::kTargets) {
      Series series;
      for (std::size_t i = lag; i <= decision; ++i) {
        series.values.push_back(
            static_cast<float>(bars[0].prices(target)[i] / bars[0].close[i - lag] - 1));
      }
      const Forecast forecast =
          engine_.forecast(series, {.horizon = static_cast<int>(lag), .quantiles = {0.1, 0.9}});
      const TargetForecast& found = forecast_of(all[0][2], target);
      EXPECT_EQ(found.point, last * (1.0 + forecast.median[lag - 1]));
      EXPECT_EQ(found.quantiles[0], last * (1.0 + forecast.quantiles[lag - 1]));
      EXPECT_EQ(found.quantiles[8], last * (1.0 + forecast.quantiles[2 * lag - 1]));
    }
  }
}

TEST_F(EngineSourceTest, EqualContextsAreForecastOnceAndBatchesChangeNothing) {
  std::vector<tables::Bars> bars = {random_bars(7, 80, "A"), random_bars(7, 80, "B"),
                                    random_bars(8, 80, "C")};
  BacktestSpec options;
  options.windows = 5;
  const RunPlan plan = plan_run(bars, options);
  ForecastCache cache;
  const auto together = forecasts(plan.symbols, cache);
  EXPECT_EQ(computed_, 2 * 5 * 4u) << "B is A again";
  EXPECT_EQ(together[0], together[1]);
  for (std::size_t i = 0; i < plan.symbols.size(); ++i) {
    ForecastCache alone;
    EXPECT_EQ(forecasts({&plan.symbols[i], 1}, alone)[0], together[i]) << i;
  }
}

// The model's patch is 8 points: from the ninth window on every context continues the one of eight
// windows before.
TEST_F(EngineSourceTest, ChainedWindowsGiveTheSameBits) {
  const std::vector<tables::Bars> bars = {random_bars(10, 200, "A"), random_bars(11, 150, "B")};
  BacktestSpec options;
  options.windows = 60;
  for (const Transform transform : {Transform::pct, Transform::price}) {
    for (const std::size_t lag : {1u, 3u}) {
      for (const int samples : {0, 12}) {
        options.transform = options_.transform = transform;
        options.lag = options_.lag = lag;
        options_.forecast.num_samples = samples;
        const RunPlan plan = plan_run(bars, options);
        ForecastCache cache, other;
        options_.reuse_prefixes = false;
        const auto expected = forecasts(plan.symbols, other);
        EXPECT_EQ(patches_.reused, 0);
        const std::int64_t all = patches_.computed;
        options_.reuse_prefixes = true;
        EXPECT_EQ(forecasts(plan.symbols, cache), expected);
        EXPECT_EQ(computed_, 2 * 60 * 4u);
        EXPECT_EQ(patches_.computed + patches_.reused, all);
        // 8 of 60 windows start from the beginning, 52 compute one patch.
        EXPECT_LT(patches_.computed, all / 4) << all;
      }
    }
  }
  // Contexts of 113 to 128 points that begin with multiples of 16: each continues the one of eight
  // windows before, if that begins with the same point. A half of them does.
  options_ = {};
  options_.forecast.max_context = 128;
  options.lag = 1;
  options.transform = Transform::pct;
  const std::vector<tables::Bars> longer = {random_bars(10, 400, "A")};
  options.windows = 128;
  const RunPlan plan = plan_run(longer, options);
  ForecastCache cache, other;
  const auto blocks = forecasts(plan.symbols, cache);
  EXPECT_GT(patches_.reused, 0);
  EXPECT_NEAR(static_cast<double>(patches_.reused),
              static_cast<double>(patches_.computed + patches_.reused) / 2,
              0.1 * static_cast<double>(patches_.computed));
  options_.reuse_prefixes = false;
  EXPECT_EQ(forecasts(plan.symbols, other), blocks);
}

TEST_F(EngineSourceTest, SmallChangesAreScaledPerContext) {
  // Changes of 1 % are a flat line for a model whose smallest scale is 0.3. With a factor from each
  // context they are not: the band is about as wide as the changes, with the bits of a fixed power
  // of two.
  const std::vector<tables::Bars> bars = {random_bars(12, 200)};
  BacktestSpec options;
  options.windows = 40;
  const RunPlan plan = plan_run(bars, options);
  const auto width = [](const std::vector<std::vector<BarForecast>>& all) {
    const TargetForecast& close = forecast_of(all[0][39], tables::Target::close);
    return close.quantiles[8] - close.quantiles[0];
  };
  ForecastCache automatic, fixed, one, alone;
  options_ = source_options(options, 1);
  const auto scaled = forecasts(plan.symbols, automatic);
  EXPECT_GT(patches_.reused, patches_.computed) << "equal factors share their prefix";
  options_.reuse_prefixes = false;
  EXPECT_EQ(forecasts(plan.symbols, alone), scaled);
  options_.forecast.scale = 1;
  EXPECT_LT(width(scaled), width(forecasts(plan.symbols, one)) / 3);
  double factor = 1;  // 12 x sqrt(0.1) over a deviation of about 0.01
  while (factor * 0.01 < 12 * std::sqrt(0.1)) factor *= 2;
  options_.forecast.scale = factor;
  EXPECT_EQ(width(forecasts(plan.symbols, fixed)), width(scaled));
}

TEST_F(EngineSourceTest, TheDiskCacheIgnoresDamagedEntries) {
  const std::vector<tables::Bars> bars = {random_bars(9, 80)};
  BacktestSpec options;
  options.windows = 5;
  const RunPlan plan = plan_run(bars, options);
  const std::string setting = cache_setting(engine_, options_);
  ForecastCache none;
  const auto expected = forecasts(plan.symbols, none);
  {
    ForecastCache cache(folder_.path(), setting);
    EXPECT_EQ(forecasts(plan.symbols, cache), expected);
    EXPECT_EQ(computed_, 20u);
    EXPECT_TRUE(cache.warnings().empty());
  }
  const auto rerun = [&] {
    ForecastCache cache(folder_.path(), setting);
    EXPECT_EQ(forecasts(plan.symbols, cache), expected);
    return computed_;
  };
  EXPECT_EQ(rerun(), 0u);
  const std::string path =
      std::filesystem::directory_iterator(folder_ / "forecasts")->path().string();
  const std::string whole = io::contents_of(path);
  std::string flipped = whole;
  flipped[100] = static_cast<char>(flipped[100] ^ 1);
  io::put(path, flipped);
  EXPECT_EQ(rerun(), 1u) << "one entry is dropped and made again";
  EXPECT_EQ(rerun(), 0u);
  io::put(path, whole.substr(0, whole.size() - 5));
  EXPECT_EQ(rerun(), 1u) << "a torn end";
  EXPECT_EQ(rerun(), 0u) << "what was appended behind it is whole";
  io::put(path, "something else");
  EXPECT_EQ(rerun(), 20u);
  EXPECT_EQ(rerun(), 0u);
  // Another setting has another file.
  options_.forecast.seed = 1;
  EXPECT_NE(cache_setting(engine_, options_), setting);
  options_.forecast.seed = 0;
  options_.forecast.scale = 1;
  EXPECT_NE(cache_setting(engine_, options_), setting);
}

TEST_F(EngineSourceTest, AReadOnlyFolderOnlyDisablesTheCache) {
  io::put(folder_ / "file", "x");
  ForecastCache cache(folder_ / "file/inside", "setting");
  const std::array<std::pair<ContextKey, RawForecast>, 1> entries = {{{{1, 2}, {3.0f}}}};
  cache.add(entries);
  ASSERT_EQ(cache.warnings().size(), 1u);
  EXPECT_NE(cache.warnings()[0].find("not kept"), std::string::npos);
  ASSERT_NE(cache.find({1, 2}), nullptr);
  EXPECT_EQ(cache.find({1, 2})->front(), 3.0f);
  EXPECT_EQ(cache.find({2, 1}), nullptr);
}

}  // namespace
}  // namespace toto::backtest
