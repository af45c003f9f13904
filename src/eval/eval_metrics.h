// Accuracy of forecasts: sums over the steps of windows, and the figures computed from them. Steps
// with a missing actual value are ignored; a figure without a divisor has no value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace toto::eval {

// Scored forecasts have the quantiles 0.05, 0.10, ..., 0.95: the nine deciles of WQL, the bounds of
// both bands, and enough of them for CRPS.
inline constexpr std::size_t kNumLevels = 19;
inline constexpr std::size_t kMedian = 9;  // position of 0.5
constexpr std::array<double, kNumLevels> make_levels() {
  std::array<double, kNumLevels> levels = {};
  for (std::size_t i = 0; i < kNumLevels; ++i) levels[i] = static_cast<double>(i + 1) / 20;
  return levels;
}
inline constexpr std::array<double, kNumLevels> kLevels = make_levels();

// Sums of windows add up to a series, those of series to a data set.
struct Sums {
  std::int64_t windows = 0;
  std::int64_t steps = 0;           // that have an actual value
  double actual = 0;                // |y|
  double error = 0;                 // |y - median|
  double percentage = 0;            // 200 |y - median| / (|y| + |median|), 0 where both are 0
  double quantile_loss = 0;         // 2 x pinball loss, mean over the levels 0.1, 0.2, ..., 0.9
  double crps = 0;                  // the same, mean over all levels
  std::int64_t inside_50 = 0;       // steps with y between the quantiles 0.25 and 0.75
  std::int64_t inside_80 = 0;       // steps with y between the quantiles 0.1 and 0.9
  std::int64_t scaled_windows = 0;  // windows whose in-sample error is known and not 0
  double scaled_error = 0;          // per window: mean |y - median| / in-sample error

  Sums& operator+=(const Sums& other);
};

// Mean |y[t] - y[t - season]| over the known pairs of a history: the error of seasonal naive in it,
// the unit of MASE. Nothing if there is no pair or the error is 0.
std::optional<double> in_sample_error(std::span<const float> history, std::size_t season);

// One window: `actual` [step], NaN where missing; `quantiles` [level][step].
Sums score(std::span<const float> actual, std::span<const float> quantiles,
           std::optional<double> in_sample_error);

struct Metrics {
  std::optional<double> mase = {};         // mean over windows
  std::optional<double> wql = {};          // quantile loss over |y|, as fev defines it
  std::optional<double> crps = {};         // mean over steps, in the unit of the data
  std::optional<double> mae = {};          // likewise
  std::optional<double> smape = {};        // per cent
  std::optional<double> coverage_50 = {};  // share of the steps inside the band
  std::optional<double> coverage_80 = {};
};
// `has_bands`: without bands (all quantiles equal) coverage has no value.
Metrics metrics_of(const Sums& sums, bool has_bands);

// Figures of one forecaster divided by another's on the same windows; below 1 is better. WQL's |y|
// cancels, so its ratio exists even if all actual values are 0. No value if either side is 0, since
// logarithms are averaged.
struct Ratios {
  std::optional<double> mase, wql, crps, mae;
};
Ratios ratios_of(const Sums& ours, const Sums& theirs);

// Geometric means of the ratios that have a value.
class RatioMean {
 public:
  void add(const Ratios& ratios);
  Ratios mean() const;
  std::size_t num_wql() const { return counts_[1]; }  // ratios in the mean of WQL

 private:
  std::array<double, 4> logs_ = {};
  std::array<std::size_t, 4> counts_ = {};
};

}  // namespace toto::eval
