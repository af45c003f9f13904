// Figures computed by hand, and those that have no value.
#include "eval/eval_metrics.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "eval/baselines.h"
#include "special_values.h"

namespace toto::eval {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

// The same quantiles at every step: value(level).
template <typename Value>
std::vector<float> quantiles(std::size_t horizon, const Value& value) {
  std::vector<float> result;
  for (const double level : kLevels) {
    result.insert(result.end(), horizon, static_cast<float>(value(level)));
  }
  return result;
}

std::vector<float> level_of(const std::vector<float>& quantiles, std::size_t level) {
  const std::size_t horizon = quantiles.size() / kNumLevels;
  const auto first = quantiles.begin() + static_cast<std::ptrdiff_t>(level * horizon);
  return {first, first + static_cast<std::ptrdiff_t>(horizon)};
}

TEST(EvalMetrics, LevelsCoverTheFigures) {
  EXPECT_DOUBLE_EQ(kLevels[1], 0.1);
  EXPECT_DOUBLE_EQ(kLevels[4], 0.25);
  EXPECT_DOUBLE_EQ(kLevels[kMedian], 0.5);
  EXPECT_DOUBLE_EQ(kLevels[14], 0.75);
  EXPECT_DOUBLE_EQ(kLevels[17], 0.9);
}

// A point forecast of 12 against 10 and 16: every figure is one of its two errors, 2 and 4.
TEST(EvalMetrics, APointForecastByHand) {
  const std::vector<float> actual = {10, 16};
  const Sums sums = score(actual, quantiles(2, [](double) { return 12; }), 1.5);
  const Metrics metrics = metrics_of(sums, false);
  EXPECT_DOUBLE_EQ(*metrics.mae, 3.0);
  EXPECT_DOUBLE_EQ(*metrics.mase, 2.0);
  EXPECT_DOUBLE_EQ(*metrics.wql, 6.0 / 26.0) << "for a point, 2 x pinball averages to the error";
  EXPECT_DOUBLE_EQ(*metrics.crps, 3.0);
  EXPECT_DOUBLE_EQ(*metrics.smape, (200 * 2 / 22.0 + 200 * 4 / 28.0) / 2);
  EXPECT_FALSE(metrics.coverage_50 || metrics.coverage_80) << "a point has no band";
}

// Quantiles 100 x level, actual 70. Pinball of a decile q: 100 q (0.7 - q) below 0.7, else
// 100 (1 - q) (q - 0.7); the nine of them sum to 100 (0.06 + 0.10 + 0.12 + 0.12 + 0.10 + 0.06 + 0 +
// 0.02 + 0.02) = 60.
TEST(EvalMetrics, ASpreadForecastByHand) {
  const std::vector<float> actual = {70};
  const Sums sums = score(actual, quantiles(1, [](double q) { return 100 * q; }), 10.0);
  const Metrics metrics = metrics_of(sums, true);
  EXPECT_NEAR(*metrics.wql, 2 * 60.0 / 9 / 70, 1e-7);
  EXPECT_NEAR(*metrics.mae, 20, 1e-5);
  EXPECT_NEAR(*metrics.mase, 2, 1e-6);
  EXPECT_EQ(*metrics.coverage_50, 1) << "25 to 75";
  EXPECT_EQ(*metrics.coverage_80, 1);
  double crps = 0;
  for (int i = 1; i <= 19; ++i) {
    const double q = i / 20.0;
    crps += 2 * 100 * (q < 0.7 ? q * (0.7 - q) : (1 - q) * (q - 0.7)) / 19;
  }
  EXPECT_NEAR(*metrics.crps, crps, 1e-5);
}

TEST(EvalMetrics, TheEdgeOfABandIsInside) {
  const auto inside = [](float actual) {
    const Sums sums = score({{actual}}, quantiles(1, [](double q) { return 100 * q; }), 1.0);
    return std::pair(sums.inside_50, sums.inside_80);
  };
  EXPECT_EQ(inside(25), std::pair(std::int64_t{1}, std::int64_t{1}));
  EXPECT_EQ(inside(24.5F), std::pair(std::int64_t{0}, std::int64_t{1}));
  EXPECT_EQ(inside(90), std::pair(std::int64_t{0}, std::int64_t{1}));
  EXPECT_EQ(inside(91), std::pair(std::int64_t{0}, std::int64_t{0}));
}

TEST(EvalMetrics, MissingValuesAreIgnored) {
  const auto forecast = quantiles(3, [](double q) { return 20 * q; });
  const std::vector<float> with = {4, kMissing, 9};
  const Sums sums = score(with, forecast, 2.0);
  EXPECT_EQ(sums.steps, 2);
  const Sums without =
      score(std::vector<float>{4, 9}, quantiles(2, [](double q) { return 20 * q; }), 2.0);
  EXPECT_EQ(sums.quantile_loss, without.quantile_loss);
  EXPECT_EQ(sums.scaled_error, without.scaled_error);
  const Sums nothing = score(std::vector<float>{kMissing, kMissing, kMissing}, forecast, 2.0);
  EXPECT_EQ(nothing.windows, 0);
  EXPECT_EQ(nothing.scaled_windows, 0);
}

TEST(EvalMetrics, FiguresWithoutADivisorHaveNoValue) {
  const Metrics none = metrics_of({}, true);
  EXPECT_FALSE(none.mase || none.wql || none.crps || none.mae || none.smape || none.coverage_80);
  // Actual values of 0: no WQL, but a ratio of it. A flat history: no MASE.
  const std::vector<float> zeros = {0, 0};
  const Sums ours = score(zeros, quantiles(2, [](double) { return 1; }), std::nullopt);
  const Sums theirs = score(zeros, quantiles(2, [](double) { return 4; }), std::nullopt);
  EXPECT_FALSE(metrics_of(ours, false).wql);
  EXPECT_FALSE(metrics_of(ours, false).mase);
  EXPECT_DOUBLE_EQ(*metrics_of(ours, false).smape, 200);
  EXPECT_DOUBLE_EQ(*ratios_of(ours, theirs).wql, 0.25);
  EXPECT_FALSE(ratios_of(ours, theirs).mase);
  // Neither 0 nor infinity is a ratio.
  const Sums perfect = score(zeros, quantiles(2, [](double) { return 0; }), std::nullopt);
  EXPECT_FALSE(ratios_of(ours, perfect).wql);
  EXPECT_FALSE(ratios_of(perfect, ours).mae);
  EXPECT_EQ(*metrics_of(perfect, false).smape, 0) << "0 of 0 counts as no error";
}

TEST(EvalMetrics, InSampleErrorByHand) {
  const std::vector<float> history = {1, 4, 2, 8};
  EXPECT_DOUBLE_EQ(*in_sample_error(history, 1), (3 + 2 + 6) / 3.0);
  EXPECT_DOUBLE_EQ(*in_sample_error(history, 2), (1 + 4) / 2.0);
  EXPECT_FALSE(in_sample_error(history, 4));
  EXPECT_FALSE(in_sample_error(std::vector<float>{5, 5, 5}, 1)) << "never wrong";
  EXPECT_DOUBLE_EQ(*in_sample_error(std::vector<float>{1, kMissing, 2, 5}, 1), 3);
  EXPECT_FALSE(in_sample_error(std::vector<float>{1, kMissing, 2}, 1));
  EXPECT_TRUE(std::isfinite(*in_sample_error(std::vector<float>{kLargest, -kLargest}, 1)));
}

TEST(EvalMetrics, GeometricMeanSkipsMissingValues) {
  RatioMean mean;
  mean.add({.mase = 0.5, .wql = 4.0, .crps = {}, .mae = 1.0});
  mean.add({.mase = {}, .wql = 0.25, .crps = {}, .mae = 8.0});
  EXPECT_DOUBLE_EQ(*mean.mean().mase, 0.5);
  EXPECT_DOUBLE_EQ(*mean.mean().wql, 1.0);
  EXPECT_FALSE(mean.mean().crps);
  EXPECT_NEAR(*mean.mean().mae, std::sqrt(8.0), 1e-12);
  EXPECT_EQ(mean.num_wql(), 2u);
}

// -------------------------------------------------------------------------------------- baselines

TEST(EvalBaselines, SeasonalNaiveRepeatsTheLastSeason) {
  const std::vector<float> history = {1, 2, 3, 4, 5};
  const std::vector<float> expected = {3, 4, 5, 3};
  for (std::size_t level = 0; level < kNumLevels; ++level) {
    EXPECT_EQ(level_of(seasonal_naive(history, 3, 4), level), expected);
  }
  EXPECT_EQ(level_of(persistence(history, 2), 0), (std::vector<float>{5, 5}));
  EXPECT_EQ(level_of(seasonal_naive(history, 5, 6), 3), (std::vector<float>{1, 2, 3, 4, 5, 1}));
}

TEST(EvalBaselines, GapsAreFilledFromEarlierSeasons) {
  const std::vector<float> history = {1, 2, kMissing, 3, kMissing, kMissing};
  EXPECT_EQ(level_of(seasonal_naive(history, 2, 2), 0), (std::vector<float>{1, 3}));
  EXPECT_EQ(level_of(seasonal_naive(history, 3, 3), 0), (std::vector<float>{3, 2, 3}))
      << "where a season has no value at all: the latest value";
  EXPECT_EQ(level_of(persistence(history, 1), 0), (std::vector<float>{3}));
}

// Changes over one season of 2: 2, 2, 4, 4; standard deviation 1.
TEST(EvalBaselines, BandsComeFromItsOwnErrors) {
  const std::vector<float> history = {0, 10, 2, 12, 6, 16};
  const std::vector<float> bands = seasonal_naive_bands(history, 2, 5);
  const boost::math::normal normal;
  for (std::size_t i = 0; i < kNumLevels; ++i) {
    const double z = boost::math::quantile(normal, kLevels[i]);
    const std::vector<float> got = level_of(bands, i);
    const std::vector<double> points = {6, 16, 6, 16, 6};
    for (std::size_t step = 0; step < 5; ++step) {
      const double spread = std::sqrt(1.0 + static_cast<double>(step / 2));
      EXPECT_NEAR(got[step], points[step] + spread * z, 2e-6) << i << " " << step;
    }
  }
}

TEST(EvalBaselines, BandsStayNumbers) {
  const std::vector<float> extreme = {kLargest, -kLargest, kLargest, -kLargest};
  for (const float value : seasonal_naive_bands(extreme, 1, 3)) EXPECT_TRUE(std::isfinite(value));
  const std::vector<float> sparse = {7, kMissing, kMissing};
  for (const float value : seasonal_naive_bands(sparse, 1, 3)) EXPECT_EQ(value, 7);
}

}  // namespace
}  // namespace toto::eval
