// The seam: what a model architecture is. A new one is a folder under src/model/ with these eight
// parts and a row of the table in architectures.cc; nothing else names its types.
//
//   1 config        keys that recognise its config.json, and the checked numbers   Architecture
//   2 tensors       names and shapes: loading, `inspect` and `make-model` follow    Architecture
//   3 packing       arrays in a fixed order, with a version                         PackedWeights
//   4 reading       context to rows and statistics                                  Network
//   5 forward       one pass over rows, noexcept, allocating nothing                Network
//   6 distribution  the head's row to a StepDistribution                            Network
//   7 decoder       what is fed back beyond the first block                         Architecture
//   8 oracle        the same written down plainly, sharing nothing with 3 to 5      Oracle
//
// Virtual calls happen once a request, series, pass or step ahead, never inside a kernel.
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

// Every number of an optimised network, folded, permuted and packed the way the kernels read it.
// Declared first, so that sizes are known, and then packed from a checkpoint or mapped from a file.
// Immutable afterwards; not movable, because it knows its arrays by their addresses.
class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;
  virtual ~PackedWeights() = default;

  // Gives what was declared its numbers: arrays() of what was packed. They must outlive this.
  void map(std::span<const std::span<const std::byte>> arrays);
  std::vector<std::span<const std::byte>> arrays() const;  // in a fixed order
  std::vector<std::uint64_t> array_sizes() const;          // in bytes, in the same order
  std::size_t bytes() const;

 protected:
  // Of every array, in the order of the forward pass.
  void add(AnyWeightArray& array) { arrays_.push_back(&array); }

 private:
  std::vector<AnyWeightArray*> arrays_;
};

// --------------------------------------------------------------------------------------- network

// An optimised network ready to run: weights, kernels and a pool of threads. Const calls may come
// from the pool's threads; the caller owns cache and workspace.
class Network {
 public:
  virtual ~Network() = default;

  const ModelShape& shape() const noexcept { return shape_; }
  const KvLayout& kv_layout() const noexcept { return kv_layout_; }

  // Reads one variate's padded context. `rows` holds mask.size() values in front and room for
  // [patch][input_width]; on return it holds what the network reads. `loc` and `scale`, [patch]
  // each, receive the affine transform of the steps that follow; the state goes on from there.
  virtual ScalerState read_context(std::span<float> rows, std::span<const std::uint8_t> mask,
                                   double* loc, double* scale) const noexcept = 0;
  // The same of one more patch, all of whose values count.
  virtual void read_patch(ScalerState& state, const float* values, float* row, double* loc,
                          double* scale) const noexcept = 0;
  // The constant vector of a leading row, and of a row in place of a patch that is to be predicted.
  virtual int leading_constant(bool exogenous) const noexcept;
  virtual int query_constant() const noexcept;

  // Factors of a position, shape().position_floats of them, in a pass that ends at `last`; the
  // first pass, over the context, ended at `first_last`. Where both are equal only `position` may
  // matter: what a context leaves in the cache serves longer ones. Leading rows count as positions.
  virtual void position_factors(int position, int last, int first_last, float* dst) const noexcept;
  // Scratch for passes of up to so many rows and outputs that see up to `max_positions` positions.
  virtual Workspace take_workspace(Arena& arena, int max_rows, int max_outputs,
                                   int max_positions) const = 0;
  // Fills workspace.heads, a row for every output in the order of runs and rows.
  virtual void forward(const Pass& pass, Workspace& workspace) const noexcept = 0;

  // What one step of an output row says, in the units of the data. `memory` holds step_doubles().
  virtual StepDistribution step(const float* head, int step, double loc, double scale,
                                std::span<double> memory) const noexcept = 0;
  virtual std::size_t step_doubles() const noexcept = 0;
  // Adds the arrays of a trace. `heads` are the first block's output rows, [variate][output], with
  // workspace.head_stride; loc and scale are [variate][patch].
  virtual void trace(int num_variates, int outputs, const Workspace& workspace, const double* loc,
                     const double* scale, Trace& trace) const = 0;

  // The matrix products whose schedules are worth measuring; none by default.
  virtual std::span<const Product> products() const noexcept { return {}; }
  virtual int num_layers() const noexcept { return 0; }
  // One of them, between the workspace's buffers. `layer` means nothing to the head.
  virtual void multiply(Product product, int layer, int rows, const Workspace& workspace,
                        const Schedule& schedule) const noexcept;
  // From now on forward() cuts its products up like this; the caller keeps them.
  virtual void use(const Schedules& schedules) noexcept;
  // The sizes that decide which schedule is fastest, in words, and the start of a file name.
  virtual std::string schedule_key() const { return {}; }
  virtual std::string schedule_name() const { return {}; }

 protected:
  explicit Network(const ModelShape& shape) : shape_(shape), kv_layout_(shape) {}

