// The average of several predicted mixtures, computed plainly in double for reference mode: the
// mean of their distribution functions, inverted by bisection. model/joined_mixture.h is the fast
// form.
#pragma once

#include <cstddef>
#include <vector>

#include "model/mixture_cdf.h"
#include "model/student_mixture.h"

namespace toto {

// A mixture that owns its parameters.
struct MixtureCopy {
  explicit MixtureCopy(const StudentMixture& mixture);
  std::vector<double> df, loc, scale, logits;
  Affine affine;
};

// Not thread-safe. Needs at least one mixture.
class AveragedMixture {
 public:
  void add(const MixtureCopy& mixture);
  bool empty() const noexcept { return parts_.empty(); }

  double mean() const noexcept;
  double standard_deviation() const noexcept;  // +Inf where a component has df == 2
  double cdf(double y) const noexcept;
  double quantile(double p) const noexcept;  // p inside (0, 1)
  // The mean after a share of the probability is cut from either end.
  double trimmed_mean(double lower_share, double upper_share) const noexcept;

 private:
  template <typename Ask>
  double average(const Ask& ask) const noexcept;

  std::vector<std::vector<double>> memory_;  // that `parts_` look at
  std::vector<MixtureCdf> parts_;
};

}  // namespace toto
