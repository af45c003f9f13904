// The predicted distribution of one step, for any kind of head: a mixture of Student-T
// distributions or quantiles at fixed levels.
#pragma once

#include <optional>
#include <variant>

#include "model/mixture_cdf.h"
#include "model/quantile_knots.h"
#include "model/student_mixture.h"

namespace toto {

// A view of the caller's memory: one at a time per memory. Not thread-safe. All results are NaN
// unless valid().
class StepDistribution {
 public:
  explicit StepDistribution(const StudentMixture& mixture) noexcept : kind_(mixture) {}
  explicit StepDistribution(const QuantileKnots& knots) noexcept : kind_(knots) {}

  bool valid() const noexcept {
    return std::visit([](const auto& kind) { return kind.valid(); }, kind_);
  }
  // The mixture, or null if it is of another kind.
  const StudentMixture* mixture() const noexcept { return std::get_if<StudentMixture>(&kind_); }
  double mean() const noexcept {
    return std::visit([](const auto& kind) { return kind.mean(); }, kind_);
  }
  // One draw from one Philox block; uses a fixed number of random words.
  double sample(const RandomWords& words) const noexcept {
    return std::visit([&](const auto& kind) { return kind.sample(words); }, kind_);
  }
  double quantile(double p) const noexcept {
    return with_quantiles([p](const auto& kind) { return kind.quantile(p); });
  }
  double trimmed_mean(double lower_share, double upper_share) const noexcept {
    return with_quantiles(
        [=](const auto& kind) { return kind.trimmed_mean(lower_share, upper_share); });
  }
  double standard_deviation() const noexcept {
    return with_quantiles([](const auto& kind) { return kind.standard_deviation(); });
  }

 private:
  // Preparing a mixture's distribution function costs more than a draw, so it is done on first use.
  template <typename Ask>
  double with_quantiles(const Ask& ask) const noexcept {
    if (const auto* knots = std::get_if<QuantileKnots>(&kind_)) return ask(*knots);
    if (!cdf_) cdf_.emplace(std::get<StudentMixture>(kind_));
    return ask(*cdf_);
  }

  std::variant<StudentMixture, QuantileKnots> kind_;
  mutable std::optional<MixtureCdf> cdf_;
};

}  // namespace toto
