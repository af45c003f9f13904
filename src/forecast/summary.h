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

// The point of a distribution or of samples. The names follow the Python code that users apply to
// Toto's samples: lower_trimmed_mean cuts the upper end, and the weight of a mix is that of the
// mean.
template <typename Distribution>
double point_of(const Point& point, const Distribution& distribution) noexcept {
  switch (point.kind) {
    case Point::Kind::mean:
      return distribution.mean();
    case Point::Kind::median:
      return distribution.quantile(0.5);
    case Point::Kind::quantile:
      return distribution.quantile(point.a);
    case Point::Kind::trimmed_mean:
      return distribution.trimmed_mean(point.a, point.a);
    case Point::Kind::lower_trimmed_mean:
      return distribution.trimmed_mean(0.0, point.a);
    case Point::Kind::upper_trimmed_mean:
      return distribution.trimmed_mean(point.a, 0.0);
    case Point::Kind::mean_minus_std:
      return distribution.mean() - point.a * distribution.standard_deviation();
    case Point::Kind::mean_plus_std:
      return distribution.mean() + point.a * distribution.standard_deviation();
    case Point::Kind::mean_quantile_mix:
      return point.b * distribution.mean() + (1.0 - point.b) * distribution.quantile(point.a);
    case Point::Kind::quantile_plus_std:
      return distribution.quantile(point.a) + point.b * distribution.standard_deviation();
  }
  return kNan;
}

// Error(invalid_argument) for a level, share, weight or count out of its range.
void check_point(const Point& point);

}  // namespace toto
