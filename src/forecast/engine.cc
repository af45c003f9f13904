// The public Engine: validates everything, takes the state, and runs one of the two forecasters.
// The last place that throws.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>

#include "base/error.h"
#include "base/memory.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "forecast/forecaster.h"
#include "forecast/outputs.h"
#include "forecast/plan.h"
#include "forecast/reference_forecaster.h"
#include "forecast/scaler.h"
#include "forecast/series.h"
#include "forecast/session.h"
#include "forecast/test_hook.h"
#include "forecast/weight_loading.h"
#include "model/checkpoint.h"
#include "model/reference_toto1.h"
#include "model/toto1.h"

namespace toto {
namespace {

// What loading will keep: checked first, because a small file may ask for a large folded head.
std::uint64_t bytes_needed(const Config& config, const EngineOptions& options) {
  const auto parameters = static_cast<std::uint64_t>(config.num_parameters(true));
  if (options.mode == Mode::reference)
    return parameters * (options.dtype == DType::f64 ? sizeof(double) : sizeof(float));
  const std::uint64_t head = std::uint64_t(config.patch_size) * config.params_per_step();
  return parameters * sizeof(float) +
         head * (config.embed_dim * sizeof(float) + sizeof(float) + sizeof(double));
}

// Answers of many series, steps and samples may be larger than anything the forecast itself needs.
// Only what `out` does not hold yet counts, and only if it is worth asking the system.
void require_output_memory(std::span<const Job> batch, const PathPlan& paths,
                           const ForecastOptions& request, const std::vector<Forecast>& out) {
  constexpr std::size_t kWorthAsking = std::size_t{64} << 20;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::size_t needed = output_bytes(*batch[i].series, paths.num_paths, request);
    const std::size_t held = held_bytes(out[i]);
    bytes += needed > held ? needed - held : 0;
  }
  if (bytes > kWorthAsking) {
    require_memory(bytes, "this forecast's answer",
                   "ask for fewer series, samples or quantiles, or a shorter horizon");
  }
}

std::string folder_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

// What engines share that are twins. It is complete and constant once the first one is loaded.
struct SharedWeights {
  std::optional<LoadedWeights> packed;
  std::optional<ReferenceToto1<float>> reference32;
  std::optional<ReferenceToto1<double>> reference64;
};

struct Engine::Impl {
  Impl(const std::string& folder, const EngineOptions& wanted)
      : options(resolve_options(wanted)), pool(options.threads) {
    const auto start = std::chrono::steady_clock::now();
    const Checkpoint checkpoint = Checkpoint::open(folder);
    require_memory(bytes_needed(checkpoint.config(), options), folder.c_str(),
                   "its config.json asks for that much");
    info.warnings = checkpoint.warnings();
    config = checkpoint.config();
    auto loading = std::make_shared<SharedWeights>();
    if (options.mode == Mode::reference) {
      std::future<std::string> hash = start_hashing(checkpoint);
      if (options.dtype == DType::f64) {
        info.weight_bytes = loading->reference64.emplace(checkpoint).weight_bytes();
      } else {
        info.weight_bytes = loading->reference32.emplace(checkpoint).weight_bytes();
      }
      info.weights_sha256 = hash.get();
    } else {
      const LoadedWeights& loaded =
          loading->packed.emplace(load_weights(checkpoint, options, pool));
      info.weights_sha256 = loaded.sha256;
      info.warnings.insert(info.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
      info.weight_bytes = loaded.weights.bytes();
    }
    shared = std::move(loading);
    build();
    info.name = folder_name(folder);
    info.path = folder;
    info.trained = checkpoint.trained();
    info.patch_size = config.patch_size;
    info.embed_dim = config.embed_dim;
    info.num_layers = config.num_layers;
    info.num_heads = config.num_heads;
    info.mlp_hidden_dim = config.mlp_hidden_dim;
    info.num_components = config.num_components;
    info.num_parameters = config.num_parameters(checkpoint.has_variate_labels());
    info.minimum_scale = minimum_scale(config);
#if defined(__GLIBC__)
    ::malloc_trim(0);  // what packing used goes back to the system
#endif
    timings.load = milliseconds_since(start);
  }

  // A twin.
  Impl(const Impl& other, int threads)
      : options(other.options),
        pool(threads),
        config(other.config),
        info(other.info),
        shared(other.shared) {
    options.threads = threads;
    build();
  }

  // Around the weights: what an engine has for itself.
  void build() {
    const auto& packed = shared->packed;
    if (!packed) return;
    model.emplace(config, options.dtype, packed->weights, kernels_for(options.isa), pool);
    if (options.mode != Mode::standard) plans.emplace(options.plan_cache_size, options.on_plan);
    if (options.mode == Mode::max_autotune) {
      tuning.emplace(*model, options, pool, options.cache.folder);
    }
    forecaster.emplace(*model, pool, plans ? &*plans : nullptr, tuning ? &*tuning : nullptr);
  }

  void run(std::span<const Series> batch, const ForecastOptions& request,
           std::vector<Forecast>& out, Trace* trace) {
    const std::lock_guard lock(mutex);
    jobs.clear();
    for (const Series& series : batch) jobs.push_back({&series});
    run_jobs(request, out, trace);
  }

  void run(std::span<Session* const> sessions, const ForecastOptions& request,
           std::vector<Forecast>& out) {
    const std::lock_guard lock(mutex);
    jobs.clear();
    for (const Session* session : sessions) {
      Session::Impl& item = *session->impl_;
      if (item.engine.get() != this) {
        fail(ErrorCode::invalid_argument, "session {} of the batch belongs to another engine",
             jobs.size());
      }
      jobs.push_back(
          {&item.series, &item.kept, static_cast<std::uint64_t>(item.stats.points_dropped)});
    }
    std::vector<const Series*> seen;
    seen.reserve(jobs.size());
    for (const Job& job : jobs) seen.push_back(job.series);
    std::sort(seen.begin(), seen.end());
    if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
      fail(ErrorCode::invalid_argument, "a session stands twice in one batch, expected each once");
    }
    run_jobs(request, out, nullptr);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      Session::Impl& item = *sessions[i]->impl_;
      const int patches = (out[i].context_length + config.patch_size - 1) / config.patch_size;
      const int reused = forecaster ? forecaster->patches_reused(i) : 0;
      ++item.stats.forecasts;
      item.stats.patches_reused += reused;
      item.stats.patches_computed += patches - reused;
    }
  }

