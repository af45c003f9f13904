#include "forecast/summary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace toto {
namespace {

// floor(share * count) with a tolerance: 0.29 * 100 is slightly below 29 in binary but means 29.
std::size_t share_of(double share, std::size_t count) noexcept {
  return static_cast<std::size_t>(share * static_cast<double>(count) + 1e-9);
}

}  // namespace

SampleSummary::SampleSummary(std::span<float> values) noexcept : mean_(kNan) {
  // NaN has no order: std::sort may read out of bounds.
  if (values.empty() || std::ranges::any_of(values, [](float v) { return std::isnan(v); })) return;
  double total = 0;
  for (const float value : values) total += value;
  mean_ = total / static_cast<double>(values.size());
  std::ranges::sort(values);
  sorted_ = values;
}

double SampleSummary::standard_deviation() const noexcept {
  if (sorted_.empty()) return kNan;
  double total = 0;
  for (const float value : sorted_) total += (value - mean_) * (value - mean_);
  return std::sqrt(total / static_cast<double>(sorted_.size()));
}

double SampleSummary::quantile(double p) const noexcept {
  if (sorted_.empty() || !(p >= 0.0 && p <= 1.0)) return kNan;
  const double place = p * static_cast<double>(sorted_.size() - 1);
  const double whole = std::floor(place);
  const double weight = place - whole;
  const auto index = static_cast<std::size_t>(whole);
  const double below = sorted_[index];
  if (weight == 0.0) return below;
  const double above = sorted_[index + 1];
  if (below == above) return below;  // also two infinities, whose difference is NaN
  // From the nearer end, as numpy's _lerp and torch.lerp do.
  return weight < 0.5 ? below + (above - below) * weight : above - (above - below) * (1.0 - weight);
}

double SampleSummary::trimmed_mean(double lower_share, double upper_share) const noexcept {
  if (sorted_.empty() || !(lower_share >= 0 && upper_share >= 0 && lower_share + upper_share < 1)) {
    return kNan;
  }
  const std::size_t count = sorted_.size();
  const std::size_t lower = std::min(share_of(lower_share, count), count - 1);
  const std::size_t upper = std::min(share_of(upper_share, count), count - 1 - lower);
  double total = 0;
  for (const float value : sorted_.subspan(lower, count - lower - upper)) total += value;
  return total / static_cast<double>(count - lower - upper);
}

}  // namespace toto
