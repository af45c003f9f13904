// A plain implementation of Toto 2.0 in the order of the PyTorch code. The optimised network is
// checked against it, and mode `reference` runs it.
//
// Nothing is folded, packed or fused. Values are T (float or double), sums are computed in double.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/threads.h"
#include "model/checkpoint.h"
#include "model/toto2/toto2_config.h"

namespace toto {

// Keys and values of the time layers, as model.py: KVCache holds them. Copying it forks a path.
template <typename T>
struct Toto2ReferenceCache {
  int length = 0;                      // positions held
  std::vector<std::vector<T>> keys;    // [time layer][(variate, position, group, qk_dim)]
  std::vector<std::vector<T>> values;  // [time layer][(variate, position, group, v_dim)]
  std::vector<std::uint8_t> absent;    // [(variate, position)]: a patch without observed values
};

// One pass: rows of consecutive positions, which follow those in the cache.
template <typename T>
struct Toto2ReferenceInput {
  int num_variates = 0;
  int num_rows = 0;                      // per variate
  int num_outputs = 0;                   // the head reads the rows before the last one
  std::span<const T> rows;               // [variate][row][values, then flags]
  std::span<const std::int64_t> ids;     // [variate][row], for attention across variates
  std::span<const std::uint8_t> absent;  // [variate][row], for attention along time
  std::function<void()> check = {};      // called between parts of the work; may throw to cancel
};

// Immutable after construction; forward() is thread-safe if each caller has its own pool and cache.
template <typename T>
class Toto2Reference {
 public:
  Toto2Reference(const Toto2Config& config, const Checkpoint& checkpoint);

  // The head's raw output [variate][output][step][level] for the patches after the rows
  // num_rows - num_outputs - 1 ... num_rows - 2. All but the last `num_outputs` rows are added to
  // the cache: the last ones stand for patches to predict.
  std::vector<T> forward(const Toto2ReferenceInput<T>& input, Toto2ReferenceCache<T>& cache,
                         ThreadPool& pool) const;

  const Toto2Config& config() const { return config_; }

 private:
  struct Linear {
    std::vector<T> weight;  // [out][in]
    std::vector<T> bias;    // [out], zero if there is none
    int in = 0, out = 0;
  };
  struct ResidualMlp {
    Linear linear1, linear2, skip;
  };
  struct PlainLayer {
    std::vector<T> norm1, norm2, q_norm, k_norm;  // empty: no weight
    std::vector<double> per_dim_scale;            // of queries, after softplus; empty: none
    Linear in_proj, out_proj, fc1, fc2;
    double attn_tau = 0, mlp_tau = 0;
    bool across_variates = false;
  };
  Linear read_linear(const Checkpoint& checkpoint, const std::string& name, bool has_bias) const;
  ResidualMlp read_mlp(const Checkpoint& checkpoint, const std::string& name) const;

  // (W x + b) / divisor.
  std::vector<T> apply(const Linear& linear, const std::vector<T>& rows, double divisor,
                       ThreadPool& pool, const std::function<void()>& check) const;
  std::vector<T> apply(const ResidualMlp& mlp, const std::vector<T>& rows, bool readout,
                       ThreadPool& pool, const std::function<void()>& check) const;
  void prepare_heads(const PlainLayer& layer, std::vector<T>& qkv) const;
  std::vector<T> time_attention(int time_layer, std::vector<T>& qkv,
                                const Toto2ReferenceInput<T>& input, Toto2ReferenceCache<T>& cache,
                                ThreadPool& pool) const;
  std::vector<T> variate_attention(const std::vector<T>& qkv,
                                   const Toto2ReferenceInput<T>& input) const;

  Toto2Config config_;
  ResidualMlp patch_proj_, head_;
  std::vector<PlainLayer> layers_;
  std::vector<T> out_norm_;  // empty: no weight
};

extern template class Toto2Reference<float>;
extern template class Toto2Reference<double>;

}  // namespace toto
