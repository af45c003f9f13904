// The interface of a model architecture. To add one, write a folder under src/model/ with these
// eight parts and add a row to the table in architectures.cc; no other file names its types.
//
//   1 config        keys that identify its config.json, and the checked numbers     Architecture
//   2 tensors       names and shapes, used by loading, `inspect` and `make-model`   Architecture
//   3 packing       arrays in a fixed order, with a version                         PackedWeights
//   4 reading       context to rows and statistics                                  Network
//   5 forward       one pass over rows: noexcept, no allocation                     Network
//   6 distribution  a row of the head to a StepDistribution                         Network
//   7 decoder       what is fed back beyond the first block                         Architecture
//   8 oracle        a plain implementation that shares no code with 3 to 5          Oracle
//
// Virtual calls happen once per request, series, pass or forecast step, never inside a kernel: a
// call costs 2 ns, the shortest of these units several microseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/threads.h"
#include "io/json.h"
#include "model/model_shape.h"
#include "model/pass.h"
#include "model/scaler_state.h"
#include "model/schedules.h"
#include "model/step_distribution.h"
#include "model/weight_array.h"
#include "toto/toto.h"

namespace toto {

class Checkpoint;

// --------------------------------------------------------------------------------------- weights

// All weights of an optimised network, folded, permuted and packed as the kernels read them.
// Declared first, so that sizes are known, then packed from a checkpoint or mapped from a file.
// Immutable and thread-safe afterwards; not movable, because it stores the addresses of its arrays.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;
  virtual ~PackedWeights() = default;

  // Uses ready-made contents: arrays() of packed weights of the same shape, which must outlive
  // this.
  void map(std::span<const std::span<const std::byte>> arrays);
  std::vector<std::span<const std::byte>> arrays() const;  // in a fixed order
  std::vector<std::uint64_t> array_sizes() const;          // in bytes, in the same order
  std::size_t bytes() const;                               // sum of array_sizes()

 protected:
  // Registers an array. Call it for each one, in the order of the forward pass.
  void add(AnyWeightArray& array) { arrays_.push_back(&array); }

 private:
  std::vector<AnyWeightArray*> arrays_;
};

// --------------------------------------------------------------------------------------- network

// The known future of one variate; NaN is missing, empty: not known. The network reads the values
// times a factor, like the context.
struct KnownFuture {
  std::span<const float> values = {};
  double factor = 1;

  bool empty() const noexcept { return values.empty(); }
  std::size_t size() const noexcept { return values.size(); }
  float operator[](std::size_t i) const noexcept { return static_cast<float>(values[i] * factor); }
};

// How one variate's context is read.
struct ContextReading {
  int min_observed = 0;  // as ForecastOptions
  double cap = 0;
  KnownFuture known_future = {};
};

// An optimised network ready to run: weights, kernels and a thread pool. The caller owns cache and
// workspace. read_context(), read_patch(), step() and position_factors() may be called from several
// threads together; forward() uses the pool itself, so only one at a time.
class Network {
 public:
  virtual ~Network() = default;

  const ModelShape& shape() const noexcept { return shape_; }
  const KvLayout& kv_layout() const noexcept { return kv_layout_; }

  // Scales one variate's padded context in place. `rows` begins with mask.size() values and has
  // room for [patch][input_width]; on return it holds the network's input. `loc` and `scale`, each
  // [steps of a patch], receive the affine transform of the next patch. Returns the statistics from
  // which read_patch() continues.
  virtual ScalerState read_context(std::span<float> rows, std::span<const std::uint8_t> mask,
                                   const ContextReading& reading, double* loc,
                                   double* scale) const noexcept = 0;
  // The same for one more patch that is fed back; `row` is [input_width].
  virtual void read_patch(ScalerState& state, const float* values, float* row, double* loc,
                          double* scale) const noexcept = 0;
  // The same for several patches, [patch][step], into consecutive rows. Known values may be NaN.
  virtual void read_block(ScalerState& state, std::span<const float> values, float* rows,
                          double* loc, double* scale) const noexcept;
  // The row of a patch to predict of a variate whose future is known.
  virtual void read_known(ScalerState& state, const float* values, float* row, double* loc,
                          double* scale) const noexcept;
  // Number of the constant vector of a leading row, and of a query row (a patch to predict).
  virtual int leading_constant(bool exogenous) const noexcept;
  virtual int query_constant() const noexcept;

