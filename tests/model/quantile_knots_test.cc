// A distribution given by quantiles: exact at the levels, interpolated between and beyond them.
#include "model/quantile_knots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace toto {
namespace {

const std::vector<double> kLevels = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};

// The levels of an asymmetric distribution, and numeric integrals of its quantile function.
class KnotsTest : public ::testing::Test {
 protected:
  std::vector<double> values_ = {-4, -2.5, -1, 0.5, 1, 1.25, 2, 4, 9};
  QuantileKnots knots_{kLevels, values_};

  template <typename F>
  double integral(double from, double to, const F& f) const {
    constexpr int kSteps = 2'000'000;
    double sum = 0;
    for (int i = 0; i < kSteps; ++i) {
      sum += f(knots_.quantile(from + (to - from) * (i + 0.5) / kSteps));
    }
    return sum * (to - from) / kSteps;
  }
};

TEST_F(KnotsTest, PassThroughTheLevels) {
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    EXPECT_DOUBLE_EQ(knots_.quantile(kLevels[i]), values_[i]);
  }
  EXPECT_EQ(knots_.mean(), knots_.quantile(0.5));
  EXPECT_DOUBLE_EQ(knots_.quantile(0.25), -1.75);  // linear between
}

TEST_F(KnotsTest, HaveExponentialTails) {
  // Through the two outer levels, linear in the logarithm of the tail's probability.
  EXPECT_NEAR(knots_.quantile(0.05), -4 - 1.5, 1e-12);
  EXPECT_NEAR(knots_.quantile(0.95), 9 + 5, 1e-12);
  double before = -1e9;
  for (double p = 1e-9; p < 1; p = p < 0.01 ? p * 1.5 : p + 0.003) {
    EXPECT_GT(knots_.quantile(p), before) << p;
    before = knots_.quantile(p);
  }
}

TEST_F(KnotsTest, TrimmedMeansAreIntegrals) {
  const auto same = [](double q) { return q; };
  for (const auto& [lower, upper] :
       {std::pair(0.1, 0.1), std::pair(0.05, 0.25), std::pair(0.0, 0.05), std::pair(0.95, 0.0),
        std::pair(0.0, 0.93), std::pair(0.33, 0.4)}) {
    const double expected = integral(lower, 1 - upper, same) / (1 - lower - upper);
    EXPECT_NEAR(knots_.trimmed_mean(lower, upper), expected, 2e-5) << lower << " " << upper;
  }
  EXPECT_TRUE(std::isnan(knots_.trimmed_mean(0.5, 0.5)));
}

TEST_F(KnotsTest, StandardDeviationIsThatOfTheWholeFunction) {
  const double mean = knots_.trimmed_mean(0, 0);
  const double variance = integral(0, 1, [mean](double q) { return (q - mean) * (q - mean); });
  EXPECT_NEAR(knots_.standard_deviation(), std::sqrt(variance), 1e-4);
}

TEST_F(KnotsTest, DrawsHaveTheQuantiles) {
  constexpr int kDraws = 100'000;
  std::vector<int> below(kLevels.size());
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const double x = knots_.sample(random_words({.seed = 5, .sample = i}));
    for (std::size_t q = 0; q < kLevels.size(); ++q) below[q] += x < values_[q] ? 1 : 0;
  }
  for (std::size_t q = 0; q < kLevels.size(); ++q) {
    EXPECT_NEAR(double(below[q]) / kDraws, kLevels[q], 0.006);
  }
}

TEST(Knots, AreSortedAndRefuseNonFiniteValues) {
  std::vector<double> crossing = {3, 1, 2};
  const std::vector<double> levels = {0.25, 0.5, 0.75};
  const QuantileKnots knots(levels, crossing);
  EXPECT_TRUE(knots.valid());
  EXPECT_EQ(knots.quantile(0.25), 1);
  EXPECT_EQ(knots.quantile(0.75), 3);
  std::vector<double> bad = {1, NAN, 2};
  EXPECT_FALSE(QuantileKnots(levels, bad).valid());
  EXPECT_TRUE(std::isnan(QuantileKnots(levels, bad).quantile(0.5)));
  std::vector<double> one = {7};
  const std::span<const double> half(levels.data() + 1, 1);
  const QuantileKnots constant(half, one);
  EXPECT_EQ(constant.quantile(0.01), 7);
  EXPECT_EQ(constant.standard_deviation(), 0);
}

}  // namespace
}  // namespace toto