  // Runs `jobs` under the lock.
  void run_jobs(const ForecastOptions& request, std::vector<Forecast>& out, Trace* trace) {
    const std::span<const Job> batch = jobs;
    validate_options(request);
    const auto place = [&batch](std::size_t i) {
      return batch.size() > 1 ? static_cast<int>(i) : kByItself;
    };
    for (std::size_t i = 0; i < batch.size(); ++i) {
      validate_series(*batch[i].series, request.horizon, place(i));
    }
    const auto start = std::chrono::steady_clock::now();
    timings.prefill = timings.decode = 0;
    const PathPlan paths(request, config.patch_size);
    out.resize(batch.size());
    require_output_memory(batch, paths, request, out);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Series& series = *batch[i].series;
      const ContextShape context =
          context_shape(series, request.max_context, config.patch_size, place(i));
      prepare_output(series, context.length, paths.num_paths, request, out[i]);
    }
    if (forecaster) {
      forecaster->run(batch, request, out, timings, trace);
    } else {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const auto compute = [&](const auto& reference) {
          if (!reference) return;
          reference_forecast(*reference, *batch[i].series, request, options.use_kv_cache, pool,
                             out[i], timings, trace);
        };
        compute(shared->reference64);
        compute(shared->reference32);
        if (request.progress)
          request.progress(static_cast<int>(i) + 1, static_cast<int>(batch.size()));
      }
    }
    timings.total = milliseconds_since(start);
  }

  EngineOptions options;
  ThreadPool pool;
  Config config;
  ModelInfo info;
  std::shared_ptr<const SharedWeights> shared;  // before the model that reads them
  std::optional<Toto1> model;
  std::optional<PlanCache> plans;  // these two before the forecaster that uses them
  std::optional<Tuning> tuning;
  std::optional<Forecaster> forecaster;
  std::vector<Job> jobs;     // of the running call
  mutable std::mutex mutex;  // one forecast at a time uses pool and state
  Timings timings;
};

