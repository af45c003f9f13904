// toto.cpp: native runtime for Toto, Datadog's time-series foundation model. The only public
// header.
//
//   auto engine = toto::Engine::load("models/toto-mini");
//   toto::Series series{.id = "BTCUSD", .values = closes};
//   toto::Forecast forecast = engine.forecast(series, {.horizon = 64});
//
// The library never prints, exits or reads the environment. Every mistake in a call is reported as
// one toto::Error before any computation starts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace toto {

std::string_view version() noexcept;

// ---------------------------------------------------------------------------------------- errors

enum class ErrorCode {
  invalid_argument,  // a value of the caller is out of range
  not_found,         // a file, folder or model does not exist
  corrupt_file,      // a file is wrong: the message names file, tensor or line
  unsupported,       // well formed, but this engine cannot do it
  out_of_memory,     // memory or disk
  overloaded,        // a queue or limit is full; try again
  cancelled,         // the caller asked to stop
  internal,          // a bug of ours
};

// The message is one sentence: what is wrong, the value found, what was expected, the next step.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

// --------------------------------------------------------------------------------------- choices

enum class Mode { reference, standard, reduce_overhead, max_autotune };  // standard: "default"
enum class DType { f32, f64, f16, bf16, int8 };
enum class Isa { automatic, reference, avx2, avx512 };
enum class Decode { sample, mean };          // what is fed back beyond the first block
enum class Missing { ffill, linear, mask };  // what replaces a NaN in the history

// Names as the command line spells them; parse_* throws Error(invalid_argument) listing the
// choices.
std::string_view name_of(Mode mode) noexcept;
std::string_view name_of(DType dtype) noexcept;
std::string_view name_of(Isa isa) noexcept;
std::string_view name_of(Decode decode) noexcept;
std::string_view name_of(Missing missing) noexcept;
Mode parse_mode(std::string_view name);
DType parse_dtype(std::string_view name);
Isa parse_isa(std::string_view name);
Decode parse_decode(std::string_view name);
Missing parse_missing(std::string_view name);

// Packed weights kept on disk, so that the next start maps them instead of packing them again. They
// are used only if the model's files have not changed and their checksum is right. A bad cache is
// never an error: see ModelInfo::warnings.
struct CacheOptions {
  std::string folder = {};  // empty: nothing is kept. `reference` mode never keeps anything
  std::uint64_t max_bytes = std::uint64_t{8} << 30;  // in all; the least recently used are dropped
  std::uint64_t min_model_bytes = std::uint64_t{1} << 20;  // smaller models are packed every time
};

struct EngineOptions {
  Mode mode = Mode::standard;
  DType dtype = DType::f32;
  Isa isa = Isa::automatic;
  int threads = 0;            // 0: the physical cores this process may use
  bool use_kv_cache = true;   // false: the reference's uncached path, `reference` mode only
  int plan_cache_size = 256;  // plans kept, in the modes that keep them
  CacheOptions cache = {};
  // Called with a sentence for every plan made and its reason, and for weights packed or read.
  std::function<void(std::string_view)> on_plan = {};
};

// The options with every automatic choice made, as an engine would run with them.
// Error(invalid_argument) for impossible combinations, Error(unsupported) for an instruction set
// this CPU lacks.
EngineOptions resolve_options(EngineOptions options);

// How a distribution becomes the single number of `Forecast::point`.
struct Point {
  enum class Kind {
    mean,
    median,
    quantile,            // a = level
    trimmed_mean,        // a = share cut from each end
    lower_trimmed_mean,  // a = share cut from the upper end
    upper_trimmed_mean,  // a = share cut from the lower end
    mean_minus_std,      // a = number of standard deviations
    mean_plus_std,       // a = number of standard deviations
    mean_quantile_mix,   // a = level, b = weight of the mean
    quantile_plus_std,   // a = level, b = number of standard deviations
  };
  Kind kind = Kind::mean;
  double a = 0;
  double b = 0;
};

// "mean", "trimmed_mean_10", "mean_quantile_mix_0.4_0.5", ...; a share or level above 1 is a
// percentage.
Point parse_point(std::string_view spec);
std::string name_of(const Point& point);

inline constexpr int kDefaultPaths = 256;

