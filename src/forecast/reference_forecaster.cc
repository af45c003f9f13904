#include "forecast/reference_forecaster.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "forecast/outputs.h"
#include "forecast/scaler.h"
#include "forecast/series.h"

namespace toto {
namespace {

// One series on its way into the future. Copying it forks a path.
template <typename T>
class Path {
 public:
  Path(const ReferenceToto1<T>& model, const Series& series, const ForecastOptions& options,
       bool use_cache)
      : config_(&model.config()),
        num_variates_(series.num_variates),
        num_exogenous_(series.num_exogenous),
        use_cache_(use_cache) {
    const int patch = config_->patch_size;
    const ContextShape shape = context_shape(series, options.max_context, patch);
    const int padded = shape.padded(patch);
    std::vector<float> values(std::size_t(num_variates_) * padded);
    std::vector<std::uint8_t> mask(values.size());
    std::vector<std::int64_t> ids(std::size_t(num_variates_) * shape.num_patches);
    write_context(series, shape, options.missing, patch, values.data(), mask.data(), ids.data());
    loc.resize(std::size_t(num_variates_) * patch);
    scale.resize(loc.size());
    for (int v = 0; v < num_variates_; ++v) {
      const std::vector<T> x(values.begin() + std::ptrdiff_t(v) * padded,
                             values.begin() + std::ptrdiff_t(v + 1) * padded);
      const std::span<const std::uint8_t> m(mask.data() + std::size_t(v) * padded, padded);
      scalers_.push_back(start_scaler<T>(*config_, x, m));
      scaled_.emplace_back(padded);
      const auto first_id = ids.begin() + std::ptrdiff_t(v) * shape.num_patches;
      ids_.emplace_back(first_id, first_id + shape.num_patches);
      for (int t = 0; t < padded; t += patch) {
        scale_patch(*config_, scalers_[v], x.data() + t, m.data() + t, scaled_[v].data() + t,
                    loc.data() + std::size_t(v) * patch, scale.data() + std::size_t(v) * patch);
      }
    }
    new_patches_ = shape.num_patches;
  }

  // What the head says about the next patch: [variate][step][parameter][component], raw.
  std::vector<T> predict(const ReferenceToto1<T>& model, ThreadPool& pool,
                         const std::function<void()>& check) {
    const int patch = config_->patch_size;
    const int all = static_cast<int>(ids_[0].size());
    const int count = use_cache_ ? new_patches_ : all;
    std::vector<T> scaled;
    std::vector<std::int64_t> ids;
    for (int v = 0; v < num_variates_; ++v) {
      scaled.insert(scaled.end(), scaled_[v].end() - std::ptrdiff_t(count) * patch,
                    scaled_[v].end());
      ids.insert(ids.end(), ids_[v].end() - count, ids_[v].end());
    }
    return model.forward({.num_variates = num_variates_,
                          .num_patches = count,
                          .scaled = scaled,
                          .ids = ids,
                          .num_exogenous = num_exogenous_,
                          .check = check},
                         use_cache_ ? &cache_ : nullptr, pool);
  }

  // Appends a patch of values, [variate][step].
  void append(const std::vector<T>& values) {
    const int patch = config_->patch_size;
    for (int v = 0; v < num_variates_; ++v) {
      const std::size_t at = std::size_t(v) * patch;
      scaled_[v].resize(scaled_[v].size() + patch);
      scale_patch(*config_, scalers_[v], values.data() + at, nullptr,
                  &scaled_[v].back() - (patch - 1), loc.data() + at, scale.data() + at);
      ids_[v].push_back(ids_[v].back());
    }
    new_patches_ = 1;
  }

  std::vector<double> loc, scale;  // [variate][step], the affine transform of the next patch

