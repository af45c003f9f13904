// Elementary functions in double whose results are the same bits on every CPU: only +, -, *, / and
// sqrt, each correctly rounded everywhere, in a fixed order. The C library's versions are not
// (glibc picks FMA variants by CPU). All but log are branch-free: loops over lanes that call them
// vectorise.
//
// The coefficients are Chebyshev fits (erfcx: a rational function through Chebyshev nodes) with an
// error below 2e-16. Errors of the functions, which elementary_test checks: exp, log and
// log1p_given below 2 ulp, expm1 below 3, sinh and asinh below 4, sin_quarter below 5, erfcx
// below 8.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace toto::elementary {

// c[I] + c[I + 2] x2 + c[I + 4] x2^2 + ...
template <std::size_t I, std::size_t N>
constexpr double every_second(const std::array<double, N>& c, double x2) noexcept {
  if constexpr (I + 2 < N) {
    return c[I] + x2 * every_second<I + 2>(c, x2);
  } else {
    return c[I];
  }
}

// c[0] + c[1] x + c[2] x^2 + ..., as two independent Horner chains, which halves the latency.
template <std::size_t N>
constexpr double polynomial(const std::array<double, N>& c, double x) noexcept {
  const double x2 = x * x;
  return every_second<0>(c, x2) + x * every_second<1>(c, x2);
}

inline constexpr double kLn2High = 0x1.62e42fefp-1;  // 33 bits: a product with an exponent is exact
inline constexpr double kLn2Low = 0x1.473de6af278edp-34;
inline constexpr double kRoundToInteger = 0x1.8p52;  // adding and subtracting it rounds

namespace detail {

// 2^exponent for a whole number in [-1022, 1023].
inline double power_of_two(double exponent) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(exponent + kRoundToInteger);
  return std::bit_cast<double>((bits + 1023) << 52);
}

// x = exponent ln 2 + rest with |rest| <= ln(2) / 2, and (e^rest - 1 - rest) / rest^2.
struct ExpParts {
  double exponent;
  double rest;
  double curve;
};

inline ExpParts exp_parts(double x) noexcept {
  constexpr double kLog2E = 1.4426950408889634;
  constexpr std::array<double, 10> kCurve = {0.5000000000000001,     0.16666666666666669,
                                             0.04166666666662413,    0.008333333333330062,
                                             0.0013888888917213717,  0.00019841269863053618,
                                             2.4801521295954376e-05, 2.7557268459997064e-06,
                                             2.7620088445409746e-07, 2.510038549551032e-08};
  const double exponent = (x * kLog2E + kRoundToInteger) - kRoundToInteger;
  const double rest = (x - exponent * kLn2High) - exponent * kLn2Low;
  return {exponent, rest, polynomial(kCurve, rest)};
}

}  // namespace detail

// e^x for |x| <= 708, where nothing under- or overflows.
inline double exp_in_range(double x) noexcept {
  const auto [exponent, rest, curve] = detail::exp_parts(x);
  return (1.0 + (rest + rest * rest * curve)) * detail::power_of_two(exponent);
}

// e^x: 0 below -745.2, +Inf above 709.8, denormal results rounded; NaN gives NaN.
inline double exp(double x) noexcept {
  const double raised = x < -746.0 ? -746.0 : x;  // written so that NaN stays NaN
  const double bounded = raised > 710.0 ? 710.0 : raised;
  const auto [exponent, rest, curve] = detail::exp_parts(bounded);
  // The power is applied in two halves: 2^-1075 and 2^1024 are not doubles.
  const double half = (exponent * 0.5 + kRoundToInteger) - kRoundToInteger;
  const double value = 1.0 + (rest + rest * rest * curve);
  return value * detail::power_of_two(half) * detail::power_of_two(exponent - half);
}

// e^x - 1 for |x| <= 708, without the cancellation near 0.
inline double expm1(double x) noexcept {
  const auto [exponent, rest, curve] = detail::exp_parts(x);
  const double power = detail::power_of_two(exponent);
  return power * (rest + rest * rest * curve) + (power - 1.0);
}

