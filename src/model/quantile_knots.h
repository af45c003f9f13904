// The distribution of one step predicted by a network with quantile outputs: one value per level.
#pragma once

#include <span>

#include "base/random.h"

namespace toto {

// The distribution whose quantile function passes through the knots: linear between two levels,
// with exponential tails outside (as GluonTS: linear in log p through the two outer levels). A view
// of the caller's memory: copies are cheap. All results are NaN unless valid().
class QuantileKnots {
 public:
  // `levels` increase inside (0, 1) and outlive this. `values`, one per level, are sorted in place:
  // crossing quantiles are rounding errors of the network.
  QuantileKnots(std::span<const double> levels, std::span<double> values) noexcept;

  bool valid() const noexcept { return valid_; }          // at least one level, every value finite
  double mean() const noexcept { return quantile(0.5); }  // the median, as leaderboards take it
  double quantile(double p) const noexcept;               // p inside (0, 1), NaN otherwise
  // The mean after a share of the probability is cut from either end; lower + upper < 1.
  double trimmed_mean(double lower_share, double upper_share) const noexcept;
  double standard_deviation() const noexcept;
  // Inverse transform sampling; draws of different steps are independent.
  double sample(const RandomWords& words) const noexcept;

 private:
  struct Moments {
    double first = 0, second = 0;  // integrals of the quantile function and its square
  };
  Moments integral(double from, double to) const noexcept;

  std::span<const double> levels_;
  std::span<const double> values_;
  double lower_slope_ = 0, upper_slope_ = 0;  // of the tails, per unit of log p
  bool valid_ = false;
};

}  // namespace toto
