#include "forecast/reference_forecaster.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "forecast/outputs.h"
#include "forecast/passes.h"
#include "forecast/series.h"

namespace toto {
namespace {

// One forecast of one series. start() handles the context and the first block, finish() the rest.
class ReferenceForecast {
 public:
  ReferenceForecast(const ReferenceRun& run, const Series& series, const ForecastOptions& options,
                    ThreadPool& pool, Forecast& out, Trace* trace)
      : run_(run),
        series_(series),
        options_(options),
        pool_(pool),
        out_(out),
        trace_(trace),
        plan_(options, run.facts),
        stream_(options.independent_streams ? stream_of(series.id) : 0) {}

  void start();
  void finish();

 private:
  void check_cancelled() const {
    if (options_.cancelled && options_.cancelled())
      fail(ErrorCode::cancelled, "the forecast was cancelled");
  }
  // Rounds a value that is fed back to the oracle's precision.
  double rounded(double value) const {
    return run_.in_double ? without_extremes<double>(value)
                          : double{without_extremes<float>(value)};
  }
  double drawn(const StepDistribution& distribution, int variate, int path, int step) const {
    return rounded(distribution.sample(random_words({.seed = options_.seed,
                                                     .stream = stream_,
                                                     .variate = static_cast<std::uint32_t>(variate),
                                                     .sample = static_cast<std::uint32_t>(path),
                                                     .step = static_cast<std::uint32_t>(step)})));
  }
  std::unique_ptr<OraclePath> read_context() const;
  void report_first_block();
  void follow_path(int number, std::vector<float>& paths);
  void summarise(const std::vector<float>& paths);
  void average(int variate, int step);

