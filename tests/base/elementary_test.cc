// Accuracy against long double and Boost.Math, behaviour at the edges, and the bits themselves.
#include "base/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace {

namespace elementary = toto::elementary;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr long double kPi = 3.14159265358979323846264338327950288L;

// Distance in units of the last place of the right answer.
double ulps(double found, long double expected) {
  int exponent = 0;
  std::frexp(static_cast<double>(expected), &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 53, -1074));
  return static_cast<double>(std::abs(static_cast<long double>(found) - expected)) / unit;
}

class Elementary : public testing::Test {
 protected:
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }

  static constexpr int kRounds = 300'000;
  std::mt19937_64 engine_{20240601};
};

TEST_F(Elementary, ExpIsWithinTwoUlp) {
  double worst = 0;
  for (int i = 0; i < kRounds; ++i) {
    const double x = i % 2 == 0 ? uniform(-745, 709.7) : uniform(-1, 1);
    worst = std::max(worst, ulps(elementary::exp(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 2);
}

TEST_F(Elementary, ExpInRangeIsExp) {
  for (int i = 0; i < kRounds; ++i) {
    const double x = uniform(-708, 708);
    ASSERT_EQ(elementary::exp_in_range(x), elementary::exp(x)) << x;
  }
}

TEST_F(Elementary, ExpAtTheEdges) {
  EXPECT_EQ(elementary::exp(0.0), 1.0);
  EXPECT_EQ(elementary::exp(-0.0), 1.0);
  EXPECT_EQ(elementary::exp(-746.0), 0.0);
  EXPECT_EQ(elementary::exp(-1e300), 0.0);
  EXPECT_EQ(elementary::exp(-kInfinity), 0.0);
  EXPECT_EQ(elementary::exp(710.0), kInfinity);
  EXPECT_EQ(elementary::exp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(elementary::exp(kNan)));
  EXPECT_GT(elementary::exp(709.78), 1.79e308);
  EXPECT_GT(elementary::exp(-745.0), 0.0);  // a denormal
}

TEST_F(Elementary, HyperbolicSineAndItsInverseAreWithinFourUlp) {
  double worst = 0;
  for (int i = 0; i < kRounds; ++i) {
    const double tiny = uniform(-1, 1) * std::ldexp(1.0, -static_cast<int>(engine_() % 60));
    const double x = i % 3 == 0 ? uniform(-710, 710) : i % 3 == 1 ? uniform(-3, 3) : tiny;
    const double y = i % 3 == 0 ? tiny * 1e150 : x;
    worst = std::max(worst, ulps(elementary::sinh(x), std::sinh(static_cast<long double>(x))));
    worst = std::max(worst, ulps(elementary::asinh(y), std::asinh(static_cast<long double>(y))));
  }
  EXPECT_LT(worst, 4);
  EXPECT_EQ(elementary::sinh(0.0), 0.0);
  EXPECT_EQ(elementary::asinh(0.0), 0.0);
  EXPECT_EQ(elementary::sinh(711.0), kInfinity);
  EXPECT_EQ(elementary::sinh(-kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(elementary::sinh(kNan)));
}

TEST_F(Elementary, Expm1IsWithinThreeUlp) {
  double worst = 0;
  for (int i = 0; i < kRounds; ++i) {
    const double tiny = uniform(-1, 1) * std::ldexp(1.0, -static_cast<int>(engine_() % 60));
    const double x = i % 3 == 0 ? uniform(-40, 708) : i % 3 == 1 ? uniform(-2, 3) : tiny;
    worst = std::max(worst, ulps(elementary::expm1(x), std::expm1(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 3);
  EXPECT_EQ(elementary::expm1(0.0), 0.0);
  EXPECT_EQ(elementary::expm1(1e-300), 1e-300);
}

TEST_F(Elementary, LogIsWithinTwoUlp) {
  double worst = 0;
  for (int i = 0; i < kRounds; ++i) {
    const double x = i % 2 == 0
                         ? std::ldexp(uniform(0.5, 1), static_cast<int>(engine_() % 2098) - 1074)
                         : uniform(0.5, 2);
    if (x == 0) continue;
    worst = std::max(worst, ulps(elementary::log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 2);
}

TEST_F(Elementary, LogAtTheEdges) {
  EXPECT_EQ(elementary::log(1.0), 0.0);
  EXPECT_EQ(elementary::log(0.0), -kInfinity);
  EXPECT_EQ(elementary::log(-0.0), -kInfinity);
  EXPECT_EQ(elementary::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(elementary::log(-1.0)));
  EXPECT_TRUE(std::isnan(elementary::log(kNan)));
  EXPECT_NEAR(elementary::log(std::numeric_limits<double>::denorm_min()), -744.4400719213812,
              1e-12);
}

TEST_F(Elementary, Log1pIsWithinTwoUlp) {
  double worst = 0;
  for (int i = 0; i < kRounds; ++i) {
    const double x = i % 2 == 0
                         ? uniform(-0.5, 3)
                         : std::ldexp(uniform(0.5, 1), static_cast<int>(engine_() % 2000) - 1000);
    const double one = 1.0 + x;
    worst = std::max(worst, ulps(elementary::log1p_given(x, one, 1.0 / one),
                                 std::log1p(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 2);
}

TEST_F(Elementary, SinQuarterIsWithinFiveUlp) {
  double worst = 0;
  for (int i = 0; i < kRounds; ++i) {
    const double x = i % 2 == 0 ? uniform(0, 1) : uniform(0, 1e-6);
    worst = std::max(worst, ulps(elementary::sin_quarter(x), std::sin(x * (kPi / 2))));
  }
  EXPECT_LT(worst, 5);
  EXPECT_EQ(elementary::sin_quarter(0.0), 0.0);
  EXPECT_NEAR(elementary::sin_quarter(1.0), 1.0, 4e-16);
}

TEST_F(Elementary, CosTurnCoversTheCircle) {
  for (int i = 0; i < kRounds; ++i) {
    const auto turn = static_cast<std::uint32_t>(engine_());
    const long double angle = 2 * kPi * (turn + 0.5L) / 4294967296.0L;
    ASSERT_NEAR(elementary::cos_turn(turn), static_cast<double>(std::cos(angle)), 5e-16) << turn;
  }
  // Exact reflections: the reduction is in integers.
  for (const std::uint32_t turn : {0u, 1u, 12345u, 0x3fffffffu}) {
    const double value = elementary::cos_turn(turn);
    EXPECT_EQ(elementary::cos_turn(0x7fffffffu - turn), -value);
    EXPECT_EQ(elementary::cos_turn(0x80000000u + turn), -value);
    EXPECT_EQ(elementary::cos_turn(0xffffffffu - turn), value);
  }
}

TEST_F(Elementary, ErfcxIsWithinEightUlp) {
  double worst = 0;
  for (int i = 0; i < kRounds / 10; ++i) {
    const long double x = i % 2 == 0 ? uniform(0, 26) : uniform(0, 2);
    const long double expected = boost::math::erfc(x) * std::exp(x * x);
    worst = std::max(worst, ulps(elementary::erfcx(static_cast<double>(x)), expected));
  }
  EXPECT_LT(worst, 8);
  EXPECT_EQ(elementary::erfcx(0.0), 1.0);
  EXPECT_NEAR(elementary::erfcx(1e16) * 1e16, 1 / std::sqrt(static_cast<double>(kPi)), 1e-6);
}

// Computed once; any CPU, compiler or optimisation level must give the same.
TEST_F(Elementary, TheSameBitsEverywhere) {
  struct Case {
    double argument;
    std::array<std::uint64_t, 6> bits;  // exp(-x), expm1(x), log(x), log(1 + x), sin, erfcx
  };
  constexpr std::array<Case, 6> kCases = {{
      {1e-09,
       {
           0x3fefffffff768fa1,
           0x3e112e0be84bbb51,
           0xc034b927f32bffb8,
           0x3e112e0be801f1d9,
           0x3e1afc6f6fad5463,
           0x3fefffffff64eab0,
       }},
      {0.037,
       {
           0x3feed66f55a850ba,
           0x3fa34c7fe7931d11,
           0xc00a5fec44e53783,
           0x3fa29a193fd614c3,
           0x3facae2fa05fac8b,
           0x3feeb4e4db4bab7c,
       }},
      {0.5,
       {
           0x3fe368b2fc6f960a,
           0x3fe4c2531c3c0d38,
           0xbfe62e42fefa39ef,
           0x3fd9f323ecbf984c,
           0x3fdffffffffffffe,
           0x3fe3b3bc3c98b0f4,
       }},
      {1.7,
       {
           0x3fc7622c78a98a07,
           0x4011e552770df8a6,
           0x3fe0fae81914a991,
           0x3fefc8b7f138bde9,
           0x3feabc50ef4734a6,
           0x3fd2aa9c889874dd,
       }},
      {12.345,
       {
           0x3ed240572f47cb82,
           0x410c0d78ffb740c4,
           0x40041b236798645f,
           0x4004baa88b05578c,
           0x3fefc750e077982b,
           0x3fa752c5cf3d2ed3,
       }},
      {321,
       {
           0x22fdc064289898e4,
           0x5ce1358e212351ef,
           0x401715f4a96a881e,
           0x401719240a54b7cc,
           0x3fefffe70bf803df,
           0x3f5ccbdf6adaa9a2,
       }},
  }};
  for (const auto& [x, bits] : kCases) {
    const double one = 1.0 + x;
    const double turn = x / one;  // inside (0, 1)
    const std::array<double, 6> found = {elementary::exp(-x),
                                         elementary::expm1(x),
                                         elementary::log(x),
                                         elementary::log1p_given(x, one, 1.0 / one),
                                         elementary::sin_quarter(turn),
                                         elementary::erfcx(x)};
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(found[i]), bits[i])
          << "function " << i << " of " << x << " is 0x" << std::hex
          << std::bit_cast<std::uint64_t>(found[i]);
    }
  }
}

}  // namespace
