#include "model/toto1/toto1_head.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/elementary.h"

namespace toto {
namespace {

// max(softplus(x), epsilon of T) as in distribution.py; softplus as torch computes it, the identity
// above its threshold.
template <typename T>
double positive(double x) noexcept {
  constexpr double kThreshold = 20;
  const double power = elementary::exp(x), one = 1 + power;
  const double softplus = x > kThreshold ? x : elementary::log1p_given(power, one, 1 / one);
  return std::max(softplus, static_cast<double>(std::numeric_limits<T>::epsilon()));
}

// The head's outputs for one step, bias included.
template <typename T>
struct HeadOutput {
  const T* raw;
  const double* bias;  // or null
  double operator[](std::size_t i) const { return bias != nullptr ? raw[i] + bias[i] : raw[i]; }
};

}  // namespace

template <typename T>
StudentMixture toto1_step(const Toto1Config& config, const T* raw, const double* bias, double loc,
                          double scale, std::span<double> memory) noexcept {
  const std::size_t k = config.num_components;
  const auto part = [&](std::size_t i) { return memory.subspan(i * k, k); };
  const std::span<double> df = part(0), locs = part(1), scales = part(2), logits = part(3);
  const HeadOutput<T> head{raw, bias};
  for (std::size_t i = 0; i < k; ++i) {
    df[i] = 2.0 + positive<T>(head[i]);
    locs[i] = head[k + i];
    scales[i] = positive<T>(head[2 * k + i]);
  }
  MixtureParameters parameters{.df = df, .loc = locs, .scale = scales, .logits = {}};
  if (config.head == Toto1Head::mixture_of_student_t) {
    for (std::size_t i = 0; i < k; ++i) logits[i] = head[3 * k + i];
    parameters.logits = logits;
  }
  return StudentMixture(memory.subspan(4 * k), parameters, {.shift = loc, .stretch = scale});
}

template <typename T>
void toto1_trace(const Toto1Config& config, int num_variates, const T* raw, std::size_t raw_stride,
                 const double* bias, const double* loc, const double* scale, Trace& trace) {
  const std::size_t patch = config.patch_size, k = config.num_components;
  const std::size_t steps = num_variates * patch;
  const std::vector<std::int64_t> by_step = {num_variates, config.patch_size};
  const std::vector<std::int64_t> by_component = {num_variates, config.patch_size,
                                                  config.num_components};
  const auto statistics = [&](const char* name, const double* values) {
    trace.arrays.push_back(
        {.name = name, .shape = by_step, .values = {values, values + steps}, .step_axis = 1});
  };
  statistics("loc", loc);
  statistics("scale", scale);
  const auto add = [&](const char* name, std::size_t parameter, bool distinctive,
                       const auto& meaning) {
    std::vector<double> values(steps * k);
    for (std::size_t step = 0; step < steps; ++step) {
      const std::size_t at = step % patch * config.params_per_step();
      const HeadOutput<T> head{raw + step / patch * raw_stride + at,
                               bias != nullptr ? bias + at : nullptr};
      for (std::size_t i = 0; i < k; ++i) values[step * k + i] = meaning(head[parameter * k + i]);
    }
    trace.arrays.push_back({.name = name,
                            .shape = by_component,
                            .values = std::move(values),
                            .step_axis = 1,
                            .distinctive = distinctive});
  };
  const auto same = [](double x) { return x; };
  add("df", 0, false, [](double x) { return 2.0 + positive<T>(x); });
  add("component_loc", 1, true, same);
  add("component_scale", 2, true, positive<T>);
  if (config.head == Toto1Head::mixture_of_student_t) add("logits", 3, false, same);
}

template StudentMixture toto1_step(const Toto1Config&, const float*, const double*, double, double,
                                   std::span<double>) noexcept;
template StudentMixture toto1_step(const Toto1Config&, const double*, const double*, double, double,
                                   std::span<double>) noexcept;
template void toto1_trace(const Toto1Config&, int, const float*, std::size_t, const double*,
                          const double*, const double*, Trace&);
template void toto1_trace(const Toto1Config&, int, const double*, std::size_t, const double*,
                          const double*, const double*, Trace&);

}  // namespace toto
