// Writes forecasts step by step, from a distribution or from sampled paths. Shared by the optimised
// and the reference forecaster.
#pragma once

#include <cstddef>
#include <span>

#include "model/averaged_mixture.h"
#include "model/joined_mixture.h"
#include "model/step_distribution.h"
#include "toto/toto.h"

namespace toto {

// Sizes every array of `out`, reusing its memory.
void prepare_output(const Series& series, int context_length, const ForecastOptions& options,
                    const ModelFacts& facts, Forecast& out);

std::size_t held_bytes(const Forecast& out) noexcept;  // capacity of the arrays

// Error(corrupt_file): network outputs that are not finite must not be returned as a forecast.
[[noreturn]] void fail_not_finite(const Series& series);

// Each writes one variate and step. Thread-safe for different variates or steps.
void write_exact(const StepDistribution& distribution, const ForecastOptions& options, int variate,
                 int step, Forecast& out) noexcept;
// `samples` is reordered.
void write_sampled(std::span<float> samples, const ForecastOptions& options, int variate, int step,
                   Forecast& out) noexcept;
void write_joined(const JoinedMixture& joined, const ForecastOptions& options, int variate,
                  int step, Forecast& out) noexcept;
void write_averaged(const AveragedMixture& average, const ForecastOptions& options, int variate,
                    int step, Forecast& out) noexcept;
// A value of the network's scaled series in the units of the data.
float unscaled(double value, int variate, const Forecast& out) noexcept;
// Copies known future values to the outputs of their variates.
void write_known_future(const Series& series, const ForecastOptions& options,
                        Forecast& out) noexcept;

// dataset.py: replace_extreme_values. Values that are fed back must be finite: others become 0.
template <typename T>
T without_extremes(double value) noexcept;

// The number of variates of a trace: those without a known future, or all if the model samples.
int num_forecast(const Series& series) noexcept;
int traced_variates(const Series& series, const ModelFacts& facts) noexcept;

// The array "quantiles" of a trace, [level][variate][step] of the network's own levels.
TraceArray empty_quantile_trace(int num_variates, int horizon, const ModelFacts& facts);
void set_quantile_trace(const StepDistribution& distribution, int variate, int step,
                        const ModelFacts& facts, Trace& trace) noexcept;

}  // namespace toto
