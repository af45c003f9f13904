#include "model/averaged_mixture.h"

#include <algorithm>
#include <cmath>

namespace toto {

MixtureCopy::MixtureCopy(const StudentMixture& mixture)
    : df(mixture.df().begin(), mixture.df().end()),
      loc(mixture.loc().begin(), mixture.loc().end()),
      scale(mixture.scale().begin(), mixture.scale().end()),
      affine(mixture.affine()) {
  constexpr double kLeastWeight = 1e-300;  // whose logarithm is finite
  for (const double weight : mixture.weights()) {
    logits.push_back(std::log(std::max(weight, kLeastWeight)));
  }
}

void AveragedMixture::add(const MixtureCopy& mixture) {
  std::vector<double>& memory =
      memory_.emplace_back(StudentMixture::workspace_doubles(mixture.df.size()));
  parts_.emplace_back(StudentMixture(
      memory,
      {.df = mixture.df, .loc = mixture.loc, .scale = mixture.scale, .logits = mixture.logits},
      mixture.affine));
}

template <typename Ask>
double AveragedMixture::average(const Ask& ask) const noexcept {
  double total = 0;
  for (const MixtureCdf& part : parts_) total += ask(part);
  return total / static_cast<double>(parts_.size());
}

double AveragedMixture::mean() const noexcept {
  return average([](const MixtureCdf& part) { return part.mean(); });
}

double AveragedMixture::standard_deviation() const noexcept {
  const double middle = mean();
  return std::sqrt(average([middle](const MixtureCdf& part) {
    const double deviation = part.standard_deviation(), distance = part.mean() - middle;
    return deviation * deviation + distance * distance;
  }));
}

double AveragedMixture::cdf(double y) const noexcept {
  return average([y](const MixtureCdf& part) { return part.cdf(y); });
}

double AveragedMixture::quantile(double p) const noexcept {
  // Below every part's quantile the average is below p, above all of them above p.
  double low = parts_.front().quantile(p), high = low;
  for (const MixtureCdf& part : parts_) {
    const double y = part.quantile(p);
    low = std::min(low, y);
    high = std::max(high, y);
  }
  const double tolerance = 1e-12 * std::min(p, 1 - p);
  double y = 0.5 * low + 0.5 * high;
  while (y > low && y < high) {
    const double distance = cdf(y) - p;
    if (std::abs(distance) <= tolerance) break;
    (distance < 0 ? low : high) = y;
    // Newton's step where it stays in the middle half of the bracket, else halve it.
    const double slope = average([y](const MixtureCdf& part) { return part.pdf(y); });
    const double next = y - distance / slope, quarter = 0.25 * (high - low);
    const bool inside = next > low && next < high;
    const bool small = std::abs(next - y) < quarter;
    y = inside && small ? next : 0.5 * low + 0.5 * high;
  }
  return y;
}

double AveragedMixture::trimmed_mean(double lower_share, double upper_share) const noexcept {
  const double low = lower_share > 0 ? quantile(lower_share) : -HUGE_VAL;
  const double high = upper_share > 0 ? quantile(1 - upper_share) : HUGE_VAL;
  const double part =
      average([=](const MixtureCdf& mixture) { return mixture.partial_mean(low, high); });
  return part / (1 - lower_share - upper_share);
}

}  // namespace toto
