// Real values held back from a forecast, to compare it with. They are never made up: data that has
// none is refused.
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
  std::vector<float> actual;  // [step], what came next; NaN where the file has nothing
  float latest = 0;           // the last value before: what persistence says
};

inline constexpr int kMinHistory = 32;  // points before the first window

// The last `count` stretches of `horizon` steps that hold an actual value, oldest first, none
// overlapping, each with `context` points before it, or all with as many as the first one has.
// Error(corrupt_file) if there are fewer.
std::vector<Window> held_out_windows(const Symbol& symbol, int context, int horizon, int count);

// Whether there is nothing to tell the windows apart by: a symbol that never moves.
bool all_alike(const std::vector<Window>& windows);

// How far predictions are from what came: sums over steps that have an actual value.
class Accuracy {
 public:
  void add(std::span<const float> predicted, std::span<const float> actual);
  void add(double predicted, double actual);
  std::int64_t count() const { return count_; }
  // NaN without a step to judge.
  double mae() const;
  double rmse() const;
  double mape() const;  // a share, over the steps whose actual value is not 0
  double prediction_mean() const;
  double prediction_std() const;  // of the predictions themselves, n below the line
  double target_mean() const;

 private:
  std::int64_t count_ = 0, num_relative_ = 0;
  double absolute_ = 0, squared_ = 0, relative_ = 0;
  double predicted_ = 0, actual_ = 0;
  double center_ = 0, spread_ = 0;  // Welford's running mean and sum of squares of predictions
};

// How far one MAE is from another, as a share of the latter; where that is itself no more than the
// rounding of the targets, as a share of that rounding.
double mae_change(const Accuracy& ours, const Accuracy& theirs);

}  // namespace toto::validate