// Natural logarithm of a positive, finite, normal number; anything else gives a meaningless number.
inline double log_of_normal(double x) noexcept {
  constexpr std::array<double, 7> kCurve = {
      0.666666666666667,   0.39999999999899444, 0.2857142862600327, 0.22222211130259878,
      0.18182889455674947, 0.15331710618210773, 0.14616585424888623};
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  constexpr std::uint64_t kOne = 0x3ff0000000000000;
  constexpr std::uint64_t kExponentMask = 0xfff0000000000000;
  // x = 2^exponent m with m in [sqrt(1/2), sqrt(2)).
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t biased = bits - kSqrtHalf + kOne;
  const double m = std::bit_cast<double>(bits - (biased & kExponentMask) + kOne);
  // An integer below 2^52 becomes a double by writing it into the mantissa of 2^52.
  const double exponent =
      std::bit_cast<double>((biased >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double s2 = s * s;
  // log(m) = log((1 + s) / (1 - s)) = f - s (f - s^2 curve(s^2)): f is exact, the rest is small.
  const double rest = s * (f - s2 * polynomial(kCurve, s2));
  return exponent * kLn2High - ((rest - exponent * kLn2Low) - f);
}

// Natural logarithm; -Inf at 0, NaN below.
inline double log(double x) noexcept {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return x;
  const bool denormal = x < std::numeric_limits<double>::min();
  const double result = log_of_normal(denormal ? x * 0x1p54 : x);
  return denormal ? result - 54 * (kLn2High + kLn2Low) : result;
}

// log(1 + x) for -1 < x <= 1e308, given one = 1 + x and 1 / one, which its callers have anyway.
inline double log1p_given(double x, double one, double inverse) noexcept {
  return log_of_normal(one) + (x - (one - 1.0)) * inverse;
}

// Hyperbolic sine; +-Inf beyond 710.4, NaN gives NaN.
inline double sinh(double x) noexcept {
  const double size = std::fabs(x);
  if (!(size <= 700)) return std::copysign(exp(size * 0.5) * (0.5 * exp(size * 0.5)), x);
  const double t = expm1(size);
  return std::copysign(0.5 * (t + t / (t + 1)), x);
}

// Inverse hyperbolic sine of |x| <= 1e150, whose square is a double.
inline double asinh(double x) noexcept {
  const double size = std::fabs(x), square = x * x;
  const double rest = size + square / (1 + std::sqrt(square + 1));  // e^result - 1
  return std::copysign(log1p_given(rest, 1 + rest, 1 / (1 + rest)), x);
}

// sin(pi/2 x) for x in [0, 1].
inline double sin_quarter(double x) noexcept {
  constexpr std::array<double, 9> kCurve = {
      1.5707963267948966,     -0.6459640975062462,    0.07969262624616565,
      -0.004681754135304255,  0.0001604411847130916,  -3.5988430204672576e-06,
      5.6921364280986254e-08, -6.684416831856085e-10, 5.87297574479995e-12};
  return x * polynomial(kCurve, x * x);
}

// cos(2 pi (turn + 1/2) / 2^32): the angle is reduced in integers, so exactly.
inline double cos_turn(std::uint32_t turn) noexcept {
  const std::uint32_t quarter = turn >> 30;
  const double x = ((turn & 0x3fffffff) + 0.5) * 0x1p-30;
  const double magnitude = sin_quarter((quarter & 1) == 0 ? 1.0 - x : x);
  return quarter == 0 || quarter == 3 ? magnitude : -magnitude;
}

// e^(x^2) erfc(x) for x >= 0; beyond 28, where e^(-x^2) is no longer a double, only roughly.
inline double erfcx(double x) noexcept {
  constexpr std::array<double, 10> kNumerator = {1.0,
                                                 2.1941125956434013,
                                                 2.3810407526867627,
                                                 1.6414851078374746,
                                                 0.7845362170000226,
                                                 0.2684862488262954,
                                                 0.06578380715146995,
                                                 0.011165951781495133,
                                                 0.0012004486831096164,
                                                 6.318532733716628e-05};
  constexpr std::array<double, 11> kDenominator = {1.0,
                                                   3.322491762738905,
                                                   5.130071240608221,
                                                   4.859911636772164,
                                                   3.1376416799459186,
                                                   1.4477896892951554,
                                                   0.48571905929444886,
                                                   0.11766263214676599,
                                                   0.019847130775264,
                                                   0.002127739891151503,
                                                   0.00011199307675975602};
  return polynomial(kNumerator, x) / polynomial(kDenominator, x);  // all positive: nothing cancels
}

}  // namespace toto::elementary
