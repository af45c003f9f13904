#include "forecast/outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/elementary.h"
#include "base/error.h"
#include "forecast/mixture_cdf.h"
#include "forecast/summary.h"

namespace toto {
namespace {

// max(softplus(x), eps) with eps the dtype's (distribution.py), softplus as torch computes it: the
// identity above its threshold.
template <typename T>
double positive(double x) noexcept {
  constexpr double kThreshold = 20;
  const double power = elementary::exp(x), one = 1 + power;
  const double softplus = x > kThreshold ? x : elementary::log1p_given(power, one, 1 / one);
  return std::max(softplus, static_cast<double>(std::numeric_limits<T>::epsilon()));
}

// What the head said about one step, its bias included.
template <typename T>
struct HeadOutput {
  const T* raw;
  const double* bias;  // or null
  double operator[](std::size_t i) const { return bias != nullptr ? raw[i] + bias[i] : raw[i]; }
};

// One place to write to: [variate][step], and [quantile][variate][step].
struct Cell {
  Cell(int variate, int step, Forecast& forecast)
      : out(forecast),
        at(std::size_t(variate) * forecast.horizon + step),
        plane(std::size_t(forecast.num_variates) * forecast.horizon) {}
  Forecast& out;
  std::size_t at;
  std::size_t plane;
};

// Answers are float32: a number beyond its range is its largest, never an infinity.
float saturated(double value) noexcept {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

// Mean, median, quantiles and point from anything that has them.
template <typename Source>
void write_cell(const Source& source, double mean, const ForecastOptions& options,
                const Cell& cell) noexcept {
  cell.out.mean[cell.at] = saturated(mean);
  cell.out.median[cell.at] = saturated(source.quantile(0.5));
  cell.out.point[cell.at] = saturated(point_of(options.point, source));
  for (std::size_t q = 0; q < options.quantiles.size(); ++q) {
    cell.out.quantiles[q * cell.plane + cell.at] = saturated(source.quantile(options.quantiles[q]));
  }
}

}  // namespace

void prepare_output(const Series& series, int context_length, int num_paths,
                    const ForecastOptions& options, Forecast& out) {
  out.id = series.id;
  out.num_variates = series.num_variates;
  out.horizon = options.horizon;
  out.context_length = context_length;
  out.num_samples = options.decode == Decode::mean ? 0 : num_paths;
  const std::size_t plane = std::size_t(series.num_variates) * options.horizon;
  out.mean.resize(plane);
  out.median.resize(plane);
  out.point.resize(plane);
  out.quantiles.resize(plane * options.quantiles.size());
  out.samples.resize(options.keep_samples ? plane * out.num_samples : 0);
}

std::size_t output_bytes(const Series& series, int num_paths,
                         const ForecastOptions& options) noexcept {
  const std::size_t samples =
      options.keep_samples && options.decode != Decode::mean ? std::size_t(num_paths) : 0;
  return std::size_t(series.num_variates) * options.horizon *
         (3 + options.quantiles.size() + samples) * sizeof(float);
}

std::size_t held_bytes(const Forecast& out) noexcept {
  return (out.mean.capacity() + out.median.capacity() + out.point.capacity() +
          out.quantiles.capacity() + out.samples.capacity()) *
         sizeof(float);
}

template <typename T>
StudentMixture step_distribution(const Config& config, const T* raw, const double* bias, double loc,
                                 double scale, std::span<double> workspace) noexcept {
  const std::size_t k = config.num_components;
  const auto part = [&](std::size_t i) { return workspace.subspan(i * k, k); };
  const std::span<double> df = part(0), locs = part(1), scales = part(2), logits = part(3);
  const HeadOutput<T> head{raw, bias};
  for (std::size_t i = 0; i < k; ++i) {
    df[i] = 2.0 + positive<T>(head[i]);
    locs[i] = head[k + i];
    scales[i] = positive<T>(head[2 * k + i]);
  }
  MixtureParameters<double> parameters{.df = df, .loc = locs, .scale = scales, .logits = {}};
  if (config.head == HeadKind::mixture_of_student_t) {
    for (std::size_t i = 0; i < k; ++i) logits[i] = head[3 * k + i];
    parameters.logits = logits;
  }
  return StudentMixture(workspace.subspan(4 * k), parameters, {.shift = loc, .stretch = scale});
}

void fail_not_finite(const Series& series) {
  fail(ErrorCode::corrupt_file,
       "the network's answer for series \"{}\" is not a finite number; the model's weights are "
       "damaged or far too large: load the original again, or find out with toto verify",
       series.id);
}

void write_exact(const StudentMixture& mixture, const ForecastOptions& options, int variate,
                 int step, Forecast& out) noexcept {
  const MixtureCdf distribution(mixture);
  write_cell(distribution, mixture.mean(), options, Cell(variate, step, out));
}

void write_sampled(std::span<float> samples, const ForecastOptions& options, int variate, int step,
                   Forecast& out) noexcept {
  const SampleSummary summary(samples);
  write_cell(summary, summary.mean(), options, Cell(variate, step, out));
}

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
}

template <typename T>
T without_extremes(double value) noexcept {
  const T rounded = static_cast<T>(value);
  constexpr T kLargest = std::numeric_limits<T>::max() / 2;
  return std::fabs(rounded) < kLargest ? rounded : T{0};  // NaN compares false
}

template <typename T>
void fill_trace(const Config& config, int num_variates, const T* raw, std::size_t raw_stride,
                const double* bias, const double* loc, const double* scale, Trace& trace) {
  const std::size_t patch = config.patch_size, k = config.num_components;
  const std::size_t steps = num_variates * patch;
  trace.num_variates = num_variates;
  trace.patch_size = config.patch_size;
  trace.num_components = config.num_components;
  trace.loc.assign(loc, loc + steps);
  trace.scale.assign(scale, scale + steps);
  const bool mixture = config.head == HeadKind::mixture_of_student_t;
  for (auto* values : {&trace.df, &trace.component_loc, &trace.component_scale})
    values->resize(steps * k);
  trace.logits.resize(mixture ? steps * k : 0);
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t at = step % patch * config.params_per_step();
    const HeadOutput<T> head{raw + step / patch * raw_stride + at,
                             bias != nullptr ? bias + at : nullptr};
    for (std::size_t i = 0; i < k; ++i) {
      trace.df[step * k + i] = 2.0 + positive<T>(head[i]);
      trace.component_loc[step * k + i] = head[k + i];
      trace.component_scale[step * k + i] = positive<T>(head[2 * k + i]);
      if (mixture) trace.logits[step * k + i] = head[3 * k + i];
    }
  }
}

template StudentMixture step_distribution(const Config&, const float*, const double*, double,
                                          double, std::span<double>) noexcept;
template StudentMixture step_distribution(const Config&, const double*, const double*, double,
                                          double, std::span<double>) noexcept;
template float without_extremes<float>(double) noexcept;
template double without_extremes<double>(double) noexcept;
template void fill_trace(const Config&, int, const float*, std::size_t, const double*,
                         const double*, const double*, Trace&);
template void fill_trace(const Config&, int, const double*, std::size_t, const double*,
                         const double*, const double*, Trace&);

}  // namespace toto
