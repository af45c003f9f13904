#include "model/toto2/toto2_head.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/elementary.h"

namespace toto {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// model.py: _clamp_nonfinite. Infinity becomes the largest finite value of the same level in the
// patch, minus infinity the smallest.
template <typename T>
double finite_of_level(const T* raw, int patch, int level, double loc, double scale,
                       bool largest) noexcept {
  double result = largest ? -kInfinite : kInfinite;
  for (int i = 0; i < patch; ++i) {
    const double value = elementary::sinh(raw[i * kToto2NumLevels + level]) * scale + loc;
    if (std::isfinite(value)) {
      result = largest ? std::max(result, value) : std::min(result, value);
    }
  }
  return result;
}

}  // namespace

template <typename T>
StepDistribution toto2_step(const T* raw, int patch, int step, double loc, double scale,
                            ForecastRange range, std::span<double> memory) noexcept {
  for (int level = 0; level < kToto2NumLevels; ++level) {
    double value = elementary::sinh(raw[step * kToto2NumLevels + level]) * scale + loc;
    if (std::isinf(value)) {
      value = finite_of_level(raw, patch, level, loc, scale, value > 0);
    }
    memory[level] = value < range.low ? range.low : value > range.high ? range.high : value;
  }
  return StepDistribution(QuantileKnots(kToto2Levels, memory.first(kToto2NumLevels)));
}

template <typename T>
void toto2_trace(int num_variates, int outputs, int patch, const T* raw, std::size_t stride,
                 std::vector<double> loc, std::vector<double> scale, Trace& trace) {
  TraceArray array{.name = "raw",
                   .shape = {kToto2NumLevels, num_variates, outputs, patch},
                   .values = {},
                   .variate_axis = 1,
                   .step_axis = 3,
                   .distinctive = true};
  for (int level = 0; level < kToto2NumLevels; ++level) {
    for (int row = 0; row < num_variates * outputs; ++row) {
      for (int i = 0; i < patch; ++i) {
        array.values.push_back(raw[row * stride + std::size_t(i) * kToto2NumLevels + level]);
      }
    }
  }
  trace.arrays.push_back({.name = "loc", .shape = {num_variates}, .values = std::move(loc)});
  trace.arrays.push_back({.name = "scale", .shape = {num_variates}, .values = std::move(scale)});
  trace.arrays.push_back(std::move(array));
}

template StepDistribution toto2_step(const float*, int, int, double, double, ForecastRange,
                                     std::span<double>) noexcept;
template StepDistribution toto2_step(const double*, int, int, double, double, ForecastRange,
                                     std::span<double>) noexcept;
template void toto2_trace(int, int, int, const float*, std::size_t, std::vector<double>,
                          std::vector<double>, Trace&);
template void toto2_trace(int, int, int, const double*, std::size_t, std::vector<double>,
                          std::vector<double>, Trace&);

}  // namespace toto