  // Writes the shape().position_floats factors of a position in a pass that ends at position
  // `last`; the first pass, over the context, ended at `first_last`. If both are equal, the result
  // may depend on `position` only: a cached context is reused for longer ones. Leading rows count
  // as positions.
  virtual void position_factors(int position, int last, int first_last, float* dst) const noexcept;
  // Takes the scratch memory of passes with at most this many rows, outputs and visible positions.
  virtual Workspace take_workspace(Arena& arena, int max_rows, int max_outputs,
                                   int max_positions) const = 0;
  // Fills workspace.heads: one row per output, in the order of runs and rows.
  virtual void forward(const Pass& pass, Workspace& workspace) const noexcept = 0;

  // The distribution of one step of an output row, in the units of the data. It is a view of
  // `memory`, which has step_doubles() elements.
  virtual StepDistribution step(const float* head, int step, double loc, double scale,
                                ForecastRange range, std::span<double> memory) const noexcept = 0;
  virtual std::size_t step_doubles() const noexcept = 0;
  // Adds the arrays of a trace. workspace.heads holds the first block's output rows,
  // [variate][output] of the first `num_variates`; loc and scale are [variate][steps of a patch].
  virtual void trace(int num_variates, int outputs, const Workspace& workspace, const double* loc,
                     const double* scale, Trace& trace) const = 0;

  // The matrix products that mode max-autotune measures; none by default.
  virtual std::span<const Product> products() const noexcept { return {}; }
  virtual int num_layers() const noexcept { return 0; }
  // Runs one product on the workspace's buffers. The head ignores `layer`.
  virtual void multiply(Product product, int layer, int rows, const Workspace& workspace,
                        const Schedule& schedule) const noexcept;
  // Makes forward() use these schedules, which must outlive the network.
  virtual void use(const Schedules& schedules) noexcept;
  // The sizes that decide which schedule is fastest: as cache key, and as part of a file name.
  virtual std::string schedule_key() const { return {}; }
  virtual std::string schedule_name() const { return {}; }

 protected:
  explicit Network(const ModelShape& shape) : shape_(shape), kv_layout_(shape) {}

 private:
  ModelShape shape_;
  KvLayout kv_layout_;
};

// ---------------------------------------------------------------------------------------- oracle

// A context as every oracle receives it: gaps filled, left-padded to whole patches.
struct OracleContext {
  int num_variates = 0;
  int num_exogenous = 0;  // the last ones
  int num_patches = 0;
  std::span<const float> values;                  // [variate][patch][step]
  std::span<const std::uint8_t> mask;             // as values; 0: missing
  std::span<const std::int64_t> ids;              // [variate][patch]
  std::span<const std::int64_t> future_ids = {};  // [variate]
  std::span<const float> known_future = {};  // [exogenous][step]; NaN is missing; empty: not known
  int min_observed = 0;                      // as ForecastOptions
  double cap = 0;
};

// One series and its forecast so far, in the oracle's precision. Not thread-safe.
class OraclePath {
 public:
  virtual ~OraclePath() = default;
  virtual std::unique_ptr<OraclePath> fork() const = 0;  // a copy that continues independently

  // Runs the network; afterwards step() covers the next `num_patches` patches. `check` is called
  // between parts of the work and may throw to cancel it.
  virtual void predict(int num_patches, ThreadPool& pool, const std::function<void()>& check) = 0;
  virtual StepDistribution step(int variate, int step, std::span<double> memory) const = 0;
  virtual std::size_t step_doubles() const = 0;
  virtual void append(std::span<const double> values) = 0;  // [variate][step], whole patches
  virtual void trace(Trace& trace) const = 0;               // as Network::trace
};

// Immutable after construction and thread-safe.
class Oracle {
 public:
  virtual ~Oracle() = default;
  // `use_cache` false recomputes everything at every step, if the reference implementation can.
  virtual std::unique_ptr<OraclePath> begin(const OracleContext& context, bool use_cache) const = 0;
};

