// distribution.py: converts the head's raw outputs to the distribution of a step.
#pragma once

#include <cstddef>
#include <span>

#include "model/student_mixture.h"
#include "model/toto1/toto1_config.h"
#include "toto/toto.h"

namespace toto {

// Doubles of memory for one step's distribution.
constexpr std::size_t toto1_step_doubles(std::size_t num_components) {
  return 4 * num_components + StudentMixture::workspace_doubles(num_components);
}

// The distribution of one step. `raw` is the head's output before softplus, [parameter][component];
// `bias`, of the same shape, is added to it unless null. loc and scale transform back to the units
// of the series.
template <typename T>
StudentMixture toto1_step(const Toto1Config& config, const T* raw, const double* bias, double loc,
                          double scale, std::span<double> memory) noexcept;

// Adds the trace of the first patch: loc, scale, df, component_loc, component_scale, logits. `raw`
// is [variate] with `raw_stride`, `bias` null or [step][parameter][component], loc and scale are
// [variate][patch_size].
template <typename T>
void toto1_trace(const Toto1Config& config, int num_variates, const T* raw, std::size_t raw_stride,
                 const double* bias, const double* loc, const double* scale, Trace& trace);

}  // namespace toto
