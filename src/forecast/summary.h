// Summary numbers of a distribution, exact or sampled.
#pragma once

#include <span>

#include "model/step_distribution.h"
#include "toto/toto.h"

namespace toto {

// The sampled values of one step. Sums run in double in a fixed order; nothing is allocated. If
// there is no value or one is NaN, every result is NaN.
class SampleSummary {
 public:
  // Sums `values` in the order given, then sorts them in place and keeps the view.
  explicit SampleSummary(std::span<float> values) noexcept;

  double mean() const noexcept { return mean_; }
  double standard_deviation() const noexcept;  // divides by n, as numpy.std
  // Linear interpolation between order statistics at p (n - 1), as torch.quantile and NumPy do it;
  // p in [0, 1], NaN otherwise.
  double quantile(double p) const noexcept;
  // The mean without floor(share n) values at either end; lower + upper < 1, NaN otherwise.
  double trimmed_mean(double lower_share, double upper_share) const noexcept;

 private:
  std::span<const float> sorted_;
  double mean_;
};

double point_of(const Point& point, const SampleSummary& samples) noexcept;
double point_of(const Point& point, const StepDistribution& distribution) noexcept;

// Error(invalid_argument) for a level, share, weight or count out of its range.
void check_point(const Point& point);

}  // namespace toto
