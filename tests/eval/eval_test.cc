// Windows, the data that a forecast sees, and independence of the division of work.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "eval/baselines.h"
#include "eval/eval_report.h"
#include "eval/evaluate.h"
#include "special_values.h"
#include "test_model.h"

namespace toto::eval {
namespace {

using testing::error_of;
using testing::made_model;
using testing::TemporaryFolder;
using testing::walk;

std::shared_ptr<const tables::TimeAxis> axis_of(tables::Frequency frequency) {
  return std::make_shared<const tables::TimeAxis>(tables::TimeAxis{.frequency = frequency});
}

tables::InputData input_of(const std::vector<std::vector<float>>& series,
                           tables::Frequency frequency = {}) {
  tables::InputData input;
  input.name = "data.csv";
  for (std::size_t i = 0; i < series.size(); ++i) {
    input.series.push_back(
        {.id = "s" + std::to_string(i), .values = series[i], .axis = axis_of(frequency)});
  }
  return input;
}

std::vector<float> counting(std::size_t length) {
  std::vector<float> values;
  for (std::size_t i = 0; i < length; ++i) values.push_back(static_cast<float>(i));
  return values;
}

tables::InputData walks(int count, int length) {
  std::vector<std::vector<float>> series;
  for (int i = 0; i < count; ++i) {
    series.push_back(walk(static_cast<unsigned>(i), length + 3 * i).values);
  }
  return input_of(series);
}

EvalOptions options_of(int horizon, int windows, int season = 1, int stride = 0) {
  EvalOptions options;
  options.windows = {.horizon = horizon, .windows = windows, .stride = stride, .season = season};
  return options;
}

// ---------------------------------------------------------------------------------------- windows

TEST(EvalWindows, EndWhereTheSeriesEnds) {
  const tables::InputData input = input_of({counting(20)});
  const auto starts = [&](int horizon, int windows, int stride = 0, int season = 1) {
    return plan_windows(input, options_of(horizon, windows, season, stride).windows)
        .series.front()
        .starts;
  };
  using Starts = std::vector<std::size_t>;
  EXPECT_EQ(starts(5, 1), (Starts{15}));
  EXPECT_EQ(starts(5, 3), (Starts{5, 10, 15}));
  EXPECT_EQ(starts(5, 3, 2), (Starts{11, 13, 15})) << "windows may overlap";
  EXPECT_EQ(starts(5, 100), (Starts{5, 10, 15})) << "0 has no history";
  EXPECT_EQ(starts(5, 100, 1, 12), (Starts{13, 14, 15})) << "more than a season before each";
}

TEST(EvalWindows, ShortSeriesAreNamedAndSkipped) {
  const tables::InputData input =
      input_of({counting(20), counting(9), std::vector<float>(20, kMissing)});
  const WindowPlan plan = plan_windows(input, options_of(5, 2, 4).windows);
  ASSERT_EQ(plan.series.size(), 1u);
  ASSERT_EQ(plan.skipped.size(), 2u);
  EXPECT_EQ(plan.skipped[0].id, "s1");
  EXPECT_NE(plan.skipped[0].reason.find("has 9 values, expected at least 10"), std::string::npos);
  EXPECT_NE(plan.skipped[1].reason.find("no value in any"), std::string::npos);
  EXPECT_EQ(plan.num_windows, 2u);
  ErrorCode code = {};
  const std::string sentence = error_of(
      [&] { plan_windows(input_of({counting(5), counting(3)}), options_of(5, 1).windows); }, &code);
  EXPECT_EQ(code, ErrorCode::corrupt_file);
  EXPECT_NE(sentence.find("data.csv: nothing can be evaluated: the series \"s0\" has 5 values"),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("1 more"), std::string::npos) << sentence;
}

TEST(EvalWindows, SeasonsFollowTheStep) {
  using Unit = tables::Frequency::Unit;
  const auto season = [](Unit unit, std::int64_t count) {
    return default_season({.unit = unit, .count = count});
  };
  EXPECT_EQ(season(Unit::fixed, tables::kHour), 24);
  EXPECT_EQ(season(Unit::fixed, 15 * tables::kMinute), 96);
  EXPECT_EQ(season(Unit::fixed, tables::kMinute), 1440);
  EXPECT_EQ(season(Unit::fixed, 7 * tables::kMinute), 1) << "no whole number a day";
  EXPECT_EQ(season(Unit::fixed, tables::kSecond), 1);
  EXPECT_EQ(season(Unit::fixed, tables::kDay), 7);
  EXPECT_EQ(season(Unit::fixed, 2 * tables::kDay), 1);
  EXPECT_EQ(season(Unit::fixed, 7 * tables::kDay), 52);
  EXPECT_EQ(season(Unit::weekday, 1), 5);
  EXPECT_EQ(season(Unit::month, 1), 12);
  EXPECT_EQ(season(Unit::month, 3), 4);
  EXPECT_EQ(season(Unit::month, 12), 1);
  EXPECT_EQ(season(Unit::month, 5), 1);
  EXPECT_EQ(season(Unit::unknown, 0), 1);
  // Bars of prices, and series without dates, have none.
  const tables::InputData daily =
      input_of({counting(20)}, {.unit = Unit::fixed, .count = tables::kDay});
  EXPECT_EQ(default_season(daily.series[0], tables::InputFormat::csv_wide), 7);
  EXPECT_EQ(default_season(daily.series[0], tables::InputFormat::csv_ohlcv), 1);
}

// ---------------------------------------------------------------------------------------- leakage

// Returns the latest value without spread and records its inputs.
struct Recorder {
  std::vector<Series> shown;
  std::vector<std::size_t> calls;
  void operator()(std::span<const Series> batch, const ForecastOptions& options,
                  std::vector<Forecast>& out) {
    out.assign(batch.size(), {});
    calls.push_back(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      shown.push_back(batch[i]);
      out[i].horizon = options.horizon;
      out[i].quantiles = persistence(batch[i].values, static_cast<std::size_t>(options.horizon));
    }
  }
};

TEST(EvalLeakage, AForecastSeesOnlyEarlierValues) {
  const tables::InputData input = input_of({counting(30), counting(17)});
  EvalOptions options = options_of(4, 3, 1);
  options.forecast.max_context = 10;
  Recorder recorder;
  const DatasetResult result =
      evaluate(input, plan_windows(input, options.windows), options, std::ref(recorder));
  ASSERT_EQ(recorder.shown.size(), 6u);
  const std::vector<std::size_t> starts = {18, 22, 26, 5, 9, 13};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::vector<float>& seen = recorder.shown[i].values;
    EXPECT_EQ(seen.back(), static_cast<float>(starts[i] - 1)) << "the value before the window";
    EXPECT_EQ(seen.size(), std::min<std::size_t>(10, starts[i])) << "and as many as asked for";
  }
  // A forecaster that answers as persistence does is scored as persistence is.
  const Sums &ours = result.total.of(Contender::model),
             &last = result.total.of(Contender::persistence);
  EXPECT_EQ(ours.quantile_loss, last.quantile_loss);
  EXPECT_EQ(ours.scaled_error, last.scaled_error);
  EXPECT_DOUBLE_EQ(*result.total.ratios_to(Contender::persistence).wql, 1.0);
  EXPECT_DOUBLE_EQ(*result.total.metrics(Contender::model).mae, 2.5) << "1, 2, 3 and 4 too low";
}

TEST(EvalLeakage, AContextStartingInAGapIncludesTheLastKnownValue) {
  std::vector<float> values = counting(20);
  for (std::size_t i = 6; i < 12; ++i) values[i] = kMissing;
  const tables::InputData input = input_of({values});
  const Series context = context_before(input.series[0], 16, 8);
  EXPECT_EQ(context.values.size(), 11u);
  EXPECT_EQ(context.values.front(), 5);
  // The engine gives the same answer as with the whole history.
  const TemporaryFolder folder;
  const Engine engine = Engine::load(made_model(folder));
  ForecastOptions options;
  options.horizon = 4;
  options.max_context = 8;
  Series whole;
  whole.values.assign(values.begin(), values.begin() + 16);
  for (const Missing missing : {Missing::ffill, Missing::linear, Missing::mask}) {
    options.missing = missing;
    EXPECT_EQ(engine.forecast(context, options).quantiles,
              engine.forecast(whole, options).quantiles);
  }
}

struct Evaluated {
  DatasetResult result;
  std::vector<std::vector<float>> forecasts;  // [window], in the order of the file
};

Evaluated run(const tables::InputData& input, const EvalOptions& options, const Engine& engine) {
  Evaluated evaluated;
  const Forecaster forecaster = [&](std::span<const Series> batch, const ForecastOptions& forecast,
                                    std::vector<Forecast>& out) {
    engine.forecast_into(batch, forecast, out);
    for (const Forecast& one : out) evaluated.forecasts.push_back(one.quantiles);
  };
  evaluated.result = evaluate(input, plan_windows(input, options.windows), options, forecaster);
  return evaluated;
}

TEST(EvalLeakage, TheFutureDoesNotChangeAForecast) {
  const TemporaryFolder folder;
  const Engine engine = Engine::load(made_model(folder));
  tables::InputData input = walks(3, 60);
  const EvalOptions options = options_of(12, 2, 3);
  const Evaluated before = run(input, options, engine);
  for (tables::InputSeries& series : input.series) {
    for (std::size_t i = series.values.size() - 12; i < series.values.size(); ++i) {
      series.values[i] = -1000;
    }
  }
  const Evaluated after = run(input, options, engine);
  EXPECT_EQ(before.forecasts, after.forecasts);
  EXPECT_NE(before.result.total.of(Contender::model).error,
            after.result.total.of(Contender::model).error);
}

// ------------------------------------------------------------------------------- division of work

// Every sum of every contender, bit for bit.
void expect_same(const DatasetResult& a, const DatasetResult& b) {
  ASSERT_EQ(a.series.size(), b.series.size());
  for (std::size_t i = 0; i < a.series.size(); ++i) {
    for (const Contender contender : kContenders) {
      const Sums &x = a.series[i].scores.of(contender), &y = b.series[i].scores.of(contender);
      EXPECT_EQ(x.steps, y.steps);
      EXPECT_EQ(x.error, y.error);
      EXPECT_EQ(x.quantile_loss, y.quantile_loss);
      EXPECT_EQ(x.crps, y.crps);
      EXPECT_EQ(x.scaled_error, y.scaled_error);
      EXPECT_EQ(x.inside_50, y.inside_50);
    }
  }
}

TEST(EvalDivision, TheSameBitsForAnyNumberOfThreadsAndAnyGrouping) {
  const TemporaryFolder folder;
  const std::string model = made_model(folder);
  const tables::InputData input = walks(20, 50);
  const EvalOptions options = options_of(20, 2, 3);  // beyond the first patch: sampled paths too
  EngineOptions one_thread, three_threads;
  one_thread.threads = 1;
  three_threads.threads = 3;
  const Engine single = Engine::load(model, one_thread);
  const Evaluated alone = run(input, options, single);
  expect_same(alone.result, run(input, options, Engine::load(model, three_threads)).result);
  // One window per call.
  const Forecaster one_by_one = [&](std::span<const Series> batch, const ForecastOptions& forecast,
                                    std::vector<Forecast>& out) {
    out.clear();
    for (const Series& series : batch) out.push_back(single.forecast(series, forecast));
  };
  expect_same(alone.result,
              evaluate(input, plan_windows(input, options.windows), options, one_by_one));
}

TEST(EvalDivision, CallsAreBoundedByWindowsAndByValues) {
  std::vector<std::vector<float>> many(300, counting(12));
  const tables::InputData small = input_of(many);
  Recorder recorder;
  EvalOptions options = options_of(2, 2);
  evaluate(small, plan_windows(small, options.windows), options, std::ref(recorder));
  EXPECT_EQ(recorder.calls, (std::vector<std::size_t>{256, 256, 88}));
  // 19 quantiles of 100,000 steps: eight windows fill 16 million values.
  const tables::InputData large = input_of(std::vector<std::vector<float>>(10, counting(100'010)));
  Recorder second;
  options = options_of(100'000, 1);
  evaluate(large, plan_windows(large, options.windows), options, std::ref(second));
  EXPECT_EQ(second.calls, (std::vector<std::size_t>{8, 2}));
}

TEST(EvalDivision, ProgressCountsWindowsAndEndsAtTheLast) {
  const TemporaryFolder folder;
  const Engine engine = Engine::load(made_model(folder));
  const tables::InputData input = walks(5, 50);
  EvalOptions options = options_of(4, 3);
  std::vector<std::size_t> seen;
  options.progress = [&](std::size_t done, std::size_t total) {
    EXPECT_EQ(total, 15u);
    seen.push_back(done);
  };
  run(input, options, engine);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), 15u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

// ----------------------------------------------------------------------------------------- results

TEST(EvalResult, NotableWindowsAreBestMedianAndWorst) {
  DatasetResult result;
  const auto labels = [&] {
    std::string text;
    for (const NotableWindow& notable : notable_windows(result)) {
      text += notable.label + " " + std::to_string(notable.window.start) + ", ";
    }
    return text;
  };
  EXPECT_EQ(labels(), "");
  result.windows = {{.series = 0, .start = 7, .loss = 3, .scaled = true}};
  EXPECT_EQ(labels(), "only 7, ");
  result.windows.push_back({.series = 0, .start = 8, .loss = 1, .scaled = true});
  EXPECT_EQ(labels(), "best 8, worst 7, ");
  result.windows.push_back({.series = 0, .start = 9, .loss = 2, .scaled = true});
  EXPECT_EQ(labels(), "best 8, median 9, worst 7, ");
  // Losses in the unit of the data are not compared with scaled ones.
  result.windows.push_back({.series = 0, .start = 10, .loss = 0.1, .scaled = false});
  EXPECT_EQ(labels(), "best 8, median 9, worst 7, ");
  EXPECT_EQ(notable_windows(result).front().among, 3u);
  for (WindowLoss& window : result.windows) window.scaled = false;
  EXPECT_EQ(labels(), "best 10, median 9, worst 7, ");
}

TEST(EvalResult, RefusesForecastsThatAreNotNumbers) {
  const tables::InputData input = input_of({counting(20)});
  const EvalOptions options = options_of(4, 1);
  const Forecaster broken = [](std::span<const Series> batch, const ForecastOptions& forecast,
                               std::vector<Forecast>& out) {
    out.assign(batch.size(), {});
    for (Forecast& one : out) {
      one.quantiles.assign(kNumLevels * static_cast<std::size_t>(forecast.horizon), kMissing);
    }
  };
  ErrorCode code = {};
  const std::string sentence = error_of(
      [&] { evaluate(input, plan_windows(input, options.windows), options, broken); }, &code);
  EXPECT_EQ(code, ErrorCode::unsupported);
  EXPECT_NE(sentence.find("\"s0\" from step 16 on"), std::string::npos) << sentence;
}

// A flat history has no in-sample error: null in JSON, a dash in the table, never 0 or infinity.
TEST(EvalResult, FiguresWithoutAValueAreNull) {
  std::vector<float> values(20, 5);
  values.back() = 6;
  const tables::InputData input = input_of({values});
  const EvalOptions options = options_of(4, 1);
  Recorder recorder;
  EvalReport report{.windows = options.windows, .context = 4096};
  report.datasets.push_back(
      evaluate(input, plan_windows(input, options.windows), options, std::ref(recorder)));
  EXPECT_FALSE(report.datasets[0].total.metrics(Contender::model).mase);
  ASSERT_EQ(notable_windows(report.datasets[0]).size(), 1u) << "shown all the same";
  std::string json;
  write_json(report, [&](std::string_view text) { json += text; });
  EXPECT_NE(json.find("\"mase\": null"), std::string::npos);
  EXPECT_EQ(json.find("inf"), std::string::npos);
  EXPECT_NE(table_text(report).find("persistence               -  "), std::string::npos)
      << table_text(report);
}

}  // namespace
}  // namespace toto::eval
