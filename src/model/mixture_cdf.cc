#include "model/mixture_cdf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>

#include "base/elementary.h"

namespace toto {
namespace {

constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kTolerance = 1e-12;  // of |cdf - p|, relative to the smaller of p and 1 - p

// Maps doubles to integers of the same order.
constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
std::uint64_t to_ordered(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}
double from_ordered(std::uint64_t key) noexcept {
  return std::bit_cast<double>((key & kSignBit) != 0 ? key & ~kSignBit : ~key);
}

double next_double(double x, bool upwards) noexcept {
  return from_ordered(upwards ? to_ordered(x) + 1 : to_ordered(x) - 1);
}

// The double in the middle of all doubles between two: halves the number of candidates at any
// magnitude.
double middle_double(double low, double high) noexcept {
  const std::uint64_t first = to_ordered(low);
  return from_ordered(first + (to_ordered(high) - first) / 2);
}

// Standard normal quantile of 1 - tail for tail <= 1/2, to 4.5e-4: Abramowitz and Stegun, 26.2.23.
double normal_quantile(double tail) noexcept {
  const double t = std::sqrt(-2.0 * elementary::log(tail));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

// Taylor expansion of the distribution function around a point, to the third order.
struct Expansion {
  double residual;  // cdf - p
  double density, slope, bend;

  // Householder's third-order step to the root.
  double step() const noexcept {
    const double n = residual / density;
    const double c1 = slope / density;
    const double c2 = bend / density;
    return -n * (1.0 - 0.5 * n * c1) / (1.0 - n * c1 + n * n * c2 * (1.0 / 6.0));
  }

  double residual_after(double step) const noexcept {
    return residual + step * (density + step * (0.5 * slope + step * (bend * (1.0 / 6.0))));
  }
};

}  // namespace

MixtureCdf::MixtureCdf(const StudentMixture& mixture) noexcept : mixture_(mixture) {
  if (!mixture.valid()) return;
  const auto weights = mixture.weights();
  const std::size_t count = weights.size();
  const std::size_t num_blocks = student_blocks(count);
  static_assert(std::is_trivial_v<StudentLanes> && alignof(StudentLanes) == alignof(double));
  auto* lanes = new (mixture.cdf_workspace().data()) StudentLanes[num_blocks];
  for (std::size_t block = 0; block < num_blocks; ++block) {
    StudentComponents components;
    for (std::size_t lane = 0; lane < kStudentLanes; ++lane) {
      const std::size_t i = block * kStudentLanes + lane;
      const bool used = i < count;
      components.weight[lane] = used ? weights[i] : 0.0;
      components.df[lane] = used ? mixture.df()[i] : 2.0;
      components.loc[lane] = used ? mixture.loc()[i] : 0.0;
      components.scale[lane] = used ? mixture.scale()[i] : 1.0;
    }
    prepare_lanes(components, lanes[block]);
  }
  blocks_ = {lanes, num_blocks};

  center_ = mixture.network_mean();
  double variance = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double df = mixture.df()[i];
    const double scale = mixture.scale()[i];
    const double offset = mixture.loc()[i] - center_;
    // df / (df - 1.1) matches the 10 % and 90 % quantiles, which the variance does not.
    variance += weights[i] * (offset * offset + scale * scale * (df / (df - 1.1)));
    // |f'''| of the standard Student-T is at most 1.0078, which df = 2 attains.
    const double curvature = 1.0 / (scale * scale);
    roughness_ += 1.01 * weights[i] * curvature * curvature;
  }
  spread_ = std::sqrt(variance);
}

double MixtureCdf::to_network(double y) const noexcept {
  return (y - mixture_.affine().shift) / mixture_.affine().stretch;
}

double MixtureCdf::standard_deviation() const noexcept { return std::sqrt(mixture_.variance()); }

double MixtureCdf::cdf(double y) const noexcept {
  if (!mixture_.valid() || std::isnan(y)) return kNan;
  if (std::isinf(y)) return y < 0 ? 0.0 : 1.0;
  return evaluate_mixture(blocks_, to_network(y)).below;
}

double MixtureCdf::survival(double y) const noexcept {
  if (!mixture_.valid() || std::isnan(y)) return kNan;
  if (std::isinf(y)) return y < 0 ? 1.0 : 0.0;
  return evaluate_mixture(blocks_, to_network(y)).above;
}

double MixtureCdf::pdf(double y) const noexcept {
  if (!mixture_.valid() || std::isnan(y)) return kNan;
  if (std::isinf(y)) return 0.0;
  return evaluate_mixture(blocks_, to_network(y)).density / mixture_.affine().stretch;
}

MixtureCdf::TailLevel MixtureCdf::level_below(double p) noexcept {
  return p <= 0.5 ? TailLevel{p, false} : TailLevel{1.0 - p, true};
}

MixtureCdf::TailLevel MixtureCdf::level_above(double p) noexcept {
  return p <= 0.5 ? TailLevel{p, true} : TailLevel{1.0 - p, false};
}

double MixtureCdf::quantile(double p) const noexcept {
  if (!mixture_.valid() || !(p > 0.0 && p < 1.0)) return kNan;
  return mixture_.affine().shift + mixture_.affine().stretch * network_quantile(level_below(p));
}

// Householder steps inside a bracket that always shrinks; see the loop for why it ends.
double MixtureCdf::network_quantile(const TailLevel& level) const noexcept {
  const auto [tail, upper] = level;
  const double sign = upper ? 1.0 : -1.0;
  const double tolerance = kTolerance * tail;
  // Bracket: where every component is below the level, the mixture is, too. |T| shrinks as df
  // grows, so no component's quantile is further out than that of df = 2, which has a closed form.
  const double outer = sign * (1.0 - 2.0 * tail) / std::sqrt(2.0 * tail * (1.0 - tail));
  double low = kMax;
  double high = -kMax;
  for (std::size_t i = 0; i < mixture_.weights().size(); ++i) {
    const double edge = mixture_.loc()[i] + mixture_.scale()[i] * outer;
    low = std::min({low, edge, mixture_.loc()[i]});
    high = std::max({high, edge, mixture_.loc()[i]});
  }
  low = std::max(next_double(low, false), -kMax);  // the edges were rounded
  high = std::min(next_double(high, true), kMax);

  double x = std::clamp(center_ + sign * spread_ * normal_quantile(tail), low, high);
  double previous = 1.0;
  bool halve_length = true;
  // Each round reduces the residual to a quarter, removes a component from the bracket, or halves
  // the bracket (its length or the doubles in it, in turn), so the loop ends for all parameters;
  // usually after two rounds.
  while (true) {
    const MixtureValue value = evaluate_mixture(blocks_, x);
    const Expansion around{upper ? tail - value.above : value.below - tail, value.density,
                           value.slope, value.bend};
    const double distance = std::abs(around.residual);
    if (distance <= tolerance) return x;
    (around.residual < 0 ? low : high) = x;

    const double step = around.step();
    double next = x + step;
    if (next == x) next = next_double(x, around.residual < 0);  // closes the bracket on the root
    const bool inside = next > low && next < high;
    // Taylor's theorem bounds the residual at `next`: most levels need no evaluation there.
    const double bound = std::abs(around.residual_after(step)) +
                         roughness_ * (1.0 / 24.0) * (step * step) * (step * step);
    if (inside && bound <= tolerance) return next;
    if (inside && distance <= 0.25 * previous) {
      previous = distance;
    } else {
      const double middle = 0.5 * low + 0.5 * high;
      const double component = nearest_component(middle, low, high);
      if (!std::isnan(component)) {
        next = component;  // narrow components are steps of the function: try them first
      } else {
        next = halve_length ? middle : middle_double(low, high);
        halve_length = !halve_length;
      }
      if (!(next > low && next < high)) return high;  // no double left between them
      previous = 1.0;
    }
    x = next;
  }
}

double MixtureCdf::nearest_component(double x, double low, double high) const noexcept {
  double nearest = kNan;
  double distance = kMax;
  for (const double loc : mixture_.loc()) {
    if (loc > low && loc < high && std::abs(loc - x) < distance) {
      nearest = loc;
      distance = std::abs(loc - x);
    }
  }
  return nearest;
}

double MixtureCdf::partial_mean(double low, double high) const noexcept {
  if (!mixture_.valid() || std::isnan(low) || std::isnan(high)) return kNan;
  if (low >= high) return 0.0;
  const auto above = [this](double y) {
    const Affine& affine = mixture_.affine();
    if (std::isinf(y)) return y < 0 ? mixture_.mean() : 0.0;
    const MixtureValue value = evaluate_mixture(blocks_, to_network(y));
    return affine.shift * value.above + affine.stretch * value.mean_above;
  };
  return above(low) - above(high);
}

double MixtureCdf::trimmed_mean(double lower_share, double upper_share) const noexcept {
  if (!mixture_.valid() ||
      !(lower_share >= 0 && upper_share >= 0 && lower_share + upper_share < 1)) {
    return kNan;
  }
  // The integral of the quantile function. If the cut at q misses its level (a jump between two
  // doubles), q times the difference belongs to the other side.
  double kept = mixture_.network_mean();
  if (lower_share > 0) {
    const double q = network_quantile(level_below(lower_share));
    const MixtureValue value = evaluate_mixture(blocks_, q);
    kept = value.mean_above + q * (value.below - lower_share);
  }
  if (upper_share > 0) {
    const double q = network_quantile(level_above(upper_share));
    const MixtureValue value = evaluate_mixture(blocks_, q);
    kept -= value.mean_above + q * (upper_share - value.above);
  }
  return mixture_.affine().shift +
         mixture_.affine().stretch * (kept / (1.0 - lower_share - upper_share));
}

}  // namespace toto
