// The public Engine: validates requests, takes the lock and runs one of the two forecasters. All
// errors caused by the caller are thrown here, before the first kernel.
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include "base/error.h"
#include "base/memory.h"
#include "base/process_memory.h"
#include "base/stopwatch.h"
#include "base/threads.h"
#include "forecast/forecaster.h"
#include "forecast/outputs.h"
#include "forecast/plan.h"
#include "forecast/reference_forecaster.h"
#include "forecast/series.h"
#include "forecast/session.h"
#include "forecast/weight_loading.h"
#include "model/architecture.h"
#include "model/checkpoint.h"

namespace toto {
namespace {

// Bytes that loading will keep. Checked first, because a small file may describe a large model.
std::uint64_t bytes_needed(const Checkpoint& checkpoint, const EngineOptions& options) {
  if (options.mode != Mode::reference) {
    return checkpoint.architecture().declare(checkpoint, options.dtype)->bytes();
  }
  return static_cast<std::uint64_t>(checkpoint.num_parameters()) *
         (options.dtype == DType::f64 ? sizeof(double) : sizeof(float));
}

// Answers of many series, steps and samples may need more memory than the forecast itself. Counts
// only what `out` does not hold yet, and asks the system only above 64 MB.
void require_output_memory(std::span<const BatchItem> batch, const ModelFacts& facts,
                           const ForecastOptions& request, const std::vector<Forecast>& out) {
  constexpr std::size_t kWorthAsking = std::size_t{64} << 20;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto needed =
        static_cast<std::size_t>(answer_bytes(batch[i].series->num_variates, request, facts));
    const std::size_t held = held_bytes(out[i]);
    bytes += needed > held ? needed - held : 0;
  }
  if (bytes > kWorthAsking) {
    require_memory(bytes, "this forecast's answer",
                   "ask for fewer series, samples or quantiles, or a shorter horizon");
  }
}

// The last component of a path, without trailing slashes.
std::string folder_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

// Weights shared by an engine and its twins. Immutable once the first engine is loaded.
struct SharedWeights {
  std::shared_ptr<const Architecture> architecture;
  std::optional<LoadedWeights> packed;
  std::unique_ptr<Oracle> oracle;
};

// Members are destroyed in reverse order: the forecaster and the network before the weights they
// read.
struct Engine::Impl {
  Impl(const std::string& folder, const EngineOptions& wanted)
      : options(resolve_options(wanted)), pool(options.threads) {
    const auto start = std::chrono::steady_clock::now();
    const Checkpoint checkpoint = Checkpoint::open(folder);
    if (!options.use_kv_cache && !checkpoint.architecture().facts().can_sample) {
      fail(ErrorCode::invalid_argument,
           "{}: {} has no path without a cache of keys and values; leave out --no-kv-cache", folder,
           checkpoint.architecture().facts().architecture);
    }
    const std::uint64_t needed = bytes_needed(checkpoint, options);
    require_memory(needed, folder.c_str(), "its config.json describes a model of that size");
    info.warnings = checkpoint.warnings();
    auto loading = std::make_shared<SharedWeights>();
    loading->architecture = checkpoint.shared_architecture();
    if (options.mode == Mode::reference) {
      std::future<std::string> hash = start_hashing(checkpoint);
      loading->oracle = checkpoint.architecture().oracle(checkpoint, options.dtype == DType::f64);
      info.weight_bytes = needed;
      info.weights_sha256 = hash.get();
    } else {
      const LoadedWeights& loaded =
          loading->packed.emplace(load_weights(checkpoint, options, pool));
      info.weights_sha256 = loaded.sha256;
      info.warnings.insert(info.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
      info.weight_bytes = loaded.weights->bytes();
    }
    shared = std::move(loading);
    build();
    info.name = folder_name(folder);
    info.path = folder;
    info.trained = checkpoint.trained();
    info.config_sha256 = checkpoint.config_sha256();
    info.facts = shared->architecture->facts();
    info.shape = shared->architecture->sizes();
    info.num_parameters = checkpoint.num_parameters();
    release_freed_memory();  // that packing used
    timings.load = milliseconds_since(start);
  }

  // A twin.
  Impl(const Impl& other, int threads)
      : options(other.options), pool(threads), info(other.info), shared(other.shared) {
    options.threads = threads;
    build();
  }

  // Builds what each engine owns around the shared weights.
  void build() {
    const auto& packed = shared->packed;
    if (!packed) return;
    const Architecture& architecture = *shared->architecture;
    const Kernels& kernels = kernels_for(options.isa);
    network = architecture.network(*packed->weights, options.dtype, kernels, pool);
    if (options.mode != Mode::standard) plans.emplace(options.plan_cache_size, options.on_plan);
    if (options.mode == Mode::max_autotune) {
      tuning.emplace(*network, options, pool, options.cache.folder);
    }
    forecaster.emplace(architecture, *network, kernels, pool, plans ? &*plans : nullptr,
                       tuning ? &*tuning : nullptr);
  }

  void run(std::span<const Series> batch, const ForecastOptions& request,
           std::vector<Forecast>& out, Trace* trace) {
    const std::lock_guard lock(mutex);
    items.clear();
    for (const Series& series : batch) items.push_back({&series});
    run_items(request, out, trace);
  }

  void run(std::span<Session* const> sessions, const ForecastOptions& request,
           std::vector<Forecast>& out) {
    const std::lock_guard lock(mutex);
    items.clear();
    for (const Session* session : sessions) {
      Session::Impl& item = *session->impl_;
      if (item.engine.get() != this) {
        fail(ErrorCode::invalid_argument, "session {} of the batch belongs to another engine",
             items.size());
      }
      items.push_back(
          {&item.series, &item.kept, static_cast<std::uint64_t>(item.stats.points_dropped)});
    }
    std::vector<const Series*> seen;
    seen.reserve(items.size());
    for (const BatchItem& item : items) seen.push_back(item.series);
    std::sort(seen.begin(), seen.end());
    if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
      fail(ErrorCode::invalid_argument, "a session appears twice in one batch, expected each once");
    }
    run_items(request, out, nullptr);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      Session::Impl& item = *sessions[i]->impl_;
      const int patches = (out[i].context_length - 1) / info.facts.patch + 1;
      const int reused = forecaster ? forecaster->patches_reused(i) : 0;
      ++item.stats.forecasts;
      item.stats.patches_reused += reused;
      item.stats.patches_computed += patches - reused;
    }
  }