Engine::Engine(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Engine Engine::load(const std::string& folder, const EngineOptions& options) {
  try {
    return Engine(std::make_shared<Impl>(folder, options));
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "not enough memory to load {}", folder);
  }
}

Engine Engine::twin(int threads) const {
  EngineOptions wanted = impl_->options;
  if (threads != 0) wanted.threads = threads;
  try {
    return Engine(std::make_shared<Impl>(*impl_, resolve_options(wanted).threads));
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "not enough memory for another engine");
  }
}

void Engine::forecast_into(std::span<const Series> batch, const ForecastOptions& options,
                           std::vector<Forecast>& out) const {
  try {
    impl_->run(batch, options, out, nullptr);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory,
         "not enough memory for this forecast; use fewer samples or series at once");
  }
}

std::vector<Forecast> Engine::forecast(std::span<const Series> batch,
                                       const ForecastOptions& options) const {
  std::vector<Forecast> out;
  forecast_into(batch, options, out);
  return out;
}

Forecast Engine::forecast(const Series& series, const ForecastOptions& options) const {
  return std::move(forecast(std::span(&series, 1), options)[0]);
}

Session Engine::open(Series history, const SessionOptions& options) const {
  try {
    return Session(std::make_unique<Session::Impl>(impl_, std::move(history), options));
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "not enough memory to open a session");
  }
}

void Engine::forecast_into(std::span<Session* const> sessions, const ForecastOptions& options,
                           std::vector<Forecast>& out) const {
  try {
    impl_->run(sessions, options, out);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory,
         "not enough memory for these sessions; use fewer at once or a smaller max_bytes");
  }
}

Forecast Session::forecast(const ForecastOptions& options) {
  std::vector<Forecast> out;
  Session* const self = this;
  Engine(impl_->engine).forecast_into(std::span(&self, 1), options, out);
  return std::move(out[0]);
}

Trace Engine::trace(const Series& series, int horizon) const {
  ForecastOptions options;
  options.horizon = horizon;
  options.quantiles.clear();
  options.decode = Decode::mean;
  options.max_context = static_cast<int>(std::max<std::size_t>(series.length(), 1));
  Trace trace;
  std::vector<Forecast> out;
  try {
    impl_->run(std::span(&series, 1), options, out, &trace);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory,
         "not enough memory for this trace; use a shorter context or horizon");
  }
  if (trace.mean.empty()) trace.mean.assign(out[0].mean.begin(), out[0].mean.end());
  return trace;
}

const ModelInfo& Engine::model() const noexcept { return impl_->info; }
const EngineOptions& Engine::options() const noexcept { return impl_->options; }
Timings Engine::timings() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->timings;
}
void Engine::finish_warm_up() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  if (auto& cache = impl_->plans) cache->finish_warm_up();
}
std::int64_t Engine::plans() const noexcept {
  const auto& cache = impl_->plans;
  return cache ? cache->num_made() : 0;
}
std::int64_t Engine::replans() const noexcept {
  const auto& cache = impl_->plans;
  return cache ? cache->replans() : 0;
}
void EngineTestHook::damage_weight(const Engine& engine) {
  Engine::Impl& impl = *engine.impl_;
  const std::lock_guard lock(impl.mutex);
  const auto& packed = impl.shared->packed;
  if (!packed || packed->mapped) {
    fail(ErrorCode::unsupported, "there is no packed weight in memory of this engine's own");
  }
  const auto bytes = packed->weights.layers.front().down.panels.as_bytes();
  auto* byte = const_cast<std::byte*>(bytes.data()) + sizeof(float) - 1;
  *byte = std::byte{0x41};  // of float32 sign and exponent: 8 or more, where weights are below 1
}
std::string Engine::kv_cache_name() const {
  if (impl_->forecaster) return kKvCacheName;
  return impl_->options.use_kv_cache ? "ReferenceKVCache" : "none";
}

}  // namespace toto