 private:
  const Config* config_;
  int num_variates_;
  int num_exogenous_;
  bool use_cache_;
  std::vector<ScalerState> scalers_;            // [variate]
  std::vector<std::vector<T>> scaled_;          // [variate][time]
  std::vector<std::vector<std::int64_t>> ids_;  // [variate][patch]
  int new_patches_ = 0;                         // not in the cache yet
  ReferenceCache<T> cache_;
};

// Calls visit(variate, step of the patch, distribution) for everything the head said.
template <typename T, typename Visit>
void for_each_step(const Config& config, const std::vector<T>& raw, const Path<T>& path,
                   const Visit& visit) {
  std::vector<double> workspace(step_workspace_doubles(config.num_components));
  for (std::size_t at = 0; at < path.loc.size(); ++at) {
    const StudentMixture mixture =
        step_distribution(config, raw.data() + at * config.params_per_step(), nullptr, path.loc[at],
                          path.scale[at], workspace);
    visit(static_cast<int>(at) / config.patch_size, static_cast<int>(at) % config.patch_size,
          mixture);
  }
}

// forecaster.py: known futures replace what was predicted before it is fed back; zero past the
// horizon.
template <typename T>
void inject_known_future(const Series& series, int horizon, int first_step, int patch_size,
                         std::vector<T>& values) {
  if (series.future_exogenous.empty()) return;
  for (int x = 0; x < series.num_exogenous; ++x) {
    const int v = series.num_variates - series.num_exogenous + x;
    for (int i = 0; i < patch_size; ++i) {
      const int step = first_step + i;
      values[std::size_t(v) * patch_size + i] =
          step < horizon ? series.future_exogenous[std::size_t(x) * horizon + step] : T{0};
    }
  }
}

}  // namespace

template <typename T>
void reference_forecast(const ReferenceToto1<T>& model, const Series& series,
                        const ForecastOptions& options, bool use_cache, ThreadPool& pool,
                        Forecast& out, Timings& timings, Trace* trace) {
  const Config& config = model.config();
  const int patch = config.patch_size, horizon = options.horizon, variates = series.num_variates;
  const PathPlan plan(options, patch);
  const std::uint64_t stream = options.independent_streams ? stream_of(series.id) : 0;
  const std::function<void()> check_cancelled = [&options] {
    if (options.cancelled && options.cancelled())
      fail(ErrorCode::cancelled, "the forecast was cancelled");
  };

  check_cancelled();
  if (trace != nullptr) trace->mean.resize(std::size_t(variates) * horizon);
  const auto start = std::chrono::steady_clock::now();
  Path<T> context(model, series, options, use_cache);
  const std::vector<T> first = context.predict(model, pool, check_cancelled);
  if (trace != nullptr) {
    fill_trace(config, variates, first.data(), std::size_t(patch) * config.params_per_step(),
               nullptr, context.loc.data(), context.scale.data(), *trace);
  }
  for_each_step(config, first, context, [&](int v, int step, const StudentMixture& mixture) {
    if (!mixture.valid()) fail_not_finite(series);
    if (step < std::min(plan.exact_steps, horizon)) write_exact(mixture, options, v, step, out);
    if (trace != nullptr && step < horizon) {
      trace->mean[std::size_t(v) * horizon + step] = without_extremes<T>(mixture.mean());
    }
  });
  timings.prefill += milliseconds_since(start);

  const auto decode_start = std::chrono::steady_clock::now();
  const std::size_t num_values = std::size_t(variates) * plan.path_steps * plan.num_paths;
  require_memory(num_values * sizeof(float), "this forecast",
                 "use fewer samples or a shorter horizon");
  std::vector<float> paths(num_values);  // [variate][step][path]
  for (int p = 0; p < plan.num_paths; ++p) {
    Path<T> path = context;
    std::vector<T> raw = first;
    for (int first_step = 0; first_step < horizon; first_step += patch) {
      check_cancelled();
      std::vector<T> values(std::size_t(variates) * patch);
      for_each_step(config, raw, path, [&](int v, int i, const StudentMixture& mixture) {
        const int step = first_step + i;
        T& value = values[std::size_t(v) * patch + i];
        if (!plan.follows_mean) {
          value = without_extremes<T>(
              mixture.sample(random_words({.seed = options.seed,
                                           .stream = stream,
                                           .variate = static_cast<std::uint32_t>(v),
                                           .sample = static_cast<std::uint32_t>(p),
                                           .step = static_cast<std::uint32_t>(step)})));
          return;
        }
        value = without_extremes<T>(mixture.mean());
        if (step >= horizon) return;
        if (first_step > 0) write_exact(mixture, options, v, step, out);
        if (trace != nullptr) trace->mean[std::size_t(v) * horizon + step] = value;
      });
      inject_known_future(series, horizon, first_step, patch, values);
      for (int v = 0; v < variates; ++v) {
        for (int i = 0; i < patch && first_step + i < plan.path_steps; ++i) {
          paths[(std::size_t(v) * plan.path_steps + first_step + i) * plan.num_paths + p] =
              static_cast<float>(values[std::size_t(v) * patch + i]);
        }
      }
      if (first_step + patch >= horizon) break;
      path.append(values);
      raw = path.predict(model, pool, check_cancelled);
    }
  }

  std::vector<float> samples(plan.num_paths);
  for (int v = 0; v < variates; ++v) {
    for (int step = 0; step < horizon && plan.num_paths > 0; ++step) {
      const float* from = paths.data() + (std::size_t(v) * plan.path_steps + step) * plan.num_paths;
      if (options.keep_samples) {
        for (int p = 0; p < plan.num_paths; ++p) {
          out.samples[(std::size_t(v) * plan.num_paths + p) * horizon + step] = from[p];
        }
      }
      if (step < plan.exact_steps) continue;
      std::copy_n(from, plan.num_paths, samples.begin());
      write_sampled(samples, options, v, step, out);
    }
  }
  write_known_future(series, options, out);
  if (trace != nullptr && !series.future_exogenous.empty()) {
    std::copy(series.future_exogenous.begin(), series.future_exogenous.end(),
              trace->mean.end() - std::ptrdiff_t(series.future_exogenous.size()));
  }
  timings.decode += milliseconds_since(decode_start);
}

template void reference_forecast(const ReferenceToto1<float>&, const Series&,
                                 const ForecastOptions&, bool, ThreadPool&, Forecast&, Timings&,
                                 Trace*);
template void reference_forecast(const ReferenceToto1<double>&, const Series&,
                                 const ForecastOptions&, bool, ThreadPool&, Forecast&, Timings&,
                                 Trace*);

}  // namespace toto
