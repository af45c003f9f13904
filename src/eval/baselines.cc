#include "eval/baselines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "eval/eval_metrics.h"

namespace toto::eval {
namespace {

// Quantiles of the standard normal distribution at 0.5, 0.55, ..., 0.95.
constexpr std::array<double, kNumLevels - kMedian> kNormal = {0.0,
                                                              0.12566134685507416,
                                                              0.2533471031357997,
                                                              0.38532046640756773,
                                                              0.5244005127080407,
                                                              0.6744897501960817,
                                                              0.8416212335729143,
                                                              1.0364333894937898,
                                                              1.2815515655446004,
                                                              1.6448536269514722};

// Bands of values near the end of float32 stay inside it.
constexpr double kLargest = std::numeric_limits<float>::max();

double normal_quantile(std::size_t level) {
  return level < kMedian ? -kNormal[kMedian - level] : kNormal[level - kMedian];
}

float latest(std::span<const float> history) {
  const auto found = std::find_if(history.rbegin(), history.rend(),
                                  [](float value) { return !std::isnan(value); });
  return found == history.rend() ? 0 : *found;  // a series that is read has a first value
}

std::vector<float> naive_points(std::span<const float> history, std::size_t season,
                                std::size_t horizon) {
  std::vector<float> points(horizon, latest(history));
  for (std::size_t step = 0; step < horizon; ++step) {
    // One past the wanted position, so that going back by seasons ends at 0 and not below.
    std::size_t behind = history.size() - season + step % season + 1;
    while (behind > season && std::isnan(history[behind - 1])) behind -= season;
    if (!std::isnan(history[behind - 1])) points[step] = history[behind - 1];
  }
  return points;
}

std::vector<float> repeated(const std::vector<float>& points) {
  std::vector<float> quantiles;
  quantiles.reserve(kNumLevels * points.size());
  for (std::size_t i = 0; i < kNumLevels; ++i) {
    quantiles.insert(quantiles.end(), points.begin(), points.end());
  }
  return quantiles;
}

// Standard deviation of y[t] - y[t - season]; 0 without a pair.
double spread_of(std::span<const float> history, std::size_t season) {
  const auto each_change = [&](auto&& use) {
    for (std::size_t t = season; t < history.size(); ++t) {
      const double change = static_cast<double>(history[t]) - history[t - season];
      if (!std::isnan(change)) use(change);
    }
  };
  double pairs = 0, sum = 0, squares = 0;
  each_change([&](double change) {
    sum += change;
    ++pairs;
  });
  if (pairs == 0) return 0;
  each_change(
      [&, mean = sum / pairs](double change) { squares += (change - mean) * (change - mean); });
  return std::sqrt(squares / pairs);
}

}  // namespace

std::vector<float> persistence(std::span<const float> history, std::size_t horizon) {
  return repeated(std::vector<float>(horizon, latest(history)));
}

std::vector<float> seasonal_naive(std::span<const float> history, std::size_t season,
                                  std::size_t horizon) {
  return repeated(naive_points(history, season, horizon));
}

std::vector<float> seasonal_naive_bands(std::span<const float> history, std::size_t season,
                                        std::size_t horizon) {
  const std::vector<float> points = naive_points(history, season, horizon);
  const double spread = spread_of(history, season);
  std::vector<float> quantiles;
  quantiles.reserve(kNumLevels * horizon);
  for (std::size_t i = 0; i < kNumLevels; ++i) {
    for (std::size_t step = 0; step < horizon; ++step) {
      const std::size_t seasons = step / season + 1;
      const double value =
          points[step] + spread * std::sqrt(static_cast<double>(seasons)) * normal_quantile(i);
      quantiles.push_back(static_cast<float>(std::clamp(value, -kLargest, kLargest)));
    }
  }
  return quantiles;
}

}  // namespace toto::eval
