#include "forecast/outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "forecast/plan.h"
#include "forecast/summary.h"

namespace toto {
namespace {

// Outputs are float32: numbers beyond its range become its largest value, never infinity.
float saturated(double value) noexcept {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

// Index of one variate and step in the output arrays [variate][step] and [quantile][variate][step].
struct OutputCell {
  OutputCell(int variate, int step, Forecast& forecast)
      : out(forecast),
        at(std::size_t(variate) * forecast.horizon + step),
        plane(std::size_t(forecast.num_variates) * forecast.horizon),
        scale(forecast.scale[variate]) {}
  float unscaled(double value) const noexcept { return saturated(value / scale); }

  Forecast& out;
  std::size_t at;
  std::size_t plane;
  double scale;
};

// Writes mean, median, quantiles and point of a distribution or of samples.
template <typename Source>
void write_cell(const Source& source, double mean, const ForecastOptions& options,
                const OutputCell& cell) noexcept {
  cell.out.mean[cell.at] = cell.unscaled(mean);
  cell.out.median[cell.at] = cell.unscaled(source.quantile(0.5));
  cell.out.point[cell.at] = cell.unscaled(point_of(options.point, source));
  for (std::size_t q = 0; q < options.quantiles.size(); ++q) {
    cell.out.quantiles[q * cell.plane + cell.at] =
        cell.unscaled(source.quantile(options.quantiles[q]));
  }
}

}  // namespace

void prepare_output(const Series& series, int context_length, const ForecastOptions& options,
                    const ModelFacts& facts, Forecast& out) {
  const PathPlan paths(options, facts);
  out.id = series.id;
  out.num_variates = series.num_variates;
  out.horizon = options.horizon;
  out.context_length = context_length;
  out.num_samples = paths.follows_mean ? 0 : paths.num_paths;
  out.num_paths = options.num_samples == 0 && facts.can_sample ? out.num_samples : 0;
  out.exact_steps = paths.exact_steps;
  const std::size_t plane = std::size_t(series.num_variates) * options.horizon;
  out.mean.resize(plane);
  out.median.resize(plane);
  out.point.resize(plane);
  out.quantiles.resize(plane * options.quantiles.size());
  out.samples.resize(options.keep_samples ? plane * out.num_samples : 0);
  out.scale.resize(series.num_variates);
}

std::size_t held_bytes(const Forecast& out) noexcept {
  return (out.mean.capacity() + out.median.capacity() + out.point.capacity() +
          out.quantiles.capacity() + out.samples.capacity()) *
         sizeof(float);
}

void fail_not_finite(const Series& series) {
  fail(
      ErrorCode::corrupt_file,
      "the network's output for series \"{}\" is not finite; the model's weights are damaged or far "
      "too large: restore the original files, or run toto verify",
      series.id);
}

void write_exact(const StepDistribution& distribution, const ForecastOptions& options, int variate,
                 int step, Forecast& out) noexcept {
  write_cell(distribution, distribution.mean(), options, OutputCell(variate, step, out));
}

void write_sampled(std::span<float> samples, const ForecastOptions& options, int variate, int step,
                   Forecast& out) noexcept {
  const SampleSummary summary(samples);
  write_cell(summary, summary.mean(), options, OutputCell(variate, step, out));
}

void write_joined(const JoinedMixture& joined, const ForecastOptions& options, int variate,
                  int step, Forecast& out) noexcept {
  write_cell(joined, joined.mean(), options, OutputCell(variate, step, out));
}

void write_averaged(const AveragedMixture& average, const ForecastOptions& options, int variate,
                    int step, Forecast& out) noexcept {
  write_cell(average, average.mean(), options, OutputCell(variate, step, out));
}

float unscaled(double value, int variate, const Forecast& out) noexcept {
  return saturated(value / out.scale[variate]);
}

// Known variates are the last ones of every [variate][step] plane.
void write_known_future(const Series& series, const ForecastOptions& options,
                        Forecast& out) noexcept {
  if (series.future_exogenous.empty()) return;
  const std::size_t known = series.future_exogenous.size();
  const std::size_t plane = std::size_t(series.num_variates) * options.horizon;
  const auto write = [&](std::vector<float>& values, std::size_t end) {
    std::copy(series.future_exogenous.begin(), series.future_exogenous.end(),
              values.begin() + static_cast<std::ptrdiff_t>(end - known));
  };
  write(out.mean, plane);
  write(out.median, plane);
  write(out.point, plane);
  for (std::size_t q = 0; q < options.quantiles.size(); ++q) write(out.quantiles, (q + 1) * plane);
  if (out.samples.empty()) return;
  const std::size_t horizon = options.horizon, paths = out.num_samples;
  auto to = out.samples.end() - static_cast<std::ptrdiff_t>(known * paths);
  for (std::size_t first = 0; first < known; first += horizon) {
    const auto from = series.future_exogenous.begin() + static_cast<std::ptrdiff_t>(first);
    for (std::size_t path = 0; path < paths; ++path) to = std::copy_n(from, horizon, to);
  }
}

template <typename T>
T without_extremes(double value) noexcept {
  const T rounded = static_cast<T>(value);
  constexpr T kLargest = std::numeric_limits<T>::max() / 2;
  return std::fabs(rounded) < kLargest ? rounded : T{0};  // NaN compares false
}

int num_forecast(const Series& series) noexcept {
  return series.num_variates - (series.future_exogenous.empty() ? 0 : series.num_exogenous);
}

int traced_variates(const Series& series, const ModelFacts& facts) noexcept {
  return facts.can_sample ? series.num_variates : num_forecast(series);
}

TraceArray empty_quantile_trace(int num_variates, int horizon, const ModelFacts& facts) {
  const std::size_t size = facts.levels.size() * num_variates * horizon;
  return {.name = "quantiles",
          .shape = {static_cast<std::int64_t>(facts.levels.size()), num_variates, horizon},
          .values = std::vector<double>(size),
          .variate_axis = 1,
          .step_axis = 2};
}

void set_quantile_trace(const StepDistribution& distribution, int variate, int step,
                        const ModelFacts& facts, Trace& trace) noexcept {
  for (TraceArray& array : trace.arrays) {
    if (array.name != "quantiles") continue;
    const std::size_t horizon = array.shape[2], plane = array.shape[1] * array.shape[2];
    for (std::size_t q = 0; q < facts.levels.size(); ++q) {
      array.values[q * plane + variate * horizon + step] = distribution.quantile(facts.levels[q]);
    }
  }
}

template float without_extremes<float>(double) noexcept;
template double without_extremes<double>(double) noexcept;

}  // namespace toto
