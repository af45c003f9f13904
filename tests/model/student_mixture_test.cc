// Weights, moments and draws of the predicted mixture; mixture_cdf_test.cc tests the quantiles.
#include "model/student_mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "mixture_case.h"

namespace toto {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kDraws = 1'000'000;

// Boost's Student-T without its detour through long double, which would take a quarter of a minute.
using Oracle = boost::math::students_t_distribution<
    double, boost::math::policies::policy<boost::math::policies::promote_double<false>>>;

using Case = MixtureCase;

Case three_components() {
  return {{3.5, 5.0, 40.0}, {-1.0, 0.5, 2.0}, {0.4, 1.0, 0.2}, {0.3, 1.0, -0.5}, {10.0, 2.5}, {}};
}

std::vector<double> draws_of(const StudentMixture& mixture, std::uint64_t seed,
                             std::uint32_t count = kDraws) {
  std::vector<double> draws(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    draws[i] = mixture.sample(random_words({.seed = seed, .sample = i % 1000, .step = i / 1000}));
  }
  return draws;
}

// sup |empirical - F| sqrt(n); above 2.225 the p-value of Kolmogorov and Smirnov is below 1e-4.
template <typename Cdf>
double kolmogorov_smirnov(const std::vector<double>& sorted, const Cdf& cdf) {
  const auto n = static_cast<double>(sorted.size());
  double worst = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double f = cdf(sorted[i]);
    worst = std::max({worst, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  return worst * std::sqrt(n);
}

static_assert(noexcept(std::declval<StudentMixture>().sample({})));
static_assert(noexcept(std::declval<StudentMixture>().mean()));
static_assert(noexcept(std::declval<StudentMixture>().variance()));

TEST(StudentMixture, WeightsAreTheSoftmax) {
  Case c{{3, 3, 3, 3}, {0, 0, 0, 0}, {1, 1, 1, 1}, {1.5F, -0.25F, 0, 2}, {}, {}};
  const StudentMixture mixture = c.mixture();
  ASSERT_TRUE(mixture.valid());
  long double total = 0;
  for (const float logit : c.logits) total += std::exp(static_cast<long double>(logit));
  for (std::size_t i = 0; i < 4; ++i) {
    const long double expected = std::exp(static_cast<long double>(c.logits[i])) / total;
    EXPECT_NEAR(mixture.weights()[i], static_cast<double>(expected), 1e-15);
  }
}

TEST(StudentMixture, SoftmaxSurvivesEnormousLogits) {
  Case c{{3, 3, 3}, {1, 2, 4}, {1, 1, 1}, {3e38F, -3e38F, 3e38F}, {}, {}};
  const StudentMixture mixture = c.mixture();
  ASSERT_TRUE(mixture.valid());
  EXPECT_EQ(mixture.weights()[0], 0.5);
  EXPECT_EQ(mixture.weights()[1], 0.0);
  EXPECT_EQ(mixture.mean(), 2.5);
}

TEST(StudentMixture, TinyWeightsAreKept) {
  Case c{{3, 3}, {0, 1}, {1, 1}, {0, -690}, {}, {}};
  EXPECT_NEAR(c.mixture().weights()[1] / static_cast<double>(std::exp(-690.0L)), 1.0, 1e-13);
}

TEST(StudentMixture, OneComponentNeedsNoLogits) {
  Case c{{4}, {1.5F}, {2}, {}, {100, 10}, {}};
  const StudentMixture mixture = c.mixture();
  EXPECT_EQ(mixture.weights()[0], 1.0);
  EXPECT_EQ(mixture.mean(), 115.0);
  EXPECT_EQ(mixture.variance(), 800.0);  // 100 * 4 * 4 / 2
}

TEST(StudentMixture, MomentsAreThoseOfTheComponents) {
  Case c = three_components();
  const StudentMixture mixture = c.mixture();
  long double mean = 0, second = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const boost::math::students_t_distribution<long double> t(c.df[i]);
    const long double w = mixture.weights()[i], loc = c.loc[i], scale = c.scale[i];
    mean += w * loc;
    second += w * (loc * loc + scale * scale * variance(t));
  }
  EXPECT_NEAR(mixture.mean(), static_cast<double>(10 + 2.5L * mean), 1e-14);
  EXPECT_NEAR(mixture.variance(), static_cast<double>(6.25L * (second - mean * mean)), 1e-13);
}

// A float32 network that clamps softplus to its epsilon says 2 + 1.2e-7, which rounds to 2.
TEST(StudentMixture, DfOfTwoHasAMeanAndAnInfiniteVariance) {
  Case c{{2, 5}, {1, 3}, {1, 1}, {0, 0}, {}, {}};
  EXPECT_EQ(c.mixture().mean(), 2.0);
  EXPECT_EQ(c.mixture().variance(), kInfinity);
  c.logits = {-3e38F, 0};  // of weight 0 it does not count
  EXPECT_NEAR(c.mixture().variance(), 5.0 / 3, 1e-15);
}

TEST(StudentMixture, InvalidParametersGiveNan) {
  using Breaker = void (*)(Case&);
  const std::vector<Breaker> breakers = {
      [](Case& c) { c.df[1] = kNan; },
      [](Case& c) { c.df[1] = kInfinity; },
      [](Case& c) { c.df[1] = 1.999; },
      [](Case& c) { c.df[1] = -3; },
      [](Case& c) { c.loc[2] = kNan; },
      [](Case& c) { c.loc[2] = -kInfinity; },
      [](Case& c) { c.loc[2] = 1e200; },
      [](Case& c) { c.scale[0] = kNan; },
      [](Case& c) { c.scale[0] = kInfinity; },
      [](Case& c) { c.scale[0] = 0; },
      [](Case& c) { c.scale[0] = -1; },
      [](Case& c) { c.scale[0] = 1e-200; },
      [](Case& c) { c.logits[1] = kNan; },
      [](Case& c) { c.logits[1] = kInfinity; },
      [](Case& c) { c.logits[1] = -kInfinity; },
      [](Case& c) { c.affine.shift = kNan; },
      [](Case& c) { c.affine.stretch = kInfinity; },
      [](Case& c) { c.affine.stretch = 0; },
      [](Case& c) { c.affine.stretch = -1; },
      [](Case& c) { c.df = c.loc = c.scale = c.logits = {}; },
  };
  for (std::size_t i = 0; i < breakers.size(); ++i) {
    SCOPED_TRACE(i);
    Case c = three_components();
    breakers[i](c);
    const StudentMixture mixture = c.mixture();
    const MixtureCdf exact(mixture);
    EXPECT_FALSE(mixture.valid());
    for (const double value :
         {mixture.mean(), mixture.variance(), mixture.sample(random_words({})), exact.mean(),
          exact.standard_deviation(), exact.cdf(0), exact.survival(0), exact.pdf(0),
          exact.quantile(0.5), exact.partial_mean(0, 1), exact.trimmed_mean(0.1, 0.1)}) {
      EXPECT_TRUE(std::isnan(value));
    }
  }
}

TEST(Sampling, WordsAreUsedAsDocumented) {
  // Component by the low 11 bits of word 2 and word 3: the first and the last possible place.
  Case c{{3, 3, 3}, {-1e6, 0, 1e6}, {1, 1, 1}, {-20, 0, -20}, {}, {}};
  const StudentMixture mixture = c.mixture();
  EXPECT_NEAR(mixture.sample({0, 0x80000000, 0, 0}), -1e6, 100);
  EXPECT_NEAR(mixture.sample({0, 0x80000000, 0x400, 0}), 0, 100);
  EXPECT_NEAR(mixture.sample({0, 0x80000000, 0x7ff, 0xffffffff}), 1e6, 100);
  // Angle by word 0: half a turn changes the sign.
  Case one{{3}, {0}, {1}, {}, {}, {}};
  EXPECT_EQ(one.mixture().sample({5, 1, 2, 3}), -one.mixture().sample({0x80000005, 1, 2, 3}));
  // Radius by word 1 and the high 21 bits of word 2: the extremes are finite.
  EXPECT_GT(one.mixture().sample({0, 0, 0, 0}), 1e5);
  EXPECT_NEAR(one.mixture().sample({0, 0xffffffff, 0xffffffff, 0}), 0, 1e-7);
}

TEST(Sampling, ChoosesComponentsByWeight) {
  std::vector<double> loc(24), logits(24), df(24, 5.0), scale(24, 1e-3);
  for (int i = 0; i < 24; ++i) {
    loc[i] = i;
    logits[i] = 0.13 * ((i * 7) % 24) - 1;
  }
  Case c{df, loc, scale, logits, {}, {}};
  const StudentMixture mixture = c.mixture();
  std::vector<int> counts(24);
  for (const double draw : draws_of(mixture, 11)) {
    ++counts[static_cast<std::size_t>(std::clamp(std::lround(draw), 0L, 23L))];
  }
  for (std::size_t i = 0; i < 24; ++i) {
    const double p = mixture.weights()[i];
    EXPECT_NEAR(counts[i], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p))) << i;
  }
}