  const ReferenceRun& run_;
  const Series& series_;
  const ForecastOptions& options_;
  ThreadPool& pool_;
  Forecast& out_;
  Trace* trace_;
  PathPlan plan_;
  std::uint64_t stream_;
  std::unique_ptr<OraclePath> context_;
  std::vector<double> memory_;    // of one step's distribution
  std::vector<double> fed_back_;  // [variate][horizon], the path of means or medians
  // [variate][step][path], of steps that are averages; empty for a path that is not finite.
  std::vector<std::vector<MixtureCopy>> distributions_;
};

// The same context as the optimised forecaster's, scaled by the oracle itself.
std::unique_ptr<OraclePath> ReferenceForecast::read_context() const {
  const int patch = run_.facts.patch;
  const ContextShape shape = context_shape(series_, options_.max_context, run_.facts);
  const std::size_t variates = series_.num_variates, padded = shape.padded(patch);
  std::vector<float> values(variates * padded);
  std::vector<std::uint8_t> mask(values.size());
  std::vector<std::int64_t> ids(variates * shape.num_patches);
  write_context(series_, shape, options_.missing, out_.scale, patch, padded, values.data(),
                mask.data(), ids.data());
  std::vector<std::int64_t> future_ids(variates);
  for (std::size_t v = 0; v < variates; ++v) future_ids[v] = last_id(series_, static_cast<int>(v));
  std::vector<float> future;
  for (std::size_t v = 0; v < variates; ++v) {
    const KnownFuture known = known_future(series_, static_cast<int>(v), out_.scale[v]);
    for (std::size_t i = 0; i < known.size(); ++i) future.push_back(known[i]);
  }
  return run_.oracle.begin({.num_variates = series_.num_variates,
                            .num_exogenous = series_.num_exogenous,
                            .num_patches = shape.num_patches,
                            .values = values,
                            .mask = mask,
                            .ids = ids,
                            .future_ids = future_ids,
                            .known_future = future,
                            .min_observed = options_.min_observed,
                            .cap = options_.cap},
                           run_.use_cache);
}

void ReferenceForecast::start() {
  check_cancelled();
  context_ = read_context();
  context_->predict(plan_.block_patches, pool_, [this] { check_cancelled(); });
  memory_.resize(context_->step_doubles());
  fed_back_.resize(std::size_t(series_.num_variates) * options_.horizon);
  if (trace_ != nullptr) {
    context_->trace(*trace_);
    if (!run_.facts.levels.empty()) {
      trace_->arrays.push_back(
          empty_quantile_trace(traced_variates(series_, run_.facts), options_.horizon, run_.facts));
    }
  }
  report_first_block();
}

// Also checks every step of the block, beyond the horizon as well, because all of them are fed
// back.
void ReferenceForecast::report_first_block() {
  const int steps = plan_.block_patches * run_.facts.patch;
  for (int v = 0; v < traced_variates(series_, run_.facts); ++v) {
    for (int step = 0; step < steps; ++step) {
      const StepDistribution distribution = context_->step(v, step, memory_);
      if (!distribution.valid()) fail_not_finite(series_);
      if (step >= options_.horizon) continue;
      if (step < plan_.exact_steps) write_exact(distribution, options_, v, step, out_);
      if (trace_ == nullptr) continue;
      set_quantile_trace(distribution, v, step, run_.facts, *trace_);
      fed_back_[std::size_t(v) * options_.horizon + step] = rounded(distribution.mean());
    }
  }
}

// Follows one path to the end of the horizon: sampled, or the mean or median of every step. Draws
// of a quantile model are independent and not fed back.
void ReferenceForecast::follow_path(int number, std::vector<float>& paths) {
  const int variates = series_.num_variates, horizon = options_.horizon;
  int block_steps = plan_.block_patches * run_.facts.patch;
  const bool draws = run_.facts.can_sample && !plan_.follows_mean;
  const std::unique_ptr<OraclePath> path = context_->fork();
  for (int first_step = 0;;) {
    check_cancelled();
    std::vector<double> values(std::size_t(variates) * block_steps);
    for (int v = 0; v < traced_variates(series_, run_.facts); ++v) {
      for (int i = 0; i < block_steps; ++i) {
        const int step = first_step + i;
        const StepDistribution distribution = path->step(v, i, memory_);
        double& value = values[std::size_t(v) * block_steps + i];
        if (draws) {
          value = drawn(distribution, v, number, step);
          if (plan_.joins && step >= plan_.exact_steps && step < horizon && distribution.valid()) {
            distributions_[std::size_t(v) * horizon + step].emplace_back(*distribution.mixture());
          }
          continue;
        }
        value = rounded(distribution.mean());
        if (step >= horizon) continue;
        if (first_step > 0) {
          write_exact(distribution, options_, v, step, out_);
          if (trace_ != nullptr) set_quantile_trace(distribution, v, step, run_.facts, *trace_);
        }
        fed_back_[std::size_t(v) * horizon + step] = value;
        for (int n = 0; n < out_.num_samples && !out_.samples.empty(); ++n) {
          out_.samples[(std::size_t(v) * out_.num_samples + n) * horizon + step] =
              unscaled(static_cast<float>(drawn(distribution, v, n, step)), v, out_);
        }
      }
    }
    // forecaster.py: known futures replace what was predicted before it is fed back; zero past the
    // horizon.
    for (int v = 0; v < variates; ++v) {
      for (int i = 0; i < block_steps && is_known(series_, v); ++i) {
        const int step = first_step + i, x = v - (variates - series_.num_exogenous);
        values[std::size_t(v) * block_steps + i] =
            step < horizon
                ? scaled(series_.future_exogenous[std::size_t(x) * horizon + step], out_.scale[v])
                : 0;
      }
      for (int i = 0; i < block_steps && first_step + i < plan_.path_steps; ++i) {
        const std::size_t at = std::size_t(v) * plan_.path_steps + first_step + i;
        if (!paths.empty()) {
          paths[at * plan_.stored_paths + number] =
              static_cast<float>(values[std::size_t(v) * block_steps + i]);
        }
      }
    }
    first_step += block_steps;
    if (first_step >= horizon) break;
    path->append(values);
    const int left = (horizon - first_step - 1) / run_.facts.patch + 1;
    const int patches = std::min(plan_.block_patches, left);
    path->predict(patches, pool_, [this] { check_cancelled(); });
    block_steps = patches * run_.facts.patch;
  }
}

// Statistics over the paths for steps that are not exact, and the samples of a sampling model.
void ReferenceForecast::summarise(const std::vector<float>& paths) {
  const int horizon = options_.horizon;
  std::vector<float> samples(plan_.stored_paths);
  for (int v = 0; v < series_.num_variates; ++v) {
    for (int step = 0; step < horizon && plan_.stored_paths > 0; ++step) {
      const float* from =
          paths.data() + (std::size_t(v) * plan_.path_steps + step) * plan_.stored_paths;
      for (int p = 0; p < plan_.num_paths && run_.facts.can_sample && !out_.samples.empty(); ++p) {
        out_.samples[(std::size_t(v) * plan_.num_paths + p) * horizon + step] =
            unscaled(from[p], v, out_);
      }
      if (step < plan_.exact_steps) continue;
      if (plan_.joins) {
        average(v, step);
        continue;
      }
      std::copy_n(from, plan_.stored_paths, samples.begin());
      write_sampled(samples, options_, v, step, out_);
    }
  }
}

// The average of the paths' distributions at one step.
void ReferenceForecast::average(int variate, int step) {
  check_cancelled();
  if (is_known(series_, variate)) return;
  AveragedMixture average;
  for (const MixtureCopy& part : distributions_[std::size_t(variate) * options_.horizon + step]) {
    average.add(part);
  }
  if (average.empty()) fail_not_finite(series_);
  write_averaged(average, options_, variate, step, out_);
}

// Follows all paths one after the other; `paths` is [variate][step][path].
void ReferenceForecast::finish() {
  const std::size_t num_values =
      std::size_t(series_.num_variates) * plan_.path_steps * plan_.stored_paths;
  // A copy of a distribution takes twice the memory of the stored form.
  const std::size_t distribution = plan_.joins ? 2 * run_.facts.step_bytes : 0;
  require_memory(num_values * (sizeof(float) + distribution), "this forecast",
                 "use fewer paths or samples, or a shorter horizon");
  distributions_.resize(plan_.joins ? fed_back_.size() : 0);
  std::vector<float> paths(num_values);  // [variate][step][path]
  // A quantile model has one path; samples are drawn along it.
  const int num_paths = run_.facts.can_sample ? plan_.num_paths : 1;
  for (int p = 0; p < num_paths; ++p) follow_path(p, paths);
  summarise(paths);
  write_known_future(series_, options_, out_);
  if (trace_ == nullptr) return;
  std::copy(series_.future_exogenous.begin(), series_.future_exogenous.end(),
            fed_back_.end() - std::ptrdiff_t(series_.future_exogenous.size()));
  trace_->arrays.push_back({.name = run_.facts.can_sample ? "mean" : "median",
                            .shape = {series_.num_variates, options_.horizon},
                            .values = std::move(fed_back_),
                            .step_axis = 1});
}

}  // namespace

void reference_forecast(const ReferenceRun& run, const Series& series,
                        const ForecastOptions& options, ThreadPool& pool, Forecast& out,
                        Timings& timings, Trace* trace) {
  ReferenceForecast forecast(run, series, options, pool, out, trace);
  const auto start = std::chrono::steady_clock::now();
  forecast.start();
  timings.prefill += milliseconds_since(start);
  const auto decode_start = std::chrono::steady_clock::now();
  forecast.finish();
  timings.decode += milliseconds_since(decode_start);
}

}  // namespace toto
