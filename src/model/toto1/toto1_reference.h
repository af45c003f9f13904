// A plain implementation of Toto 1.0 in the order of the paper and of the PyTorch code. The
// optimised network is checked against it, and mode `reference` runs it.
//
// Nothing is folded, packed or fused. Values are T (float or double), sums are computed in double.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/threads.h"
#include "model/checkpoint.h"
#include "model/toto1/toto1_config.h"

namespace toto {

// Keys and values of the time-wise layers, as util.py: KVCache holds them. Copying it forks a path.
template <typename T>
struct Toto1ReferenceCache {
  int length = 0;                      // positions held, the variate label's included
  std::vector<std::vector<T>> keys;    // [layer][(variate, position, head, head_dim)]
  std::vector<std::vector<T>> values;  // as keys
};

template <typename T>
struct Toto1ReferenceInput {
  int num_variates = 0;
  int num_patches = 0;                // new patches: all, or one if a cache holds the others
  std::span<const T> scaled;          // [variate][patch][patch_size]
  std::span<const std::int64_t> ids;  // [variate][patch]
  int num_exogenous = 0;
  std::function<void()> check = {};  // called between parts of the work; may throw to cancel
};

// Immutable after construction; forward() is thread-safe if each caller has its own pool and cache.
template <typename T>
class Toto1Reference {
 public:
  Toto1Reference(const Toto1Config& config, const Checkpoint& checkpoint);

  // The head's raw output for the last patch, before softplus:
  // [variate][step][parameter][component] with parameters df, loc, scale, logits. With a cache, its
  // positions come first and the new ones are appended (the reference's cached path); without one,
  // `input` holds all patches.
  std::vector<T> forward(const Toto1ReferenceInput<T>& input, Toto1ReferenceCache<T>* cache,
                         ThreadPool& pool) const;

  const Toto1Config& config() const { return config_; }

 private:
  struct Linear {
    std::vector<T> weight;  // [out][in]
    std::vector<T> bias;    // [out]
    int in = 0, out = 0;
  };
  struct PlainLayer {
    std::vector<T> norm1, norm2;
    Linear qkv, out, mlp_up, mlp_down;
    bool spacewise = false;
  };
  Linear read_linear(const Checkpoint& checkpoint, const std::string& name) const;
  std::vector<T> apply(const Linear& linear, const std::vector<T>& rows, ThreadPool& pool,
                       const std::function<void()>& check) const;
  std::vector<T> normalise(const std::vector<T>& rows, const std::vector<T>& scale) const;
  std::vector<T> time_attention(int index, const std::vector<T>& qkv, int num_variates, int length,
                                Toto1ReferenceCache<T>* cache, ThreadPool& pool,
                                const std::function<void()>& check) const;
  std::vector<T> space_attention(const std::vector<T>& qkv, int num_variates, int length,
                                 std::span<const std::int64_t> ids,
                                 const std::function<void()>& check) const;

  Toto1Config config_;
  bool has_labels_ = false;
  std::vector<T> target_label_, exogenous_label_;
  Linear embed_, unembed_;
  std::vector<PlainLayer> layers_;
  std::vector<Linear> heads_;  // df, loc, scale, logits
};

extern template class Toto1Reference<float>;
extern template class Toto1Reference<double>;

}  // namespace toto
