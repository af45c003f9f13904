// Running statistics of one variate up to some point in time. Copying them forks a path.
#pragma once

#include <limits>

namespace toto {

// Forecasts are cut to this range, in the units of the data.
struct ForecastRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

// Shared by all architectures; each uses the members that its scaler needs.
struct ScalerState {
  double weight = 0;  // number of values that were not missing
  double sum = 0;
  double mean = 0;                        // of everything so far
  double m2 = 0;                          // sum of squared deviations, Welford's update
  double fixed_loc = 0, fixed_scale = 1;  // statistics of the context, not updated by later values
  double lowest = 0, highest = 0;         // bounds of the scale
  bool clamped = false;                   // whether the bounds apply
  // The first `min_observed` values: their statistics replace those of fewer values.
  double min_observed = 0;
  double first_weight = 0, first_mean = 0, first_m2 = 0;
  bool first_complete = false;  // later values are not among them
  ForecastRange range;
};

}  // namespace toto