  // Runs `items`; the caller holds the lock.
  void run_items(const ForecastOptions& request, std::vector<Forecast>& out, Trace* trace) {
    const std::span<const BatchItem> batch = items;
    validate_options(request);
    validate_for(info.facts, request);
    const auto place = [&batch](std::size_t i) {
      return batch.size() > 1 ? static_cast<int>(i) : kByItself;
    };
    for (std::size_t i = 0; i < batch.size(); ++i) {
      validate_series(*batch[i].series, request.horizon, place(i));
      validate_for(info.facts, *batch[i].series, place(i));
    }
    const auto start = std::chrono::steady_clock::now();
    timings.prefill = timings.decode = 0;
    out.resize(batch.size());
    require_output_memory(batch, info.facts, request, out);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Series& series = *batch[i].series;
      const ContextShape context = context_shape(series, request.max_context, info.facts, place(i));
      prepare_output(series, context.length, request, info.facts, out[i]);
      choose_scale(series, context, request, info.facts, out[i].scale, place(i));
    }
    if (forecaster) {
      forecaster->run(batch, request, out, timings, trace);
    } else {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        reference_forecast({.oracle = *shared->oracle,
                            .facts = info.facts,
                            .in_double = options.dtype == DType::f64,
                            .use_cache = options.use_kv_cache},
                           *batch[i].series, request, pool, out[i], timings, trace);
        if (request.progress)
          request.progress(static_cast<int>(i) + 1, static_cast<int>(batch.size()));
      }
    }
    timings.total = milliseconds_since(start);
  }

  EngineOptions options;
  ThreadPool pool;
  ModelInfo info;
  std::shared_ptr<const SharedWeights> shared;  // before the network that reads them
  std::unique_ptr<Network> network;
  std::optional<PlanCache> plans;  // these two before the forecaster, which uses them
  std::optional<Tuning> tuning;
  std::optional<Forecaster> forecaster;
  std::vector<BatchItem> items;  // of the running call
  mutable std::mutex mutex;      // pool, memory and `items` serve one forecast at a time
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
         "not enough memory for this forecast; use fewer samples, or fewer series in one call");
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
         "not enough memory for these sessions; use fewer in one call or a smaller max_bytes");
  }
}

Forecast Session::forecast(const ForecastOptions& options) {
  std::vector<Forecast> out;
  Session* const self = this;
  Engine(impl_->engine).forecast_into(std::span(&self, 1), options, out);
  return std::move(out[0]);
}

// A forecast of the whole series along the path of means (or medians), with everything the network
// says about the first block.
Trace Engine::trace(const Series& series, const ForecastOptions& request) const {
  ForecastOptions options;
  options.horizon = request.horizon;
  options.missing = request.missing;
  options.block = request.block;
  options.min_observed = request.min_observed;
  options.cap = request.cap;
  options.quantiles.clear();
  options.decode = Decode::mean;
  options.scale = 1;  // what the network says of the series itself
  options.max_context = static_cast<int>(std::max<std::size_t>(series.length(), 1));
  Trace trace;
  std::vector<Forecast> out;
  try {
    impl_->run(std::span(&series, 1), options, out, &trace);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory,
         "not enough memory for this trace; use a shorter context or horizon");
  }
  const char* path = model().facts.can_sample ? "mean" : "median";
  if (trace.find(path) == nullptr) {
    trace.arrays.push_back({.name = path,
                            .shape = {series.num_variates, request.horizon},
                            .values = {out[0].mean.begin(), out[0].mean.end()},
                            .step_axis = 1});
  }
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
std::string Engine::kv_cache_name() const {
  if (impl_->forecaster) return kKvCacheName;
  return impl_->options.use_kv_cache ? "ReferenceKVCache" : "none";
}

}  // namespace toto