TEST(Sampling, FollowsTheDistributionByKolmogorovSmirnov) {
  Case c = three_components();
  const StudentMixture mixture = c.mixture();
  const MixtureCdf exact(mixture);
  std::vector<double> draws = draws_of(mixture, 2024);
  std::ranges::sort(draws);
  EXPECT_LT(kolmogorov_smirnov(draws, [&](double y) { return exact.cdf(y); }), 2.225);
  const auto oracle = [&](double y) {
    double f = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const Oracle t(c.df[i]);
      f += mixture.weights()[i] * cdf(t, ((y - 10) / 2.5 - c.loc[i]) / c.scale[i]);
    }
    return f;
  };
  EXPECT_LT(kolmogorov_smirnov(draws, oracle), 2.225);
  // The test can fail: the neighbouring distribution does.
  EXPECT_GT(kolmogorov_smirnov(draws, [&](double y) { return exact.cdf(y + 0.02); }), 2.225);
}

TEST(Sampling, FollowsEveryKindOfTail) {
  for (const double df : {2.0, 2.0 + 2.4e-7, 2.7, 30.0, 1e6, 1e30}) {
    SCOPED_TRACE(df);
    Case c{{df}, {0}, {1}, {}, {}, {}};
    const StudentMixture mixture = c.mixture();
    const MixtureCdf exact(mixture);
    std::vector<double> draws = draws_of(mixture, 5, 200'000);
    std::ranges::sort(draws);
    EXPECT_LT(kolmogorov_smirnov(draws, [&](double y) { return exact.cdf(y); }), 2.225);
    // Far out, where Kolmogorov and Smirnov see nothing: 100 draws expected on either side.
    const double far = exact.quantile(1 - 5e-4);
    EXPECT_NEAR(std::ranges::count_if(draws, [&](double y) { return y > far; }), 100, 50);
    EXPECT_NEAR(std::ranges::count_if(draws, [&](double y) { return y < -far; }), 100, 50);
  }
}

TEST(Sampling, AgreesWithTheExactMomentsAndQuantiles) {
  Case c{{9, 12, 40}, {-1, 0.5, 2}, {0.4, 1, 0.2}, {0.3, 1, -0.5}, {-3, 0.5}, {}};
  const StudentMixture mixture = c.mixture();
  const MixtureCdf exact(mixture);
  const std::vector<double> draws = draws_of(mixture, 99);
  double mean = 0, square = 0, fourth = 0;
  for (const double y : draws) mean += y / kDraws;
  for (const double y : draws) {
    const double d = (y - mean) * (y - mean);
    square += d / kDraws;
    fourth += d * d / kDraws;
  }
  EXPECT_NEAR(mean, exact.mean(), 4 * std::sqrt(mixture.variance() / kDraws));
  EXPECT_NEAR(square, mixture.variance(), 4 * std::sqrt((fourth - square * square) / kDraws));
  for (const double p : {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999}) {
    const double q = exact.quantile(p);
    const auto below = std::ranges::count_if(draws, [&](double y) { return y <= q; });
    EXPECT_NEAR(below, kDraws * p, 4 * std::sqrt(kDraws * p * (1 - p))) << p;
  }
}

// Computed once; any CPU, compiler or optimisation level must give the same.
TEST(Sampling, TheSameBitsEverywhere) {
  Case c = three_components();
  const StudentMixture mixture = c.mixture();
  constexpr std::array<std::uint64_t, 8> kBits = {
      0x4019d2121d85f727, 0x401c0824a7320ab6, 0x402f41f331aa36d0, 0x40207be4093c6eb3,
      0x401d0923f7bb12e2, 0x40228ee04dc13b74, 0x402914f063552f84, 0x402aff7acb369740};
  for (std::uint32_t i = 0; i < kBits.size(); ++i) {
    const double found = mixture.sample(random_words({.seed = 42, .variate = i, .sample = 7 * i}));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(found), kBits[i])
        << "draw " << i << " is 0x" << std::hex << std::bit_cast<std::uint64_t>(found);
    // And the number is the right one: the same words through the C library's functions.
    const RandomWords words = random_words({.seed = 42, .variate = i, .sample = 7 * i});
    const double place = std::ldexp((words[2] & 0x7ff) * 4294967296.0 + words[3] + 0.5, -43);
    std::size_t k = 0;
    for (double sum = mixture.weights()[0]; sum <= place; sum += mixture.weights()[++k]) {
    }
    const double u = std::ldexp(words[1] * 2097152.0 + (words[2] >> 11), -53);
    const double t = std::sqrt(c.df[k] * std::expm1(-2 / c.df[k] * std::log(u))) *
                     std::cos(2 * std::numbers::pi * (words[0] + 0.5) / 4294967296.0);
    EXPECT_NEAR(found, 10 + 2.5 * (c.loc[k] + c.scale[k] * t), 1e-12 * std::abs(found));
  }
}

}  // namespace
}  // namespace toto
