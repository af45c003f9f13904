// Statistics of one variate up to some point in time; copying them forks a path.
#pragma once

namespace toto {

// Plain numbers for every architecture, each of which uses the members its scaler needs.
struct ScalerState {
  double weight = 0;  // number of values that counted
  double sum = 0;
  double mean = 0;                        // of everything so far
  double m2 = 0;                          // sum of squared deviations, Welford's update
  double fixed_loc = 0, fixed_scale = 1;  // statistics of the context that later values leave alone
  double lowest = 0, highest = 0;         // bounds of the scale
  bool clamped = false;                   // whether they are active
};

}  // namespace toto
