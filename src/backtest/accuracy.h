// Accuracy of the forecasts of one target, in prices, next to that of persistence: the forecast
// that nothing changes. Undefined figures are NaN, which JSON writes as null.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "backtest/strategy.h"

namespace toto::backtest {

struct ForecastErrors {
  double mae = 0, rmse = 0, smape = 0;
  double mase = 0;  // in units of the mean change from bar to bar before the first decision
  double wql = 0;   // weighted quantile loss over 0.1 to 0.9
};

struct ForecastAccuracy {
  ForecastErrors model;
  ForecastErrors persistence;  // forecast = the target's own last value
  double coverage_80 = 0;      // of the band from 0.1 to 0.9
  double direction_accuracy = 0;
  double dm_p_value = 0;                         // Diebold-Mariano, against persistence
  std::array<double, kNumLevels> coverage = {};  // share of actual values at or below each quantile
};

// Target bar k is bars[first + k], forecast after bars[first + k - lag].
ForecastAccuracy forecast_accuracy(const tables::Bars& bars, tables::Target target,
                                   std::size_t first, std::size_t lag,
                                   std::span<const BarForecast> forecasts);

// Two-sided p-value of equal absolute errors, `lag` steps ahead: lag - 1 autocovariances, Harvey's
// correction, Student-t with n - 1 degrees of freedom. NaN if the variance is not above 0.
double diebold_mariano(std::span<const double> loss_differences, std::size_t lag);

// P(|T| >= |t|) for Student's t with `df` degrees of freedom, df >= 1.
double student_two_sided(double t, double df);

}  // namespace toto::backtest
