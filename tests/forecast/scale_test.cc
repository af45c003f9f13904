// The factor that series are multiplied by before the network: how it is chosen, that it is undone
// in every answer, and that series that vary enough keep their bits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "special_values.h"
#include "test_model.h"

namespace toto {
namespace {

using testing::error_of;
using testing::made_model;
using testing::TemporaryFolder;
using testing::walk;

// A walk around 0 or 1 of steps of about this size.
Series small_walk(double step, unsigned seed = 1, int length = 100, int num_variates = 1) {
  Series series = walk(seed, length, num_variates);
  for (float& value : series.values) {
    value = static_cast<float>(1 + step * (double{value} - 100));
  }
  return series;
}

Series times(Series series, double factor) {
  for (float& value : series.values) value = static_cast<float>(value * factor);
  for (float& value : series.future_exogenous) value = static_cast<float>(value * factor);
  return series;
}

double deviation_of(const std::vector<float>& values) {
  double total = 0, squares = 0;
  for (const float value : values) total += value;
  const double mean = total / static_cast<double>(values.size());
  for (const float value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// The definition, by itself.
double expected_scale(const std::vector<float>& values, double minimum_scale) {
  const double deviation = deviation_of(values);
  int k = 0;
  while (deviation > 0 && k < 126 && std::ldexp(deviation, k) < 12 * minimum_scale) ++k;
  return std::ldexp(1.0, k);
}

void expect_equal_answers(const Forecast& a, const Forecast& b) {
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.median, b.median);
  EXPECT_EQ(a.point, b.point);
  EXPECT_EQ(a.quantiles, b.quantiles);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.scale, b.scale);
}

class ScaleTest : public ::testing::Test {
 protected:
  double minimum() const { return engine_.model().facts.minimum_scale; }
  // Three patches of the small model, so that paths are fed back.
  ForecastOptions long_options(double scale = 0) const {
    return {.horizon = 20, .scale = scale, .seed = 3};
  }
  ForecastOptions sampled(double scale = 0) const {
    return {.horizon = 20, .num_samples = 12, .scale = scale, .keep_samples = true};
  }

