// Actual values that a forecast does not see and is compared with. They are never invented: data
// without them is refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "toto/toto.h"

namespace toto::validate {

struct Symbol {
  std::string name;
  std::vector<float> values;  // oldest first; NaN is missing
};

struct Window {
  Series context;             // named after the symbol
  std::vector<float> actual;  // [step]
  float latest = 0;           // the last value before: the forecast of persistence
};

inline constexpr int kMinHistory = 32;  // points before the first window

// The last `count` windows of `horizon` steps, oldest first, not overlapping. All contexts have the
// same length: `context` points, or fewer if the first window has fewer. Windows with missing
// values are skipped, with a sentence in `remarks`. Error(corrupt_file) if too few windows remain,
// or if the last values of the file are missing.
std::vector<Window> held_out_windows(const Symbol& symbol, int context, int horizon, int count,
                                     std::vector<std::string>* remarks = nullptr);

// Whether all contexts are the same: the symbol never moves.
bool all_equal(const std::vector<Window>& windows);

// Errors of predictions: sums over the steps that have an actual value.
class Accuracy {
 public:
  void add(std::span<const float> predicted, std::span<const float> actual);
  void add(double predicted, double actual);
  std::int64_t count() const { return count_; }
  // NaN without a step.
  double mae() const;
  double rmse() const;
  double mape() const;  // a share, over the steps whose actual value is not 0
  double prediction_mean() const;
  double prediction_std() const;  // of the predictions themselves, divided by n
  double target_mean() const;

 private:
  std::int64_t count_ = 0, num_relative_ = 0;
  double absolute_ = 0, squared_ = 0, relative_ = 0;
  double predicted_ = 0, actual_ = 0;
  double center_ = 0, spread_ = 0;  // Welford's running mean and sum of squares of predictions
};

// |difference of the MAEs| / MAE of `theirs`. If that MAE is only rounding of the targets, the
// difference is divided by that rounding instead.
double mae_change(const Accuracy& ours, const Accuracy& theirs);

}  // namespace toto::validate
