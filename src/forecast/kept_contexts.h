// Keeps the keys and values of a growing series' contexts, so that a longer context continues where
// an earlier one ended.
//
// The keys and values of a token depend only on the network's input up to it. A kept context is
// reused exactly as far as those inputs have the same bits, which is correct for every scale,
// scaler, gap filling and padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "forecast/series.h"
#include "model/architecture.h"

namespace toto {

// Not thread-safe; used under the engine's lock.
class KeptContexts {
 public:
  explicit KeptContexts(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Writes and scales the context of `series` and selects the kept context that shares most patches
  // with it, or makes room for a new one. False if a context of this size exceeds the limit:
  // nothing is kept, everything must be computed. `origin` is the number of points dropped before
  // the series' first one, `room` the positions that later passes append to the context.
  // `scale` is [variate], see write_context.
  bool prepare(const Series& series, std::uint64_t origin, const ForecastOptions& options,
               std::span<const double> scale, int room, const Network& network,
               const ModelFacts& facts);

  // The prepared context.
  const ContextShape& shape() const { return next_.shape; }
  int first_token() const { return first_token_; }              // the first one to compute
  const float* inputs() const { return next_.inputs.data(); }   // [variate][patch][input_width]
  const std::int64_t* ids() const { return next_.ids.data(); }  // [variate][patch]
  std::span<const ScalerState> scalers() const { return next_.scalers; }
  std::span<const double> loc() const { return next_.loc; }  // [variate][step], last patch
  std::span<const double> scale() const { return next_.scale; }
  KvSpan prefix(int variate);

  // Call them around the pass that fills the prefixes, so that an interrupted pass leaves no keys
  // and values marked as valid.
  void begin() noexcept;
  void commit() noexcept;

  std::size_t bytes() const noexcept;
  int size() const noexcept { return static_cast<int>(contexts_.size()); }

 private:
  struct Inputs {
    std::vector<float> inputs;
    std::vector<std::int64_t> ids;
    ContextShape shape;
    std::vector<ScalerState> scalers;
    std::vector<double> loc, scale;
  };
  struct Context {
    std::uint64_t start = 0;  // of its first point, dropped ones counted
    int num_patches = 0;      // of its inputs, for their strides
    int valid_tokens = 0;     // tokens with complete keys and values
    std::vector<float> inputs;
    std::vector<std::int64_t> ids;
    int capacity = 0;  // positions
    Buffer<float> keys_and_values;
    std::size_t bytes() const noexcept;
  };

  void read(const Series& series, const ForecastOptions& options, std::span<const double> scale,
            const Network& network, const ModelFacts& facts);
  int common_patches(const Context& context, int num_variates, int input_width) const noexcept;
  bool make_room(std::size_t bytes, std::uint64_t start, int patch);
  static void grow(Context& context, int capacity, int num_variates, const KvLayout& layout);

  std::size_t max_bytes_;
  std::vector<Context> contexts_;  // in order of last use; the current one is the last
  Inputs next_;
  int leading_ = 0;  // rows before the first patch
  int first_token_ = 0;
  std::size_t floats_per_variate_ = 0;
};

}  // namespace toto