// ---------------------------------------------------------------------------------- architecture

struct TensorSpec {
  std::string name;  // canonical
  std::vector<std::int64_t> shape;
  float limit = 0;  // make-model draws from [-limit, limit); 0: every element is `fill`
  float fill = 1;   // a norm's weight

  std::int64_t num_elements() const;
};

enum class DecoderKind : std::uint8_t {
  sampled_paths,  // one patch per pass; drawn values or means are fed back
  median_blocks,  // a block of patches per pass; medians are fed back
};

// A checked config.json: everything known about a model without its weights. Immutable.
class Architecture {
 public:
  virtual ~Architecture() = default;

  const ModelFacts& facts() const noexcept { return facts_; }
  const ModelShape& shape() const noexcept { return shape_; }
  virtual DecoderKind decoder() const noexcept = 0;
  // The config in canonical form; part of the packed weights' cache key.
  virtual std::string config_json() const = 0;
  virtual std::vector<NamedNumber> sizes() const = 0;  // for ModelInfo::shape
  // Lines for `inspect`: {"layers", "4, 128 wide, 4 heads, MLP 256 wide"}.
  virtual std::vector<std::pair<std::string, std::string>> described() const = 0;

  // The stored name without exporter-specific prefixes; empty: the tensor is computed, not read.
  virtual std::string canonical_name(std::string_view stored) const { return std::string(stored); }
  virtual std::string stored_name(const std::string& canonical) const { return canonical; }
  // Every tensor, in the order of the forward pass. `has` tells which optional ones exist; an
  // invalid combination is Error(corrupt_file) that begins with `folder`.
  using HasTensor = std::function<bool(std::string_view name)>;
  virtual std::vector<TensorSpec> tensors(const HasTensor& has,
                                          const std::string& folder) const = 0;

  // Increased whenever the same checkpoint packs to different bytes.
  virtual int packing_version() const noexcept = 0;
  // Whether weights may be stored in a type; others are Error(invalid_argument).
  virtual bool stores(DType type) const noexcept { return type != DType::f64; }
  // declare() computes sizes only; pack() also reads the tensors. `type` is f32, f16, bf16 or int8.
  virtual std::unique_ptr<PackedWeights> declare(const Checkpoint& checkpoint,
                                                 DType type) const = 0;
  virtual std::unique_ptr<PackedWeights> pack(const Checkpoint& checkpoint, DType type,
                                              const Kernels& kernels, ThreadPool& pool) const = 0;
  // `weights` were made by this architecture with this type and outlive the network. Several
  // networks may share them, each with its own pool.
  virtual std::unique_ptr<Network> network(const PackedWeights& weights, DType type,
                                           const Kernels& kernels, ThreadPool& pool) const = 0;
  virtual std::unique_ptr<Oracle> oracle(const Checkpoint& checkpoint, bool in_double) const = 0;

 protected:
  Architecture(ModelFacts facts, const ModelShape& shape)
      : facts_(std::move(facts)), shape_(shape) {}

 private:
  ModelFacts facts_;
  ModelShape shape_;
};

// ---------------------------------------------------------------------------------- registration

struct ModelPreset {
  std::string_view name;
  std::string_view config_json;
};

struct ArchitectureRow {
  std::string_view name;
  std::span<const std::string_view> keys;  // of config.json that identify the architecture
  std::unique_ptr<Architecture> (*parse)(const io::Json& config, std::string_view what,
                                         std::vector<std::string>& warnings);
  std::span<const ModelPreset> presets = {};  // shapes that `make-model` knows by name
};
std::span<const ArchitectureRow> architectures();

inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;  // of a config.json

// Parses a config.json with the row that recognises most of its keys, the first of equals. A key
// that is missing, of the wrong type or out of range is Error(corrupt_file); a well-formed config
// that this engine cannot run is Error(unsupported). `what` names the file in errors. Unknown keys
// are added to `warnings`.
std::unique_ptr<Architecture> parse_architecture(std::string_view text, std::string_view what,
                                                 std::vector<std::string>& warnings);

}  // namespace toto
