#include "model/toto1/toto1_scaler.h"

#include <algorithm>
#include <cmath>

#include "base/elementary.h"

namespace toto {
namespace {

constexpr double kMinimumVariance =
    0.1;  // compute_causal_statistics: minimum_scale, under the root
constexpr double kStdMeanVariance = 1e-3;      // StdMeanScaler: minimum_scale
constexpr double kLowestScale = double{0.1f};  // torch.tensor(minimum_scale) is float32

// Padding next to values near the largest float32 would scale to infinity and turn every forecast
// into NaN. The embedding of 1e36 still fits into float32, and the norms after it make it finite.
constexpr double kLargestScaled = 1e36;

// Mean and sqrt(variance + minimum) over the values that are not masked; no Bessel correction.
template <typename T>
void context_statistics(std::span<const T> values, std::span<const std::uint8_t> mask,
                        double minimum, double& mean, double& scale) noexcept {
  double count = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (mask[i] == 0) continue;
    count += 1;
    sum += values[i];
  }
  count = std::max(count, 1.0);
  mean = sum / count;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (mask[i] == 0) continue;
    const double deviation = values[i] - mean;
    squares += deviation * deviation;
  }
  scale = std::sqrt(squares / count + minimum);
}

}  // namespace

// The reference also clamps causal scales to at least 0.1, which has no effect: sqrt(0.1) > 0.1.
double minimum_scale(const Toto1Config& config) noexcept {
  return std::sqrt(config.scaler == Toto1Scaler::std_mean ? kStdMeanVariance : kMinimumVariance);
}

template <typename T>
ScalerState start_scaler(const Toto1Config& config, std::span<const T> values,
                         std::span<const std::uint8_t> mask) noexcept {
  ScalerState state;
  if (config.scaler == Toto1Scaler::std_mean) {
    context_statistics(values, mask, kStdMeanVariance, state.fixed_loc, state.fixed_scale);
  } else if (config.scaler == Toto1Scaler::causal_patch_std_mean && config.stabilize_with_global) {
    double mean = 0, global = 0;
    context_statistics(values, mask, kMinimumVariance, mean, global);
    const double factor = elementary::exp(config.scale_factor_exponent * elementary::log(10.0));
    state.lowest = std::max(kLowestScale, global / factor);
    state.highest = global * factor;
    state.clamped = true;
  }
  return state;
}

template <typename T>
void scale_patch(const Toto1Config& config, ScalerState& state, const T* values,
                 const std::uint8_t* mask, T* scaled, double* loc, double* scale) noexcept {
  const int size = config.patch_size;
  if (config.scaler == Toto1Scaler::std_mean) {
    std::fill_n(loc, size, state.fixed_loc);
    std::fill_n(scale, size, state.fixed_scale);
  } else {
    for (int i = 0; i < size; ++i) {
      const double x = values[i];
      const double counts = mask == nullptr || mask[i] != 0 ? 1.0 : 0.0;
      state.weight += counts;
      state.sum += counts * x;
      const double before = state.mean;
      state.mean = state.sum / std::max(state.weight, 1.0);
      state.m2 += (x - before) * (x - state.mean) * counts;
      const double variance = state.m2 / std::max(std::max(state.weight, 1.0) - 1.0, 1.0);
      loc[i] = state.mean;
      scale[i] = std::sqrt(variance + kMinimumVariance);
      if (state.clamped) scale[i] = std::min(std::max(scale[i], state.lowest), state.highest);
    }
    if (config.scaler == Toto1Scaler::causal_patch_std_mean) {  // one scale for the whole patch
      std::fill_n(loc, size, loc[size - 1]);
      std::fill_n(scale, size, scale[size - 1]);
    }
  }
  for (int i = 0; i < size; ++i) {
    const double x = (static_cast<double>(values[i]) - loc[i]) / scale[i];
    scaled[i] = static_cast<T>(std::clamp(x, -kLargestScaled, kLargestScaled));
  }
}

ScalerState scale_context(const Toto1Config& config, std::span<float> values,
                          std::span<const std::uint8_t> mask, double* loc, double* scale) noexcept {
  ScalerState state = start_scaler<float>(config, values, mask);
  for (std::size_t t = 0; t < values.size(); t += config.patch_size) {
    scale_patch(config, state, values.data() + t, mask.data() + t, values.data() + t, loc, scale);
  }
  return state;
}

template ScalerState start_scaler(const Toto1Config&, std::span<const float>,
                                  std::span<const std::uint8_t>) noexcept;
template ScalerState start_scaler(const Toto1Config&, std::span<const double>,
                                  std::span<const std::uint8_t>) noexcept;
template void scale_patch(const Toto1Config&, ScalerState&, const float*, const std::uint8_t*,
                          float*, double*, double*) noexcept;
template void scale_patch(const Toto1Config&, ScalerState&, const double*, const std::uint8_t*,
                          double*, double*, double*) noexcept;

}  // namespace toto
