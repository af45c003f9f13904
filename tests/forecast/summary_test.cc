// Numbers from samples against NumPy and PyTorch, and the point forecasts of both kinds.
#include "forecast/summary.h"
#include "special_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace toto {
namespace {

const std::vector<float> kValues = {0.1F,  -3.25F, 7.5F, 2.0F,  2.0F,
                                    11.0F, -0.7F,  5.5F, 1e-3F, 4.25F};

std::vector<double> all_of(const SampleSummary& s) {
  return {s.mean(), s.standard_deviation(), s.quantile(0.5), s.trimmed_mean(0.1, 0.1)};
}

static_assert(noexcept(SampleSummary(std::span<float>())));
static_assert(noexcept(point_of({}, std::declval<SampleSummary>())));
static_assert(noexcept(point_of({}, std::declval<StepDistribution>())));

// The right-hand sides: numpy.quantile(values.astype(float64), p), method linear.
TEST(SampleSummary, QuantilesAreNumpysToTheLastBit) {
  std::vector<float> values = kValues;
  const SampleSummary summary(values);
  const std::vector<std::pair<double, double>> expected = {
      {0, -3.25},
      {0.05, -2.102499994635582},
      {0.1, -0.9549999892711638},
      {0.25, 0.02575000040815212},
      {0.3333, 0.09997030148968332},
      {0.5, 2.0},
      {0.77, 5.4125},
      {0.9, 7.849999999999999},
      {0.999, 10.968499999999999},
      {1, 11.0},
  };
  for (const auto& [p, q] : expected) EXPECT_EQ(summary.quantile(p), q) << p;
}

TEST(SampleSummary, MeanAndDeviationAreNumpys) {
  std::vector<float> values = kValues;
  const SampleSummary summary(values);
  EXPECT_NEAR(summary.mean(), 2.840100001345854, 1e-15);
  EXPECT_NEAR(summary.standard_deviation(), 4.049238456884968, 1e-14);
}

TEST(SampleSummary, TrimmedMeansCutWholeValues) {
  std::vector<float> values = kValues;
  const SampleSummary summary(values);
  EXPECT_NEAR(summary.trimmed_mean(0.1, 0.1), 2.581375001682318, 1e-15);
  EXPECT_NEAR(summary.trimmed_mean(0.25, 0.25), 2.308500000256269,
              1e-15);  // floor(2.5) is 2 on each side
  EXPECT_NEAR(summary.trimmed_mean(0, 0), summary.mean(), 1e-15);
  EXPECT_EQ(summary.trimmed_mean(0.9, 0), 11.0);
  EXPECT_EQ(summary.trimmed_mean(0, 0.9), -3.25);
  EXPECT_EQ(summary.trimmed_mean(0.999999, 0), 11.0);
  EXPECT_EQ(summary.trimmed_mean(0.49, 0.49), summary.trimmed_mean(0.4, 0.4));
}

TEST(SampleSummary, TrimmedMeanToleratesBinaryRounding) {
  std::vector<float> values(100);
  for (int i = 0; i < 100; ++i) values[i] = static_cast<float>(i);
  const SampleSummary summary(values);
  // 0.29 * 100 is 28.999999999999996 in binary: 29 values are cut nevertheless.
  EXPECT_EQ(summary.trimmed_mean(0.29, 0), (29 + 99) / 2.0);
  EXPECT_EQ(summary.trimmed_mean(0, 0.57), (0 + 42) / 2.0);
}

TEST(SampleSummary, SortsInPlace) {
  std::vector<float> values = kValues;
  std::vector<float> shuffled = kValues;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(1));
  const SampleSummary one(values), two(shuffled);
  EXPECT_EQ(values, shuffled);
  EXPECT_TRUE(std::ranges::is_sorted(values));
  EXPECT_EQ(one.quantile(0.3), two.quantile(0.3));
}

TEST(SampleSummary, OfOneValueIsThatValue) {
  std::vector<float> values = {2.5F};
  const SampleSummary summary(values);
  EXPECT_EQ(summary.mean(), 2.5);
  EXPECT_EQ(summary.standard_deviation(), 0.0);
  EXPECT_EQ(summary.quantile(0.01), 2.5);
  EXPECT_EQ(summary.quantile(0.99), 2.5);
  EXPECT_EQ(summary.trimmed_mean(0.4, 0.4), 2.5);
}

