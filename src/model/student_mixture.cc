#include "model/student_mixture.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/elementary.h"

namespace toto {
namespace {

constexpr double kLargest = 1e150;   // of a location or scale, so that squares do not overflow
constexpr double kLargestDf = 1e30;  // a Student-T equals the Gaussian to the last bit there

}  // namespace

StudentMixture::StudentMixture(std::span<double> workspace, const MixtureParameters& parameters,
                               const Affine& affine) noexcept
    : affine_(affine) {
  const std::size_t count = parameters.df.size();
  assert(parameters.loc.size() == count && parameters.scale.size() == count);
  assert(parameters.logits.size() == count || (parameters.logits.empty() && count <= 1));
  assert(workspace.size() >= workspace_doubles(count));
  weights_ = workspace.subspan(0, count);
  cumulative_ = workspace.subspan(count, count);
  df_ = workspace.subspan(2 * count, count);
  loc_ = workspace.subspan(3 * count, count);
  scale_ = workspace.subspan(4 * count, count);
  cdf_workspace_ = workspace.subspan(5 * count);

  valid_ = count > 0 && std::isfinite(affine_.shift) && std::isfinite(affine_.stretch) &&
           affine_.stretch > 0;
  double largest_logit = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    const double df = parameters.df[i];
    const double scale = parameters.scale[i];
    const double logit = parameters.logits.empty() ? 0.0 : parameters.logits[i];
    df_[i] = std::min(df, kLargestDf);
    loc_[i] = parameters.loc[i];
    scale_[i] = scale;
    weights_[i] = logit;
    largest_logit = std::max(largest_logit, logit);
    valid_ = valid_ && std::isfinite(df) && df >= 2.0 && std::abs(loc_[i]) <= kLargest &&
             scale >= 1 / kLargest && scale <= kLargest && std::isfinite(logit);
  }
  if (!valid_) return;

  double total = 0;
  for (double& weight : weights_) {
    weight = elementary::exp(weight - largest_logit);
    total += weight;
  }
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    weights_[i] /= total;
    sum += weights_[i];
    cumulative_[i] = sum;
  }
}

double StudentMixture::network_mean() const noexcept {
  double mean = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) mean += weights_[i] * loc_[i];
  return mean;
}

double StudentMixture::mean() const noexcept {
  return valid_ ? affine_.shift + affine_.stretch * network_mean() : kNan;
}

// Law of total variance; df / (df - 2) is the variance of a standard Student-T.
double StudentMixture::variance() const noexcept {
  if (!valid_) return kNan;
  const double mean = network_mean();
  double variance = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] == 0) continue;  // an infinite variance of weight 0 would be NaN
    const double inner = scale_[i] * scale_[i] * (df_[i] / (df_[i] - 2.0));
    variance += weights_[i] * (inner + (loc_[i] - mean) * (loc_[i] - mean));
  }
  return affine_.stretch * affine_.stretch * variance;
}

double StudentMixture::sample(const RandomWords& words) const noexcept {
  if (!valid_) return kNan;
  const std::uint64_t choice = (std::uint64_t{words[2] & 0x7ff} << 32) | words[3];
  const std::uint64_t radius = (std::uint64_t{words[1]} << 21) | (words[2] >> 11);
  const double place = (static_cast<double>(choice) + 0.5) * 0x1p-43;
  // The last component takes the rest, whatever the rounding of the sums.
  const auto chosen = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, place);
  const auto i = static_cast<std::size_t>(chosen - cumulative_.begin());
  // Bailey, "Polar generation of random variates with the t-distribution" (1994), with the angle
  // drawn directly: sqrt(df (U^(-2/df) - 1)) cos(2 pi V).
  const double u = std::max(static_cast<double>(radius), 0.5) * 0x1p-53;  // inside (0, 1)
  const double growth = elementary::expm1(-2.0 / df_[i] * elementary::log_of_normal(u));
  const double t = std::sqrt(df_[i] * growth) * elementary::cos_turn(words[0]);
  return affine_.shift + affine_.stretch * (loc_[i] + scale_[i] * t);
}

}  // namespace toto
