#include "model/quantile_knots.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/elementary.h"

namespace toto {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Integrals from 0 to p of log(u / p) and its square.
constexpr double kLogIntegral = -1, kLogSquareIntegral = 2;

}  // namespace

QuantileKnots::QuantileKnots(std::span<const double> levels, std::span<double> values) noexcept
    : levels_(levels), values_(values) {
  valid_ = !values.empty() && levels.size() == values.size() &&
           std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
  if (!valid_) return;
  std::ranges::sort(values);
  const std::size_t last = values.size() - 1;
  if (last == 0) return;
  lower_slope_ = (values[1] - values[0]) / elementary::log(levels[1] / levels[0]);
  upper_slope_ = (values[last] - values[last - 1]) /
                 elementary::log((1 - levels[last - 1]) / (1 - levels[last]));
}

double QuantileKnots::quantile(double p) const noexcept {
  if (!valid_ || !(p > 0.0 && p < 1.0)) return kNotANumber;
  const std::size_t last = levels_.size() - 1;
  if (p <= levels_[0]) return values_[0] + lower_slope_ * elementary::log(p / levels_[0]);
  if (p >= levels_[last]) {
    return values_[last] - upper_slope_ * elementary::log((1 - p) / (1 - levels_[last]));
  }
  const auto above = std::ranges::upper_bound(levels_, p);
  const auto i = static_cast<std::size_t>(above - levels_.begin());
  const double share = (p - levels_[i - 1]) / (levels_[i] - levels_[i - 1]);
  return values_[i - 1] + share * (values_[i] - values_[i - 1]);
}

// Integrates piece by piece; `from` and `to` are in [0, 1].
QuantileKnots::Moments QuantileKnots::integral(double from, double to) const noexcept {
  Moments sum;
  const std::size_t last = levels_.size() - 1;
  // A tail of mass m with values value + slope * log(u / m), where u counts from the far end.
  const auto add_tail = [&](double mass, double value, double slope) {
    sum.first += mass * (value + slope * kLogIntegral);
    sum.second += mass * (value * value + 2 * value * slope * kLogIntegral +
                          slope * slope * kLogSquareIntegral);
  };
  // The part of a tail between u and its knot is the whole tail minus the part further out, which
  // is a tail itself.
  const auto add_part = [&](double mass, double cut, double value, double slope, double sign) {
    const Moments before = sum;
    add_tail(mass, value, slope);
    if (cut > 0) {
      Moments whole = sum;
      sum = {};
      add_tail(cut, value + slope * elementary::log(cut / mass), slope);
      whole.first -= sum.first;
      whole.second -= sum.second;
      sum = whole;
    }
    sum.first = before.first + sign * (sum.first - before.first);
    sum.second = before.second + sign * (sum.second - before.second);
  };
  const double low = levels_[0], high = levels_[last];
  if (from < low) add_part(low, from, values_[0], lower_slope_, 1);
  if (to < low) add_part(low, to, values_[0], lower_slope_, -1);
  if (to > high) add_part(1 - high, 1 - to, values_[last], -upper_slope_, 1);
  if (from > high) add_part(1 - high, 1 - from, values_[last], -upper_slope_, -1);
  for (std::size_t i = 1; i <= last; ++i) {
    const double a = std::max(from, levels_[i - 1]), b = std::min(to, levels_[i]);
    if (a >= b) continue;
    const double slope = (values_[i] - values_[i - 1]) / (levels_[i] - levels_[i - 1]);
    const double x = values_[i - 1] + slope * (a - levels_[i - 1]);
    const double y = values_[i - 1] + slope * (b - levels_[i - 1]);
    sum.first += (b - a) * (x + y) / 2;
    sum.second += (b - a) * (x * x + x * y + y * y) / 3;
  }
  return sum;
}

double QuantileKnots::trimmed_mean(double lower_share, double upper_share) const noexcept {
  if (!valid_ || !(lower_share >= 0 && upper_share >= 0 && lower_share + upper_share < 1)) {
    return kNotANumber;
  }
  return integral(lower_share, 1 - upper_share).first / (1 - lower_share - upper_share);
}

double QuantileKnots::standard_deviation() const noexcept {
  if (!valid_) return kNotANumber;
  const Moments whole = integral(0, 1);
  return std::sqrt(std::max(whole.second - whole.first * whole.first, 0.0));
}

double QuantileKnots::sample(const RandomWords& words) const noexcept {
  const std::uint64_t bits = (std::uint64_t{words[0]} << 20) | (words[1] >> 12);  // 52 of them
  return quantile((static_cast<double>(bits) + 0.5) * 0x1p-52);
}

}  // namespace toto
