// Exact distribution function, quantiles and trimmed means of a predicted mixture.
#pragma once

#include <cstddef>
#include <span>

#include "model/student_lanes.h"
#include "model/student_mixture.h"

namespace toto {

// Uses the workspace of the mixture, so only one at a time per workspace; const calls are
// thread-safe. A result depends only on the mixture and the arguments, not on earlier calls, and is
// NaN if the mixture is not valid(). Points y are in the units of the data.
class MixtureCdf {
 public:
  explicit MixtureCdf(const StudentMixture& mixture) noexcept;

  double mean() const noexcept { return mixture_.mean(); }
  double standard_deviation() const noexcept;  // +Inf if a component has df == 2

  double cdf(double y) const noexcept;
  double survival(double y) const noexcept;  // 1 - cdf(y), accurate where it is small
  double pdf(double y) const noexcept;

  // A point y with |cdf(y) - p| <= 1e-12 min(p, 1 - p), for p inside (0, 1); NaN otherwise. If a
  // component is so narrow that no double satisfies it, a double next to the root.
  double quantile(double p) const noexcept;

  // E[Y; low < Y <= high]: the part of the mean between the bounds, which may be infinite.
  double partial_mean(double low, double high) const noexcept;

  // The mean after a share of the probability is cut from either end; lower + upper < 1, NaN
  // otherwise.
  double trimmed_mean(double lower_share, double upper_share) const noexcept;

 private:
  // A level as the probability of the nearer tail, which 1 - (1 - tail) would round.
  struct TailLevel {
    double tail;  // in (0, 1/2]
    bool upper;   // the tail is the mass above
  };
  static TailLevel level_below(double p) noexcept;
  static TailLevel level_above(double p) noexcept;

  double network_quantile(const TailLevel& level) const noexcept;
  // The component's location inside (low, high) that is nearest to x, or NaN.
  double nearest_component(double x, double low, double high) const noexcept;
  double to_network(double y) const noexcept;

  StudentMixture mixture_;
  std::span<const StudentLanes> blocks_;
  double center_ = 0, spread_ = 0;  // of the first guess, in the network's space
  double roughness_ = 0;            // a bound on the third derivative of the density
};

}  // namespace toto
