// From a distribution, exact or sampled, to the numbers of a forecast.
#pragma once

#include <span>

#include "model/step_distribution.h"
#include "toto/toto.h"

namespace toto {

// The sampled values of one step: sums in double in a fixed order, nothing allocated. A NaN among
// the values, or none at all, makes every result NaN.
class SampleSummary {
 public:
  // Sums `values` in the order given, then sorts them in place and keeps the view.
  explicit SampleSummary(std::span<float> values) noexcept;

  double mean() const noexcept { return mean_; }
  double standard_deviation() const noexcept;  // n below the line, as numpy.std
  // Linear interpolation between order statistics at p (n - 1), as torch.quantile and NumPy do it;
  // p in [0, 1], NaN otherwise.
  double quantile(double p) const noexcept;
  // The mean after floor(share n) values are cut from either end; lower + upper < 1, NaN otherwise.
  double trimmed_mean(double lower_share, double upper_share) const noexcept;

 private:
  std::span<const float> sorted_;
  double mean_;
};

double point_of(const Point& point, const SampleSummary& samples) noexcept;
double point_of(const Point& point, const StepDistribution& distribution) noexcept;

// Refuses a level, share, weight or count out of its range: Error(invalid_argument).
void check_point(const Point& point);

}  // namespace toto
