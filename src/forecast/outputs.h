// Where forecasts are written, step by step, from a distribution or from sampled paths. Shared by
// the optimised and the reference forecaster.
#pragma once

#include <cstddef>
#include <span>

#include "forecast/distribution.h"
#include "model/config.h"
#include "toto/toto.h"

namespace toto {

// Sizes every array of `out`; reuses what it holds.
void prepare_output(const Series& series, int context_length, int num_paths,
                    const ForecastOptions& options, Forecast& out);

// Bytes of the arrays it sizes, and of those an answer has room for.
std::size_t output_bytes(const Series& series, int num_paths,
                         const ForecastOptions& options) noexcept;
std::size_t held_bytes(const Forecast& out) noexcept;

// Scratch for one step's distribution, one a thread.
constexpr std::size_t step_workspace_doubles(std::size_t num_components) {
  return 4 * num_components + StudentMixture::workspace_doubles(num_components);
}

// The distribution of one step. `raw` is what the head said, [parameter][component], before
// softplus; loc and scale are the affine transform back to the series' own units.
template <typename T>
StudentMixture step_distribution(const Config& config, const T* raw, const double* bias, double loc,
                                 double scale, std::span<double> workspace) noexcept;

// What is said where a network answers with something else than finite numbers: it must not pass
// for a forecast.
[[noreturn]] void fail_not_finite(const Series& series);

void write_exact(const StudentMixture& mixture, const ForecastOptions& options, int variate,
                 int step, Forecast& out) noexcept;
// `samples` is reordered.
void write_sampled(std::span<float> samples, const ForecastOptions& options, int variate, int step,
                   Forecast& out) noexcept;
// A variate whose future is known is reported as it will be.
void write_known_future(const Series& series, const ForecastOptions& options,
                        Forecast& out) noexcept;

// dataset.py: replace_extreme_values. What is fed back must be a number.
template <typename T>
T without_extremes(double value) noexcept;

// Everything about the first patch but the mean path. `raw` is [variate] with `raw_stride`, `bias`
// null or [step][parameter][component], loc and scale are [variate][patch_size].
template <typename T>
void fill_trace(const Config& config, int num_variates, const T* raw, std::size_t raw_stride,
                const double* bias, const double* loc, const double* scale, Trace& trace);

}  // namespace toto