struct ForecastOptions {
  int horizon = 64;  // 1 to kMaxHorizon
  std::vector<double> quantiles = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};  // inside (0, 1)
  int max_context = 4096;  // number of latest points of history used at most
  // Above 0: everything is computed from this number of sampled paths, as the reference does.
  int num_samples = 0;
  // Otherwise the first block is exact. Beyond it this number of paths is simulated, and mean and
  // quantiles are those of the average of the paths' predicted distributions. 1 to kMaxSamples.
  int num_paths = kDefaultPaths;
  Decode decode = Decode::sample;
  Missing missing = Missing::ffill;
  Point point = {};
  // Each variate's values are multiplied by this before the network, and its answers divided by it.
  // 0: a power of two per variate, the smallest that lets it vary by kLeastScales smallest scales
  // of the model (1 for most series, whose bits then do not change). See Forecast::scale.
  double scale = 0;
  std::uint64_t seed = 0;
  bool independent_streams = false;  // also key the random numbers by the series' id
  bool keep_samples = false;         // fill Forecast::samples
  // For models with quantile outputs; the defaults are those of the reference's GluonTS wrapper.
  int block = 0;         // steps ahead per pass, whole patches; 0: the whole horizon
  int min_observed = 8;  // patches that end before this number of values use statistics of the
                         // first ones; 0: their own
  double cap = 1e4;      // forecasts stay within this number of scales around the context; 0: off
  bool strict_quantiles = false;  // refuse levels beyond the model's own
  // Called between steps; true ends the call with Error(cancelled).
  std::function<bool()> cancelled = {};
  std::function<void(int done, int total)> progress = {};  // series finished so far
};

inline constexpr int kMaxHorizon = 100'000;
inline constexpr int kMaxSamples = 1'000'000;
// The automatic scale makes the standard deviation of a variate's context at least this many times
// ModelFacts::minimum_scale.
inline constexpr double kLeastScales = 12;

// ------------------------------------------------------------------------------------------ data

// One series of one or more variates that may see each other. The last `num_exogenous` variates
// have a known future.
struct Series {
  std::string id = {};
  int num_variates = 1;
  std::vector<float> values = {};            // [variate][time]; NaN is missing
  std::vector<std::int64_t> group_ids = {};  // empty (all one group), [variate], or [variate][time]
  std::vector<std::uint8_t> mask = {};       // empty, or [variate][time]; 0: the value is ignored
  int num_exogenous = 0;
  std::vector<float> future_exogenous = {};  // empty, or [exogenous][horizon]

  std::size_t length() const noexcept {
    return num_variates > 0 ? values.size() / num_variates : 0;
  }
};

struct Forecast {
  std::string id;
  int num_variates = 0;  // all of the series' variates; exogenous ones carry their known future
  int horizon = 0;
  int context_length = 0;        // points of history used
  std::vector<float> mean;       // [variate][step]
  std::vector<float> median;     // [variate][step]
  std::vector<float> point;      // [variate][step], see ForecastOptions::point
  std::vector<float> quantiles;  // [quantile][variate][step], in the order of the options
  std::vector<float> samples;    // [variate][sample][step], with keep_samples
  int num_samples = 0;           // paths drawn; 0 when everything was exact
  int num_paths = 0;             // the same, but 0 with ForecastOptions::num_samples
  int exact_steps = 0;           // steps before the first that depends on drawn paths
  std::vector<double> scale;     // [variate], the factor of ForecastOptions::scale
};

// One array of numbers with a name.
struct TraceArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  int variate_axis = 0;
  int step_axis = -1;  // the axis of `shape` that counts steps ahead; -1: none
  // Output of the network itself, different for every series and step.
  bool distinctive = false;
};

// Output of the network for the first steps ahead, before any sampling, and the path that is fed
// back ("mean" or "median"). Goldens hold the same arrays. The architecture decides which arrays
// there are. Computed in the engine's precision, returned as double.
struct Trace {
  std::vector<TraceArray> arrays;
  const TraceArray* find(std::string_view name) const noexcept;  // null if not found
};

// ---------------------------------------------------------------------------------------- engine

struct Timings {  // milliseconds of the latest call, summed over its series
  double load = 0, prefill = 0, decode = 0, total = 0;
};

// Properties of a model that callers need, for every architecture.
struct ModelFacts {
  std::string architecture = {};    // "toto1"
  int patch = 0;                    // time steps per position of the network
  int block = 0;                    // steps ahead that one pass forecasts; 0: any horizon
  std::vector<double> levels = {};  // native quantile levels; empty: every level is exact
  bool can_sample = false;  // samples are paths through time; false: independent draws of each step
  // Smallest scale: the model sees (value - mean) / scale with a scale of at least this. A series
  // that varies by much less looks flat to it and gets bands that are too wide, unless it is
  // multiplied first (ForecastOptions::scale).
  double minimum_scale = 0;
  int max_patches = 0;         // context and horizon together
  std::size_t step_bytes = 0;  // distribution of one step of one simulated path
  // The network reads which values are missing: filled values stay marked as missing, patches
  // without any value are left out, and the last patch is always read as if nothing were missing.
  bool reads_gaps = false;
  std::size_t cache_bytes_per_patch = 0;  // keys and values of one variate

  // Steps of a horizon that one pass covers, before anything is fed back.
  int exact_steps(int horizon) const noexcept {
    return block == 0 || horizon < block ? horizon : block;
  }
  // Steps of the shortest block: a horizon beyond it may need values that are fed back.
  int first_block() const noexcept { return block > 0 ? block : patch; }
};

