#include "backtest/accuracy.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace toto::backtest {
namespace {

// Lentz's method for the continued fraction of the incomplete beta function (DLMF 8.17.22).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kEnough = 1e-16;
  constexpr int kMaxTerms = 10'000;
  const auto away_from_zero = [](double value) { return value == 0 ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m < kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 / away_from_zero(1 + term * d);
      c = away_from_zero(1 + term / c);
      change = c * d;
      fraction *= change;
    }
    if (std::abs(change - 1) < kEnough) break;
  }
  return fraction;
}

// I_x(a, b), with y = 1 - x given apart: x may be too close to 1 to tell.
double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front = std::exp(a * std::log(x) + b * std::log(y) + std::lgamma(a + b) -
                                std::lgamma(a) - std::lgamma(b));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, y) / b;
}

// Sums over the target bars that become the figures of one forecaster.
struct ErrorSums {
  double absolute = 0, squared = 0, relative = 0, quantile = 0;

  void add(double actual, double point) {
    const double error = point - actual;
    absolute += std::abs(error);
    squared += error * error;
    relative += 2 * std::abs(error) / (std::abs(point) + std::abs(actual));
  }
  void add_quantile(double actual, double value, double tau) {
    const double below = actual <= value ? 1 : 0;
    quantile += 2 * std::abs((actual - value) * (below - tau));
  }
  ForecastErrors errors(double count, double scale, double mean_actual) const {
    return {.mae = absolute / count,
            .rmse = std::sqrt(squared / count),
            .smape = relative / count,
            .mase = scale > 0 ? absolute / count / scale : kUndefined,
            .wql = quantile / (count * static_cast<double>(kNumLevels)) / mean_actual};
  }
};

double mean_change(std::span<const double> prices) {
  double sum = 0;
  for (std::size_t i = 1; i < prices.size(); ++i) sum += std::abs(prices[i] - prices[i - 1]);
  return sum / static_cast<double>(prices.size() - 1);
}

}  // namespace

double student_two_sided(double t, double df) {
  const double t2 = t * t;
  if (!std::isfinite(t2)) return std::isnan(t) ? kUndefined : 0;
  return incomplete_beta(df / 2, 0.5, df / (df + t2), t2 / (df + t2));
}

double diebold_mariano(std::span<const double> loss_differences, std::size_t lag) {
  const std::size_t size = loss_differences.size();
  const auto n = static_cast<double>(size);
  // Equal differences vary by exactly nothing, however their mean would be rounded.
  const auto differs = [&](double difference) { return difference != loss_differences.front(); };
  if (std::none_of(loss_differences.begin(), loss_differences.end(), differs)) return kUndefined;
  double mean = 0;
  for (const double difference : loss_differences) mean += difference;
  mean /= n;
  const auto autocovariance = [&](std::size_t k) {
    double sum = 0;
    for (std::size_t i = k; i < size; ++i) {
      sum += (loss_differences[i] - mean) * (loss_differences[i - k] - mean);
    }
    return sum / n;
  };
  double variance = autocovariance(0);
  for (std::size_t k = 1; k < lag; ++k) variance += 2 * autocovariance(k);
  if (!(variance > 0)) return kUndefined;
  const auto h = static_cast<double>(lag);
  const double correction = std::sqrt((n + 1 - 2 * h + h * (h - 1) / n) / n);
  return student_two_sided(correction * mean / std::sqrt(variance / n), n - 1);
}

ForecastAccuracy forecast_accuracy(const tables::Bars& bars, tables::Target target,
                                   std::size_t first, std::size_t lag,
                                   std::span<const BarForecast> forecasts) {
  const std::vector<double>& prices = bars.prices(target);
  ErrorSums model, persistence;
  double sum_actual = 0;
  std::size_t inside = 0, moved = 0, right_way = 0;
  std::array<std::size_t, kNumLevels> at_or_below = {};
  std::vector<double> loss_differences;
  for (std::size_t k = 0; k < forecasts.size(); ++k) {
    const TargetForecast& forecast = forecast_of(forecasts[k], target);
    const double actual = prices[first + k], last = prices[first + k - lag];
    sum_actual += std::abs(actual);
    model.add(actual, forecast.point);
    persistence.add(actual, last);
    for (std::size_t i = 0; i < kNumLevels; ++i) {
      model.add_quantile(actual, forecast.quantiles[i], level(i));
      persistence.add_quantile(actual, last, level(i));
      if (actual <= forecast.quantiles[i]) ++at_or_below[i];
    }
    if (forecast.quantiles.front() <= actual && actual <= forecast.quantiles.back()) ++inside;
    if (actual != last) ++moved;
    if ((forecast.point - last) * (actual - last) > 0) ++right_way;
    loss_differences.push_back(std::abs(forecast.point - actual) - std::abs(last - actual));
  }
  const auto count = static_cast<double>(forecasts.size());
  const double scale = mean_change(std::span(prices).first(first - lag + 1));
  ForecastAccuracy accuracy;
  accuracy.model = model.errors(count, scale, sum_actual / count);
  accuracy.persistence = persistence.errors(count, scale, sum_actual / count);
  accuracy.coverage_80 = static_cast<double>(inside) / count;
  accuracy.direction_accuracy =
      moved == 0 ? kUndefined : static_cast<double>(right_way) / static_cast<double>(moved);
  accuracy.dm_p_value = diebold_mariano(loss_differences, lag);
  for (std::size_t i = 0; i < kNumLevels; ++i) {
    accuracy.coverage[i] = static_cast<double>(at_or_below[i]) / count;
  }
  return accuracy;
}

}  // namespace toto::backtest