 private:
  ModelShape shape_;
  KvLayout kv_layout_;
};

// ---------------------------------------------------------------------------------------- oracle

// A context as every architecture gets it: filled, cut to whole patches and left-padded.
struct OracleContext {
  int num_variates = 0;
  int num_exogenous = 0;  // the last ones
  int num_patches = 0;
  std::span<const float> values;       // [variate][patch][step]
  std::span<const std::uint8_t> mask;  // as values; 0: does not count
  std::span<const std::int64_t> ids;   // [variate][patch]
};

// One series on its way into the future, in the oracle's precision.
class OraclePath {
 public:
  virtual ~OraclePath() = default;
  virtual std::unique_ptr<OraclePath> fork() const = 0;

  // Runs the network: step() then answers for the next `num_patches` patches. `check` is called
  // between pieces of work and may throw.
  virtual void predict(int num_patches, ThreadPool& pool, const std::function<void()>& check) = 0;
  virtual StepDistribution step(int variate, int step, std::span<double> memory) const = 0;
  virtual std::size_t step_doubles() const = 0;
  virtual void append(std::span<const double> values) = 0;  // [variate][step], whole patches
  virtual void trace(Trace& trace) const = 0;               // as Network::trace, of predict()
};

// Immutable after construction.
class Oracle {
 public:
  virtual ~Oracle() = default;
  // `use_cache` false computes everything again at every step, where the reference can do that.
  virtual std::unique_ptr<OraclePath> begin(const OracleContext& context, bool use_cache) const = 0;
};

// ---------------------------------------------------------------------------------- architecture

struct TensorSpec {
  std::string name;  // canonical
  std::vector<std::int64_t> shape;
  float limit = 0;  // make-model draws from [-limit, limit); 0: all ones, a norm's weight

  std::int64_t num_elements() const;
};

enum class DecoderKind : std::uint8_t {
  sampled_paths,  // one patch a pass; drawn values, or means, are fed back
  median_blocks,  // a block of patches a pass; medians are fed back
};

// A config.json, checked: all that is known of a model without its weights. Immutable.
class Architecture {
 public:
  virtual ~Architecture() = default;

  const ModelFacts& facts() const noexcept { return facts_; }
  const ModelShape& shape() const noexcept { return shape_; }
  virtual DecoderKind decoder() const noexcept = 0;
  // The same numbers as a config.json; part of the packed weights' identity.
  virtual std::string config_json() const = 0;
  virtual std::vector<NamedNumber> sizes() const = 0;  // for ModelInfo::shape
  // Lines for `inspect`: {"layers", "4, 128 wide, 4 heads, MLP 256 wide"}.
  virtual std::vector<std::pair<std::string, std::string>> described() const = 0;

  // A stored name without what differs between exporters; empty: computed here, not read.
  virtual std::string canonical_name(std::string_view stored) const { return std::string(stored); }
  virtual std::string stored_name(const std::string& canonical) const { return canonical; }
  // Every tensor, in the order of the forward pass. `has` says which optional ones are there; an
  // impossible choice of them is Error(corrupt_file) that begins with `folder`.
  using HasTensor = std::function<bool(std::string_view name)>;
  virtual std::vector<TensorSpec> tensors(const HasTensor& has,
                                          const std::string& folder) const = 0;

  // Raised whenever the same checkpoint gives other packed bytes.
  virtual int packing_version() const noexcept = 0;
  // `type` is f32, bf16 or int8.
  virtual std::unique_ptr<PackedWeights> declare(const Checkpoint& checkpoint,
                                                 DType type) const = 0;
  virtual std::unique_ptr<PackedWeights> pack(const Checkpoint& checkpoint, DType type,
                                              const Kernels& kernels, ThreadPool& pool) const = 0;
  // `weights` are this architecture's in this type, and outlive the network. Several networks may
  // share them, each with its own pool.
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

// ------------------------------------------------------------------------------ the registration

struct ModelPreset {
  std::string_view name;
  std::string_view config_json;
};

struct ArchitectureRow {
  std::string_view name;
  std::span<const std::string_view> keys;  // of config.json, by which it is recognised
  std::unique_ptr<Architecture> (*parse)(const io::Json& config, std::string_view what,
                                         std::vector<std::string>& warnings);
  std::span<const ModelPreset> presets = {};  // shapes that `make-model` knows by name
};
std::span<const ArchitectureRow> architectures();

inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;  // of a config.json

// The architecture of the row that recognises most keys of the text, the first of equals. Refuses
// what is missing, of the wrong type or out of range: Error(corrupt_file), or Error(unsupported)
// for a well-formed config this engine cannot run. `what` names the file. Unknown keys are added to
// `warnings`.
std::unique_ptr<Architecture> parse_architecture(std::string_view text, std::string_view what,
                                                 std::vector<std::string>& warnings);

}  // namespace toto
