#include "eval/eval_metrics.h"

#include <cmath>

namespace toto::eval {
namespace {

// Nothing if there is nothing to divide by: the figure is missing in tables, not zero.
std::optional<double> quotient(double sum, double by) {
  if (!(by > 0) || !std::isfinite(sum) || !std::isfinite(by)) return std::nullopt;
  return sum / by;
}

// Below 1: ours is better. A perfect score has no logarithm and is left out of the mean.
std::optional<double> ratio(std::optional<double> ours, std::optional<double> theirs) {
  if (!ours || !theirs || !(*ours > 0)) return std::nullopt;
  return quotient(*ours, *theirs);
}

// The quantile loss: its expectation is smallest at the true quantile of this level.
double pinball(double actual, double quantile, double level) {
  const double error = actual - quantile;
  return error >= 0 ? level * error : (level - 1) * error;
}

std::array<std::optional<double>, 4> listed(const Ratios& ratios) {
  return {ratios.mase, ratios.wql, ratios.crps, ratios.mae};
}

}  // namespace

Sums& Sums::operator+=(const Sums& other) {
  windows += other.windows;
  steps += other.steps;
  actual += other.actual;
  error += other.error;
  percentage += other.percentage;
  quantile_loss += other.quantile_loss;
  crps += other.crps;
  inside_50 += other.inside_50;
  inside_80 += other.inside_80;
  scaled_windows += other.scaled_windows;
  scaled_error += other.scaled_error;
  return *this;
}

// The unit of MASE: mean absolute change over one season, within the history.
std::optional<double> in_sample_error(std::span<const float> history, std::size_t season) {
  double sum = 0;
  double pairs = 0;
  for (std::size_t t = season; t < history.size(); ++t) {
    const double change = static_cast<double>(history[t]) - history[t - season];
    if (std::isnan(change)) continue;
    sum += std::abs(change);
    ++pairs;
  }
  if (sum == 0) return std::nullopt;
  return quotient(sum, pairs);
}

Sums score(std::span<const float> actual, std::span<const float> quantiles,
           std::optional<double> in_sample_error) {
  // quantiles are [level][step]. The levels are 0.05, 0.1 ... 0.95; every second one is a decile.
  constexpr std::size_t kDeciles = 9;
  const std::size_t horizon = actual.size();
  Sums sums;
  for (std::size_t step = 0; step < horizon; ++step) {
    if (std::isnan(actual[step])) continue;
    const double y = actual[step];
    const auto quantile = [&](std::size_t i) {
      return static_cast<double>(quantiles[i * horizon + step]);
    };
    double all = 0, deciles = 0;
    for (std::size_t i = 0; i < kNumLevels; ++i) {
      const double loss = 2 * pinball(y, quantile(i), kLevels[i]);
      all += loss;
      if (i % 2 == 1) deciles += loss;
    }
    const double median = quantile(kMedian);
    const double error = std::abs(y - median);
    ++sums.steps;
    sums.actual += std::abs(y);
    sums.error += error;
    if (error > 0) sums.percentage += 200 * error / (std::abs(y) + std::abs(median));
    sums.quantile_loss += deciles / kDeciles;
    sums.crps += all / kNumLevels;
    // Levels 0.25 to 0.75, and 0.1 to 0.9.
    if (quantile(4) <= y && y <= quantile(14)) ++sums.inside_50;
    if (quantile(1) <= y && y <= quantile(17)) ++sums.inside_80;
  }
  if (sums.steps == 0) return sums;
  sums.windows = 1;
  if (in_sample_error) {
    sums.scaled_windows = 1;
    sums.scaled_error = sums.error / static_cast<double>(sums.steps) / *in_sample_error;
  }
  return sums;
}

Metrics metrics_of(const Sums& sums, bool has_bands) {
  const auto steps = static_cast<double>(sums.steps);
  Metrics metrics{.mase = quotient(sums.scaled_error, static_cast<double>(sums.scaled_windows)),
                  .wql = quotient(sums.quantile_loss, sums.actual),
                  .crps = quotient(sums.crps, steps),
                  .mae = quotient(sums.error, steps),
                  .smape = quotient(sums.percentage, steps)};
  if (has_bands) {
    metrics.coverage_50 = quotient(static_cast<double>(sums.inside_50), steps);
    metrics.coverage_80 = quotient(static_cast<double>(sums.inside_80), steps);
  }
  return metrics;
}

// The denominator of WQL is the same on both sides, so it is left out.
Ratios ratios_of(const Sums& ours, const Sums& theirs) {
  const Metrics a = metrics_of(ours, false), b = metrics_of(theirs, false);
  return {.mase = ratio(a.mase, b.mase),
          .wql = ratio(ours.quantile_loss, theirs.quantile_loss),
          .crps = ratio(a.crps, b.crps),
          .mae = ratio(a.mae, b.mae)};
}

// A geometric mean: a ratio of 2 and one of 1/2 cancel.
void RatioMean::add(const Ratios& ratios) {
  const auto values = listed(ratios);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::optional<double>& value = values[i];
    if (!value) continue;
    logs_[i] += std::log(*value);
    ++counts_[i];
  }
}

Ratios RatioMean::mean() const {
  const auto one = [this](std::size_t i) -> std::optional<double> {
    if (counts_[i] == 0) return std::nullopt;
    return std::exp(logs_[i] / static_cast<double>(counts_[i]));
  };
  return {.mase = one(0), .wql = one(1), .crps = one(2), .mae = one(3)};
}

}  // namespace toto::eval