TEST(SampleSummary, OfNothingOrNanIsNan) {
  std::vector<float> nothing;
  std::vector<float> hole = kValues;
  hole[4] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> holes(1000, std::numeric_limits<float>::quiet_NaN());
  for (std::vector<float>* values : {&nothing, &hole, &holes}) {
    for (const double value : all_of(SampleSummary(*values))) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(SampleSummary, RefusesInvalidLevelsAndShares) {
  std::vector<float> values = kValues;
  const SampleSummary summary(values);
  for (const double p : {-0.1, 1.1, double{kMissing}}) EXPECT_TRUE(std::isnan(summary.quantile(p)));
  EXPECT_TRUE(std::isnan(summary.trimmed_mean(0.5, 0.5)));
  EXPECT_TRUE(std::isnan(summary.trimmed_mean(-0.1, 0)));
  EXPECT_TRUE(std::isnan(summary.trimmed_mean(0, kMissing)));
}

TEST(SampleSummary, KeepsInfinities) {
  std::vector<float> values = {-kInfinity, 1, 2, 3, kInfinity, kInfinity};
  const SampleSummary summary(values);
  EXPECT_EQ(summary.quantile(0), -kInfinity);
  EXPECT_EQ(summary.quantile(0.5), 2.5);
  EXPECT_EQ(summary.quantile(0.95), kInfinity);
  EXPECT_EQ(summary.quantile(1), kInfinity);
}

TEST(SampleSummary, SumsInDouble) {
  std::vector<float> values(1'000'000, 0.1F);
  values.front() = 1e7F;
  const SampleSummary summary(values);
  EXPECT_NEAR(summary.mean(), (1e7 + 999'999.0 * 0.1F) / 1e6, 1e-9);
}

class PointOf : public ::testing::Test {
 protected:
  using Kind = Point::Kind;

  // A skewed mixture, and a million draws from it.
  PointOf()
      : workspace_(StudentMixture::workspace_doubles(2)),
        mixture_(workspace_, MixtureParameters{df_, loc_, scale_, logits_}, {50, 4}),
        exact_(mixture_) {
    for (std::uint32_t i = 0; i < 1'000'000; ++i) {
      draws_.push_back(
          static_cast<float>(mixture_.sample(random_words({.seed = 17, .sample = i}))));
    }
  }

  std::vector<double> df_ = {9, 12}, loc_ = {0, 3}, scale_ = {0.5, 1.5}, logits_ = {0.5, 0};
  std::vector<double> workspace_;
  StudentMixture mixture_;
  StepDistribution exact_;
  std::vector<float> draws_;
};

TEST_F(PointOf, ExactFollowsItsDefinition) {
  const double mean = exact_.mean(), deviation = exact_.standard_deviation();
  EXPECT_EQ(point_of({Kind::mean}, exact_), mean);
  EXPECT_EQ(point_of({Kind::median}, exact_), exact_.quantile(0.5));
  EXPECT_EQ(point_of({Kind::quantile, 0.3}, exact_), exact_.quantile(0.3));
  EXPECT_EQ(point_of({Kind::trimmed_mean, 0.1}, exact_), exact_.trimmed_mean(0.1, 0.1));
  EXPECT_EQ(point_of({Kind::lower_trimmed_mean, 0.1}, exact_), exact_.trimmed_mean(0, 0.1));
  EXPECT_EQ(point_of({Kind::upper_trimmed_mean, 0.1}, exact_), exact_.trimmed_mean(0.1, 0));
  EXPECT_EQ(point_of({Kind::mean_minus_std, 0.5}, exact_), mean - 0.5 * deviation);
  EXPECT_EQ(point_of({Kind::mean_plus_std, 0.5}, exact_), mean + 0.5 * deviation);
  EXPECT_EQ(point_of({Kind::mean_quantile_mix, 0.4, 0.25}, exact_),
            0.25 * mean + 0.75 * exact_.quantile(0.4));
  EXPECT_EQ(point_of({Kind::quantile_plus_std, 0.4, 0.25}, exact_),
            exact_.quantile(0.4) + 0.25 * deviation);
  // The lower one is what is left below the cut.
  EXPECT_LT(point_of({Kind::lower_trimmed_mean, 0.1}, exact_), mean);
  EXPECT_GT(point_of({Kind::upper_trimmed_mean, 0.1}, exact_), mean);
}

TEST_F(PointOf, SamplesConvergeToTheExactOne) {
  const SampleSummary summary(draws_);
  // Five standard errors of a mean, doubled for the quantiles and deviations.
  const double bound = 10 * exact_.standard_deviation() / 1000;
  for (const Point point :
       {Point{Kind::mean}, Point{Kind::median}, Point{Kind::quantile, 0.15},
        Point{Kind::trimmed_mean, 0.1}, Point{Kind::lower_trimmed_mean, 0.2},
        Point{Kind::upper_trimmed_mean, 0.2}, Point{Kind::mean_minus_std, 0.8},
        Point{Kind::mean_plus_std, 0.8}, Point{Kind::mean_quantile_mix, 0.4, 0.5},
        Point{Kind::quantile_plus_std, 0.15, 0.12}}) {
    EXPECT_NEAR(point_of(point, summary), point_of(point, exact_), bound) << name_of(point);
  }
}

}  // namespace
}  // namespace toto
