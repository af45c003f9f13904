// The exact distribution function, quantiles and trimmed means, against Boost.Math.
#include "model/mixture_cdf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "allocation_hook.h"
#include "mixture_case.h"

namespace toto {
namespace {

using Oracle = boost::math::students_t_distribution<long double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const std::vector<double> kDfs = {2.0, 2.0 + 1.2e-7, 2.1, 2.5, 3.0, 4.0, 5.5, 7.3,
                                  10,  20,           50,  1e2, 1e3, 1e4, 1e6, 1e8};
const std::vector<double> kLevels = {1e-6, 1e-3, 0.01, 0.05, 0.1,  0.2,  0.3,   0.4,     0.5,
                                     0.6,  0.7,  0.8,  0.9,  0.95, 0.99, 0.999, 1 - 1e-6};

using Case = MixtureCase;

// P(Y <= y), or P(Y > y), by Boost.
long double oracle(const Case& c, double y, bool upper) {
  std::vector<long double> weights(c.df.size(), 1);
  for (std::size_t i = 0; i < c.logits.size(); ++i) weights[i] = std::exp(1.0L * c.logits[i]);
  const long double sum = std::accumulate(weights.begin(), weights.end(), 0.0L);
  long double total = 0;
  for (std::size_t i = 0; i < c.df.size(); ++i) {
    const long double x = (static_cast<long double>(y) - c.affine.shift) / c.affine.stretch;
    const long double t = (x - c.loc[i]) / c.scale[i];
    total +=
        weights[i] / sum * (upper ? cdf(complement(Oracle(c.df[i]), t)) : cdf(Oracle(c.df[i]), t));
  }
  return total;
}

Case single(double df, double loc = 0, double scale = 1) {
  return {{df}, {loc}, {scale}, {}, {}, {}};
}

Case random_case(std::mt19937_64& engine, std::size_t num_components) {
  std::normal_distribution<double> normal;
  Case c;
  for (std::size_t i = 0; i < num_components; ++i) {
    c.df.push_back(2 + std::log1p(std::exp(2 * normal(engine) + 1)));
    c.loc.push_back(normal(engine));
    c.scale.push_back(std::exp(normal(engine) - 1));
    c.logits.push_back(2 * normal(engine));
  }
  return c;
}

static_assert(noexcept(MixtureCdf(std::declval<StudentMixture>())));
static_assert(noexcept(std::declval<MixtureCdf>().quantile(0.5)));
static_assert(noexcept(std::declval<MixtureCdf>().trimmed_mean(0.1, 0.1)));

TEST(Cdf, AgreesWithBoostForEveryDf) {
  for (const double df : kDfs) {
    Case c = single(df);
    const MixtureCdf exact = c.exact();
    const Oracle t(df);
    for (double x = 1e-5; x < 1e5; x *= 1.31) {
      const long double tail = cdf(complement(t, static_cast<long double>(x)));
      const long double density = pdf(t, static_cast<long double>(x));
      if (tail < 1e-290L) break;
      SCOPED_TRACE(::testing::Message() << "df " << df << " x " << x);
      ASSERT_NEAR(exact.cdf(x), static_cast<double>(1 - tail), 3e-15);
      ASSERT_NEAR(exact.cdf(-x), static_cast<double>(tail), 3e-15);
      // In the tails as well: relative error 1e-12.
      ASSERT_NEAR(exact.cdf(-x) / static_cast<double>(tail), 1, 1e-12);
      ASSERT_NEAR(exact.survival(x) / static_cast<double>(tail), 1, 1e-12);
      ASSERT_NEAR(exact.pdf(x) / static_cast<double>(density), 1, 1e-12);
      ASSERT_EQ(exact.survival(x), exact.cdf(-x));
    }
  }
}

TEST(Cdf, BecomesTheGaussian) {
  for (const double df : {1e20, 1e30, 1e300}) {
    Case c = single(df);
    const MixtureCdf exact = c.exact();
    for (double x = 1e-3; x < 36; x *= 1.2) {
      const long double tail = cdf(complement(boost::math::normal_distribution<long double>(), x));
      ASSERT_NEAR(exact.cdf(-x) / static_cast<double>(tail), 1, 1e-12) << df << " " << x;
    }
  }
}

TEST(Cdf, HandlesExtremes) {
  for (const double df : kDfs) {
    Case c = single(df, 3, 2);
    const MixtureCdf exact = c.exact();
    EXPECT_NEAR(exact.cdf(3), 0.5, 2e-16);
    EXPECT_EQ(exact.cdf(-kInfinity), 0);
    EXPECT_EQ(exact.cdf(kInfinity), 1);
    EXPECT_EQ(exact.survival(-kInfinity), 1);
    EXPECT_EQ(exact.survival(kInfinity), 0);
    EXPECT_EQ(exact.pdf(kInfinity), 0);
    EXPECT_TRUE(std::isnan(exact.cdf(kNan)));
    EXPECT_TRUE(std::isnan(exact.survival(kNan)));
    EXPECT_TRUE(std::isnan(exact.pdf(kNan)));
    for (const double x : {1e10, 1e100, 1e200, 1e300, 1.7e308}) {
      EXPECT_GE(exact.cdf(-x), 0);
      EXPECT_LE(exact.cdf(-x), 1e-19);
      EXPECT_NEAR(exact.cdf(x), 1, 1e-15);
    }
  }
}

TEST(Cdf, OfAMixtureIsTheWeightedSum) {
  std::mt19937_64 engine(1);
  for (const std::size_t k : {1, 2, 7, 8, 9, 24, 256}) {
    Case c = random_case(engine, k);
    c.affine = {5, 0.25};
    const MixtureCdf exact = c.exact();
    for (double y = 3; y < 7; y += 0.37) {
      ASSERT_NEAR(exact.cdf(y), static_cast<double>(oracle(c, y, false)), 3e-15) << k << " " << y;
      ASSERT_NEAR(exact.survival(y), static_cast<double>(oracle(c, y, true)), 3e-15) << k;
    }
  }
}

TEST(Cdf, DerivativesMatchDifferences) {
  std::mt19937_64 engine(5);
  Case c = random_case(engine, 24);
  StudentComponents components{};
  std::vector<StudentLanes> lanes(3);
  const StudentMixture mixture = c.mixture();
  for (std::size_t i = 0; i < 24; ++i) {
    components.weight[i % 8] = mixture.weights()[i];
    components.df[i % 8] = c.df[i];
    components.loc[i % 8] = c.loc[i];
    components.scale[i % 8] = c.scale[i];
    if (i % 8 == 7) prepare_lanes(components, lanes[i / 8]);
  }
  constexpr double kStep = 1e-5;
  for (double x = -3; x < 3; x += 0.31) {
    const MixtureValue low = evaluate_mixture(lanes, x - kStep);
    const MixtureValue here = evaluate_mixture(lanes, x);
    const MixtureValue high = evaluate_mixture(lanes, x + kStep);
    EXPECT_NEAR(here.below + here.above, 1, 1e-15);
    EXPECT_NEAR((high.below - low.below) / (2 * kStep), here.density, 1e-7);
    EXPECT_NEAR((high.density - low.density) / (2 * kStep), here.slope, 1e-6);
    EXPECT_NEAR((high.slope - low.slope) / (2 * kStep), here.bend, 1e-4);
    EXPECT_NEAR((low.mean_above - high.mean_above) / (2 * kStep), x * here.density, 1e-7);
  }
}

TEST(Quantile, AgreesWithBoostForEveryDf) {
  for (const double df : kDfs) {
    Case c = single(df);
    const MixtureCdf exact = c.exact();
    for (const double p : kLevels) {
      const double q = exact.quantile(p);
      const Oracle t(df);
      const long double reached = p <= 0.5
                                      ? cdf(t, static_cast<long double>(q)) / p
                                      : cdf(complement(t, static_cast<long double>(q))) / (1 - p);
      ASSERT_NEAR(static_cast<double>(reached), 1, 2e-12) << "df " << df << " p " << p;
      ASSERT_NEAR(q, static_cast<double>(quantile(t, static_cast<long double>(p))),
                  1e-11 * std::max(1.0, std::abs(q)))
          << "df " << df << " p " << p;
    }
  }
}

TEST(Quantile, HitsItsLevelInRandomMixtures) {
  std::mt19937_64 engine(2);
  for (int round = 0; round < 300; ++round) {
    Case c = random_case(engine, 1 + engine() % 30);
    const MixtureCdf exact = c.exact();
    double previous = -kInfinity;
    for (const double p : kLevels) {
      const double q = exact.quantile(p);
      const double found = p <= 0.5 ? exact.cdf(q) / p : exact.survival(q) / (1 - p);
      ASSERT_NEAR(found, 1, 1.1e-12) << "round " << round << " p " << p;
      ASSERT_GT(q, previous);
      previous = q;
    }
    if (round % 30 == 0) {
      ASSERT_NEAR(static_cast<double>(oracle(c, exact.quantile(0.3), false)), 0.3, 1e-12);
    }
  }
}

TEST(Quantile, TransformsWithTheData) {
  std::mt19937_64 engine(3);
  Case c = random_case(engine, 24);
  const double plain = c.exact().quantile(0.3);
  c.affine = {-7, 3};
  EXPECT_EQ(c.exact().quantile(0.3), -7 + 3 * plain);
}

TEST(Quantile, RefusesInvalidLevels) {
  Case c = single(3);
  const MixtureCdf exact = c.exact();
  for (const double p : {0.0, 1.0, -0.1, 1.5, kNan, kInfinity, -kInfinity}) {
    EXPECT_TRUE(std::isnan(exact.quantile(p))) << p;
  }
}

TEST(Quantile, OfTheSmallestLevels) {
  for (const double df : {2.0, 3.0, 100.0}) {
    Case c = single(df);
    const MixtureCdf exact = c.exact();
    for (const double p : {1e-12, 1e-50, 1e-150, 1e-290}) {
      const double q = exact.quantile(p);
      ASSERT_NEAR(exact.cdf(q) / p, 1, 1.1e-12) << df << " " << p;
    }
    EXPECT_LT(exact.quantile(5e-324), exact.quantile(1e-290));  // not accurate, but it ends
  }
}

TEST(Quantile, OfScalesFarApart) {
  // From 1e-30 to 1e30 in one mixture around one centre, and every weight down to 1e-300.
  for (const double slope : {0.0, -3.0, -23.0, 3.0, 23.0}) {
    Case c;
    for (int i = 0; i <= 30; ++i) {
      c.df.push_back(i % 3 == 0 ? 2.0 : 2.0 + i);
      c.loc.push_back(0);
      c.scale.push_back(std::pow(10.0, 2 * i - 30));
      c.logits.push_back(slope * i);
    }
    const MixtureCdf exact = c.exact();
    for (const double p : kLevels) {
      const double q = exact.quantile(p);
      const double found = p <= 0.5 ? exact.cdf(q) / p : exact.survival(q) / (1 - p);
      ASSERT_NEAR(found, 1, 1.1e-12) << slope << " " << p;
    }
  }
}

TEST(Quantile, OfAFlatStretch) {
  // Half of the mass around -1e6, half around 1e6: any value between them is a median.
  Case c{{30, 30}, {-1e6, 1e6}, {1, 1}, {0, 0}, {}, {}};
  const MixtureCdf exact = c.exact();
  const double middle = exact.quantile(0.5);
  EXPECT_NEAR(exact.cdf(middle), 0.5, 1e-12);
  EXPECT_EQ(middle, exact.quantile(0.5));
  EXPECT_NEAR(exact.quantile(0.5 - 1e-7), -1e6, 20);
  EXPECT_NEAR(exact.quantile(0.5 + 1e-7), 1e6, 20);
  EXPECT_NEAR(exact.cdf(exact.quantile(0.25)), 0.25, 1e-12);
  EXPECT_NEAR(exact.cdf(exact.quantile(0.75)), 0.75, 1e-12);
}

// For any parameters the search ends, and the level is between those of the neighbouring doubles.
TEST(Quantile, EndsForAnyParameters) {
  std::mt19937_64 engine(4);
  std::uniform_real_distribution<double> unit;
  const auto power = [&](double low, double high) {
    return std::pow(10.0, low + (high - low) * unit(engine));
  };
  for (int round = 0; round < 4000; ++round) {
    Case c;
    const std::size_t k = 1 + engine() % 24;
    const double spread = power(-30, 30);
    for (std::size_t i = 0; i < k; ++i) {
      c.df.push_back(2 + (engine() % 4 == 0 ? 0 : power(-7, 9)));
      c.loc.push_back((unit(engine) - 0.5) * spread * (engine() % 3 == 0 ? 0 : 1));
      c.scale.push_back(engine() % 2 == 0 ? power(-30, 30) : spread * power(-12, 2));
      c.logits.push_back(-700 * unit(engine) * static_cast<double>(engine() % 2));
    }
    const MixtureCdf exact = c.exact();
    for (const double p : {unit(engine), 0.5, 1e-6, 1 - 1e-6}) {
      const double q = exact.quantile(p);
      ASSERT_LE(exact.cdf(std::nextafter(q, -kInfinity)), p + 1e-9) << "round " << round;
      ASSERT_GE(exact.cdf(std::nextafter(q, kInfinity)), p - 1e-9) << "round " << round;
    }
  }
}

TEST(PartialMean, AgreesWithQuadrature) {
  std::mt19937_64 engine(6);
  for (int round = 0; round < 10; ++round) {
    Case c = random_case(engine, 5);
    c.affine = {2, 0.5};
    const StudentMixture mixture = c.mixture();
    const MixtureCdf exact(mixture);
    const auto integrand = [&](long double y) {
      long double density = 0;
      for (std::size_t i = 0; i < 5; ++i) {
        const long double t = ((y - 2) / 0.5L - c.loc[i]) / c.scale[i];
        density += mixture.weights()[i] * pdf(Oracle(c.df[i]), t) / c.scale[i] / 0.5L;
      }
      return y * density;
    };
    using Quadrature = boost::math::quadrature::gauss_kronrod<long double, 31>;
    for (const auto& [low, high] : {std::pair{1.0, 3.0}, {-2.0, 1.5}, {2.5, 40.0}}) {
      const long double expected = Quadrature::integrate(
          integrand, static_cast<long double>(low), static_cast<long double>(high), 12, 1e-13L);
      ASSERT_NEAR(exact.partial_mean(low, high), static_cast<double>(expected), 1e-11);
    }
    ASSERT_NEAR(exact.partial_mean(-kInfinity, kInfinity), exact.mean(), 1e-14);
    ASSERT_NEAR(exact.partial_mean(-kInfinity, 1) + exact.partial_mean(1, kInfinity), exact.mean(),
                1e-14);
    ASSERT_EQ(exact.partial_mean(1, 1), 0);
    ASSERT_EQ(exact.partial_mean(2, 1), 0);
    ASSERT_TRUE(std::isnan(exact.partial_mean(kNan, 1)));
  }
}

TEST(TrimmedMean, IsThePartialMeanBetweenQuantiles) {
  std::mt19937_64 engine(7);
  for (int round = 0; round < 20; ++round) {
    Case c = random_case(engine, 24);
    c.affine = {100, 3};
    const MixtureCdf exact = c.exact();
    for (const auto& [lower, upper] :
         {std::pair{0.1, 0.1}, {0.25, 0.25}, {0.3, 0.0}, {0.0, 0.8}, {0.49, 0.49}, {1e-6, 1e-3}}) {
      const double low = lower > 0 ? exact.quantile(lower) : -kInfinity;
      const double high = upper > 0 ? exact.quantile(1 - upper) : kInfinity;
      const double expected = exact.partial_mean(low, high) / (1 - lower - upper);
      ASSERT_NEAR(exact.trimmed_mean(lower, upper), expected, 1e-8) << lower << " " << upper;
    }
    ASSERT_NEAR(exact.trimmed_mean(0, 0), exact.mean(), 1e-13);
    // Almost nothing left but the median, almost nothing cut.
    ASSERT_NEAR(exact.trimmed_mean(0.5 - 1e-5, 0.5 - 1e-5), exact.quantile(0.5), 1e-4);
    ASSERT_NEAR(exact.trimmed_mean(1e-30, 1e-30), exact.mean(), 1e-9);
  }
}

TEST(TrimmedMean, OfASymmetricDistributionIsItsCentre) {
  Case c = single(2.5, 4, 2);
  const MixtureCdf exact = c.exact();
  EXPECT_NEAR(exact.trimmed_mean(0.1, 0.1), 4, 1e-12);
  EXPECT_NEAR(exact.trimmed_mean(0.4, 0) - 4, 4 - exact.trimmed_mean(0, 0.4), 1e-12);
}

TEST(TrimmedMean, OfStepsCountsWhatTheCutShares) {
  // Steps so narrow that the cut at 0.3 falls inside one: 0.2 of 0, 0.5 of 1 remain above it.
  Case c{{30, 30}, {1, 2}, {1e-30, 1e-30}, {0, 0}, {}, {}};
  EXPECT_NEAR(c.exact().trimmed_mean(0.3, 0), (0.2 * 1 + 0.5 * 2) / 0.7, 1e-12);
  EXPECT_NEAR(c.exact().trimmed_mean(0, 0.1), (0.5 * 1 + 0.4 * 2) / 0.9, 1e-12);
}

TEST(TrimmedMean, RefusesSharesThatLeaveNothing) {
  Case c = single(3);
  const MixtureCdf exact = c.exact();
  for (const auto& [lower, upper] :
       {std::pair{0.5, 0.5}, {1.0, 0.0}, {-0.1, 0.1}, {0.1, kNan}, {kInfinity, 0.0}}) {
    EXPECT_TRUE(std::isnan(exact.trimmed_mean(lower, upper)));
  }
}

TEST(MixtureCdf, AllocatesNothing) {
  std::mt19937_64 engine(8);
  Case c = random_case(engine, 24);
  c.workspace.resize(StudentMixture::workspace_doubles(24));
  const long before = testing::allocations;
  const StudentMixture mixture(c.workspace, MixtureParameters{c.df, c.loc, c.scale, c.logits}, {});
  const MixtureCdf exact(mixture);
  double total = exact.mean() + exact.standard_deviation() + exact.cdf(0) + exact.pdf(0);
  for (const double p : kLevels) total += exact.quantile(p) + exact.trimmed_mean(p / 3, p / 3);
  for (std::uint32_t i = 0; i < 100; ++i) total += mixture.sample(random_words({.sample = i}));
  EXPECT_EQ(testing::allocations, before);
  EXPECT_TRUE(std::isfinite(total));
}

// Computed once; any CPU, compiler or optimisation level must give the same.
TEST(MixtureCdf, TheSameBitsEverywhere) {
  constexpr std::array<std::uint64_t, 14> kBits = {
      0x408eff8e059461ec, 0x4067bbf76b295fca, 0x4036cc29d5a0ae80, 0x408e931757c5d684,
      0x408ebe43468f2b36, 0x408ef0ea928c58aa, 0x408f88453d44669b, 0x409085b8046ad876,
      0x3f6161b55fc23d3e, 0x3fec496ad377eb16, 0x3f30577a6836ee32, 0x3f91911b8623420b,
      0x4079e38b8f3434b2, 0x408efa67924a3cf5};
  Case c;
  for (int i = 0; i < 24; ++i) {  // numbers that are exact in binary
    c.df.push_back(2.25 + 0.0078125 * (i * i * i));
    c.loc.push_back(0.125 * ((i * 11) % 24) - 1.5);
    c.scale.push_back(0.0625 * (1 + (i * 5) % 17));
    c.logits.push_back(0.25 * ((i * 7) % 13) - 2);
  }
  c.affine = {1000, 12.5};
  const StudentMixture mixture = c.mixture();
  const MixtureCdf exact(mixture);
  const std::array<double, 14> found = {exact.mean(),
                                        mixture.variance(),
                                        exact.quantile(1e-6),
                                        exact.quantile(0.1),
                                        exact.quantile(0.25),
                                        exact.quantile(0.5),
                                        exact.quantile(0.9),
                                        exact.quantile(0.999),
                                        exact.cdf(950),
                                        exact.cdf(1007.5),
                                        exact.survival(1100),
                                        exact.pdf(1001.25),
                                        exact.partial_mean(990, 1010),
                                        exact.trimmed_mean(0.1, 0.1)};
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(found[i]), kBits[i])
        << "value " << i << ", " << found[i] << ", is 0x" << std::hex
        << std::bit_cast<std::uint64_t>(found[i]);
  }
  // And the numbers are the right ones.
  const std::array<double, 6> levels = {1e-6, 0.1, 0.25, 0.5, 0.9, 0.999};
  for (std::size_t i = 0; i < levels.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(oracle(c, found[2 + i], false)), levels[i], 1e-12);
  }
  EXPECT_NEAR(found[8], static_cast<double>(oracle(c, 950, false)), 1e-12);
  EXPECT_NEAR(found[9], static_cast<double>(oracle(c, 1007.5, false)), 1e-12);
  EXPECT_NEAR(found[10], static_cast<double>(oracle(c, 1100, true)), 1e-12);
}

}  // namespace
}  // namespace toto