  TemporaryFolder folder_;
  std::string model_ = made_model(folder_);
  Engine engine_ = Engine::load(model_);
};

TEST_F(ScaleTest, IsTheSmallestPowerOfTwoThatIsEnough) {
  EXPECT_NEAR(minimum(), std::sqrt(0.1), 1e-7);
  for (const double step : {1e-30, 1e-6, 1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 100.0}) {
    Series series = small_walk(step);
    if (step < 1e-8) series = times(walk(1, 100), step);  // around 0: near 1 it would be constant
    const Forecast forecast = engine_.forecast(series, {.horizon = 4});
    ASSERT_EQ(forecast.scale.size(), 1u);
    EXPECT_EQ(forecast.scale[0], expected_scale(series.values, minimum())) << step;
  }
  // On the edge itself: a deviation of 12 smallest scales needs no factor, a little less one of 2.
  for (const double deviation : {12 * minimum() * 1.0001, 12 * minimum() * 0.9999}) {
    Series series;
    for (int i = 0; i < 40; ++i) {
      series.values.push_back(static_cast<float>(i % 2 == 0 ? deviation : -deviation));
    }
    EXPECT_EQ(engine_.forecast(series, {.horizon = 1}).scale[0],
              deviation > 12 * minimum() ? 1.0 : 2.0);
  }
}

TEST_F(ScaleTest, SeriesThatVaryEnoughKeepTheirBits) {
  for (const ForecastOptions& options : {long_options(), sampled()}) {
    ForecastOptions one = options;
    one.scale = 1;
    const Series series = walk(7, 150, 3);
    expect_equal_answers(engine_.forecast(series, options), engine_.forecast(series, one));
  }
}

TEST_F(ScaleTest, IsUndoneInEveryAnswer) {
  for (const Mode mode : {Mode::standard, Mode::reduce_overhead, Mode::reference}) {
    const Engine engine = Engine::load(model_, {.mode = mode});
    Series series = small_walk(0.001, 2, 120, 3);
    series.num_exogenous = 1;
    for (int i = 0; i < 20; ++i) series.future_exogenous.push_back(1 + 0.001f * float(i % 3));
    for (ForecastOptions options : {long_options(), sampled()}) {
      options.point = parse_point("mean_plus_std_1.5");
      const Forecast forecast = engine.forecast(series, options);
      // The series as a user would have multiplied it.
      Series multiplied = series;
      for (std::size_t i = 0; i < series.values.size(); ++i) {
        multiplied.values[i] *= static_cast<float>(forecast.scale[i / 120]);
      }
      for (float& value : multiplied.future_exogenous) {
        value *= static_cast<float>(forecast.scale[2]);
      }
      options.scale = 1;
      const Forecast plain = engine.forecast(multiplied, options);
      const auto check = [&](const std::vector<float>& ours, const std::vector<float>& theirs,
                             std::size_t per_variate, const char* what) {
        ASSERT_EQ(ours.size(), theirs.size());
        for (std::size_t i = 0; i < ours.size(); ++i) {
          const double scale = forecast.scale[i / per_variate % 3];
          ASSERT_GT(scale, 100);
          EXPECT_EQ(ours[i], static_cast<float>(theirs[i] / scale)) << what << " " << i;
        }
      };
      check(forecast.mean, plain.mean, 20, "mean");
      check(forecast.median, plain.median, 20, "median");
      check(forecast.point, plain.point, 20, "point");
      check(forecast.quantiles, plain.quantiles, 20, "quantiles");
      check(forecast.samples, plain.samples, std::size_t{20} * 12, "samples");
    }
  }
}

TEST_F(ScaleTest, BandsOfASmallSeriesAreThoseOfTheLargeOne) {
  const Series large = walk(3, 150);
  const auto width = [](const Forecast& forecast) {
    return forecast.quantiles[8 * 20 + 3] - forecast.quantiles[3];
  };
  const float wanted = width(engine_.forecast(large, long_options()));
  const float now = width(engine_.forecast(times(large, 0x1p-14), long_options()));
  const float before = width(engine_.forecast(times(large, 0x1p-14), long_options(1)));
  // The series itself varies by 18 smallest scales, its copy by 12 to 24 of them.
  EXPECT_NEAR(now * 0x1p14f / wanted, 1, 0.1);
  EXPECT_GT(before * 0x1p14f / wanted, 100);
}

TEST_F(ScaleTest, EachVariateHasItsOwn) {
  Series series = walk(4, 80, 3);
  for (std::size_t i = 80; i < 160; ++i) series.values[i] = 0.001f * series.values[i];
  std::fill(series.values.begin() + 160, series.values.end(), 0.25f);
  const Forecast forecast = engine_.forecast(series, long_options());
  const auto row = [&](int v) {
    return std::vector<float>(series.values.begin() + v * 80, series.values.begin() + (v + 1) * 80);
  };
  EXPECT_EQ(forecast.scale, (std::vector<double>{expected_scale(row(0), minimum()),
                                                 expected_scale(row(1), minimum()), 1.0}));
  EXPECT_GT(forecast.scale[1], 1.0);
}

TEST_F(ScaleTest, DependsOnTheObservedValuesOfTheContextAlone) {
  // What is cut, missing or masked does not count.
  const Series small = small_walk(0.01, 5, 60);
  const double wanted = expected_scale(small.values, minimum());
  Series cut = walk(6, 200);
  cut.values.insert(cut.values.end(), small.values.begin(), small.values.end());
  EXPECT_EQ(engine_.forecast(cut, {.horizon = 3, .max_context = 60}).scale[0], wanted);
  EXPECT_EQ(engine_.forecast(cut, {.horizon = 3}).scale[0], 1.0);

  Series masked = cut;
  masked.mask.assign(masked.values.size(), 0);
  std::fill(masked.mask.end() - 60, masked.mask.end(), std::uint8_t{1});
  EXPECT_EQ(engine_.forecast(masked, {.horizon = 3}).scale[0], wanted);

  // The first values of the context are filled from before it, with something far away.
  Series gap = cut;
  std::fill(gap.values.begin() + 200, gap.values.begin() + 220, kMissing);
  const std::vector<float> left(gap.values.begin() + 220, gap.values.end());
  EXPECT_EQ(engine_.forecast(gap, {.horizon = 3, .max_context = 60}).scale[0],
            expected_scale(left, minimum()));
}

TEST_F(ScaleTest, NeverTakesAValueOutOfFloat32) {
  // A tiny history before a huge known future, and a gap filled from a huge value before the cut.
  const float huge = std::numeric_limits<float>::max() / 3;
  Series series = small_walk(1e-5, 8, 60, 2);
  series.num_exogenous = 1;
  series.future_exogenous.assign(20, 1.0f);
  series.future_exogenous[7] = huge;
  const Forecast forecast = engine_.forecast(series, long_options());
  EXPECT_GT(forecast.scale[0], 1000);
  EXPECT_EQ(forecast.scale[1], 2.0);
  for (const float value : forecast.mean) EXPECT_TRUE(std::isfinite(value));

  Series gap;
  gap.values = {huge, kMissing};
  for (int i = 0; i < 30; ++i) gap.values.push_back(1 + 1e-5f * float(i % 3));
  EXPECT_EQ(engine_.forecast(gap, {.horizon = 3, .max_context = 31}).scale[0], 2.0);

  // Subnormal values: at most 2^126.
  Series least;
  for (int i = 0; i < 30; ++i) {
    least.values.push_back(std::numeric_limits<float>::denorm_min() * float(i % 2));
  }
  EXPECT_EQ(engine_.forecast(least, {.horizon = 3}).scale[0], 0x1p126);
}

TEST_F(ScaleTest, AFixedFactorIsCheckedAndUsed) {
  const Series series = walk(9, 60);
  const Forecast forecast = engine_.forecast(series, {.horizon = 4, .scale = 3});
  EXPECT_EQ(forecast.scale, std::vector<double>{3});
  const Forecast plain = engine_.forecast(times(series, 3), {.horizon = 4, .scale = 1});
  for (std::size_t i = 0; i < forecast.mean.size(); ++i) {
    EXPECT_FLOAT_EQ(forecast.mean[i], plain.mean[i] / 3);
  }
  ErrorCode code = ErrorCode::internal;
  for (const double scale : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    const std::string message =
        error_of([&] { engine_.forecast(series, {.horizon = 4, .scale = scale}); }, &code);
    EXPECT_EQ(code, ErrorCode::invalid_argument) << message;
    EXPECT_NE(message.find("expected a finite number above 0"), std::string::npos) << message;
  }
  for (const double scale : {1e37, 1e-60}) {
    const std::string message =
        error_of([&] { engine_.forecast(series, {.horizon = 4, .scale = scale}); }, &code);
    EXPECT_EQ(code, ErrorCode::corrupt_file) << message;
    EXPECT_NE(message.find("series \"walk\": variate 0 has a value of"), std::string::npos)
        << message;
    EXPECT_NE(message.find("out of float32"), std::string::npos) << message;
  }
}

TEST_F(ScaleTest, ATraceIsOfTheSeriesItself) {
  const Series series = small_walk(0.001);
  const Trace trace = engine_.trace(series, {.horizon = 8});
  const Forecast plain =
      engine_.forecast(series, {.horizon = 8, .quantiles = {}, .decode = Decode::mean, .scale = 1});
  const TraceArray* mean = trace.find("mean");
  ASSERT_NE(mean, nullptr);
  EXPECT_EQ(std::vector<float>(mean->values.begin(), mean->values.end()), plain.mean);
}

TEST_F(ScaleTest, SessionsFollowAFactorThatChanges) {
  // The series calms down after a wild beginning, which the context then loses; and it grows wild.
  Series whole = walk(10, 40);
  const Series calm = small_walk(0.001, 11, 120), wild = walk(12, 40);
  whole.values.insert(whole.values.end(), calm.values.begin(), calm.values.end());
  whole.values.insert(whole.values.end(), wild.values.begin(), wild.values.end());
  const auto first = [&](std::size_t length) {
    Series series = whole;
    series.values.resize(length);
    return series;
  };
  Session session = engine_.open(first(40));
  ForecastOptions options = long_options();
  options.max_context = 64;
  std::vector<double> seen;
  for (std::size_t length = 40; length <= whole.values.size(); length += 8) {
    if (length > 40) {
      session.append(std::span(whole.values).subspan(length - 8, 8));
    }
    const Forecast forecast = session.forecast(options);
    expect_equal_answers(forecast, engine_.forecast(first(length), options));
    seen.push_back(forecast.scale[0]);
    options.scale = options.scale == 0 && length == 96 ? 5 : 0;  // and asked for, in between
  }
  EXPECT_LE(seen.front(), 2.0);
  EXPECT_LE(seen.back(), 2.0);
  EXPECT_GT(seen[12], 100.0);
}

}  // namespace
}  // namespace toto
