// The distribution of one step as a mixture of Student-T distributions (one component: the plain
// Student-T head), transformed back to the units of the data.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include "base/random.h"
#include "model/student_lanes.h"

namespace toto {

// Result of a distribution that is not valid().
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// y = shift + stretch * x, from the network's units to the data's.
struct Affine {
  double shift = 0;
  double stretch = 1;
};

// The head's outputs for one step, [component] each: df is 2 + softplus, scale is positive, logits
// is empty for a single Student-T (toto/model/distribution.py: MixtureOfStudentTsOutput.forward).
struct MixtureParameters {
  std::span<const double> df, loc, scale, logits;
};

// Weights, moments and draws; model/mixture_cdf.h adds the exact quantiles. A view of the caller's
// workspace: copies are cheap, const calls are thread-safe.
//
// All results are NaN unless valid(), so invalid network outputs never crash or hang a forecast.
class StudentMixture {
 public:
  static constexpr std::size_t workspace_doubles(std::size_t num_components) noexcept {
    return 5 * num_components +
           student_blocks(num_components) * (sizeof(StudentLanes) / sizeof(double));
  }

  // All three spans (four with logits) have the same number of components. The parameters are
  // copied into `workspace`, which has at least workspace_doubles() elements.
  StudentMixture(std::span<double> workspace, const MixtureParameters& parameters,
                 const Affine& affine) noexcept;

  // Everything finite, df >= 2, scale in [1e-150, 1e150], |loc| <= 1e150, stretch > 0.
  bool valid() const noexcept { return valid_; }

  double mean() const noexcept;
  double variance() const noexcept;  // +Inf if a component has df == 2

  // One exact draw from one Philox block: 43 bits for the component, 53 for the radius, 32 for the
  // angle. No rejection, so the number of random words does not depend on the values.
  double sample(const RandomWords& words) const noexcept;

  // Each [component], in the network's units; weights sum to 1, df is at most 1e30 (a Gaussian).
  std::span<const double> weights() const noexcept { return weights_; }
  std::span<const double> df() const noexcept { return df_; }
  std::span<const double> loc() const noexcept { return loc_; }
  std::span<const double> scale() const noexcept { return scale_; }
  double network_mean() const noexcept;  // undefined unless valid()
  const Affine& affine() const noexcept { return affine_; }
  std::span<double> cdf_workspace() const noexcept { return cdf_workspace_; }

 private:
  std::span<double> weights_, cumulative_, df_, loc_, scale_, cdf_workspace_;
  Affine affine_;
  bool valid_ = false;
};

}  // namespace toto