// Number of paths that a forecast with these options draws: 0 for none, 1 for one path of means.
int planned_paths(const ForecastOptions& options, const ModelFacts& facts) noexcept;
// Steps whose mean and quantiles come straight from a distribution, not from sampled paths.
int exact_steps(const ForecastOptions& options, const ModelFacts& facts) noexcept;
// Bytes of the forecast arrays of this number of variates. A double, because products of limits
// overflow integers.
double answer_bytes(double num_variates, const ForecastOptions& options,
                    const ModelFacts& facts) noexcept;

// Bytes of the simulated paths of a series of this number of variates, while it is forecast.
double path_bytes(double num_variates, const ForecastOptions& options,
                  const ModelFacts& facts) noexcept;

struct NamedNumber {
  std::string name;
  std::int64_t value = 0;
};

struct ModelInfo {
  std::string name;  // the folder's name
  std::string path;
  bool trained = true;         // false for seeded random weights
  std::string weights_sha256;  // of the weight file
  std::string config_sha256;   // of config.json
  ModelFacts facts;
  std::vector<NamedNumber> shape;  // sizes of the network, by the names of its config.json
  std::int64_t num_parameters = 0;
  std::size_t weight_bytes = 0;       // in memory
  std::vector<std::string> warnings;  // unknown tensors, a cache that cannot be used
};

// Limits of what a session keeps.
struct SessionOptions {
  // Bytes of the network's keys and values. A series that grows point by point keeps up to
  // ModelFacts::patch contexts, one per alignment of the patches. A context that does not fit is
  // computed again every time.
  std::size_t max_bytes = std::size_t{128} << 20;
  // Points of history. Beyond it the oldest quarter is dropped: the context then begins later, and
  // the next forecasts compute all of it.
  std::size_t max_length = std::size_t{1} << 20;
};

struct SessionStats {
  std::int64_t forecasts = 0;
  std::int64_t patches_reused = 0;  // in the contexts of all forecasts; variates share one
  std::int64_t patches_computed = 0;
  std::int64_t points_dropped = 0;  // beyond SessionOptions::max_length
  int contexts = 0;                 // currently kept
  std::size_t bytes = 0;            // of these contexts
};

// A series that grows. Every forecast is, bit for bit, Engine::forecast(session.series(), options).
// The session keeps keys and values of earlier contexts, so that only patches that are new or
// aligned differently are computed. Patches are counted back from the latest point: after appending
// a multiple of the patch only the new ones are computed; after one point the context kept one
// patch of points ago is continued. Reference mode computes everything.
//
// Movable, not copyable; one thread at a time. Keeps the engine's model alive.
class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // [variate][new point]; NaN is missing. New points are not masked; per-point group ids continue
  // with their last value. A known future is then out of date and dropped.
  void append(std::span<const float> values);
  void set_known_future(std::vector<float> values);  // Series::future_exogenous

  Forecast forecast(const ForecastOptions& options = {});
  const Series& series() const noexcept;  // the history that forecasts use
  SessionStats stats() const noexcept;

 private:
  friend class Engine;
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Immutable after load apart from scratch memory; forecasts from several threads are safe and take
// turns. Movable, not copyable.
class Engine {
 public:
  // `folder` holds config.json and model.safetensors (or a sharded index).
  static Engine load(const std::string& folder, const EngineOptions& options = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Another engine that shares the weights in memory but has separate threads, scratch memory and
  // plans: both can forecast at the same time, with the same bits. Its threads inherit the priority
  // of the calling thread. 0: as many threads as this engine.
  Engine twin(int threads = 0) const;

  Forecast forecast(const Series& series, const ForecastOptions& options = {}) const;
  std::vector<Forecast> forecast(std::span<const Series> batch,
                                 const ForecastOptions& options = {}) const;
  // Reuses the memory of `out`: after the first call of a shape nothing is allocated.
  void forecast_into(std::span<const Series> batch, const ForecastOptions& options,
                     std::vector<Forecast>& out) const;

  // A session that begins with this history.
  Session open(Series history, const SessionOptions& options = {}) const;
  // Many sessions of this engine in shared passes; each gets the answer of its forecast().
  void forecast_into(std::span<Session* const> sessions, const ForecastOptions& options,
                     std::vector<Forecast>& out) const;

  // Uses the horizon, missing, block, min_observed and cap of the options.
  Trace trace(const Series& series, const ForecastOptions& options) const;

  const ModelInfo& model() const noexcept;
  const EngineOptions& options() const noexcept;  // with every automatic choice made
  Timings timings() const;
  // A replan is a plan made after finish_warm_up(). Modes that keep no plans make none.
  void finish_warm_up() const noexcept;
  std::int64_t plans() const noexcept;    // made so far
  std::int64_t replans() const noexcept;  // made after warm-up
  std::string kv_cache_name() const;      // name of the cache of keys and values

 private:
  friend class Session;
  struct Impl;
  explicit Engine(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // sessions share it
};

// Every instruction set that some build has kernels for, from the plainest to the fastest.
std::span<const Isa> all_isas() noexcept;
// The CPU's best among those this build has kernels for.
Isa best_isa() noexcept;
bool isa_available(Isa isa) noexcept;

}  // namespace toto
