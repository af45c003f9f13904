// The static key/value cache: plain memory whose size is known before the first kernel runs. It
// never grows and is never copied; sampled paths share the prefix of their series' context.
#pragma once

#include <cstddef>

#include "base/memory.h"
#include "kernels/kernels.h"
#include "model/model_shape.h"

namespace toto {

// Memory layout of the keys and values of one sequence (one variate): [time-wise layer][head] of
//   keys    [capacity / kKeyPanel][head_dim][kKeyPanel]
//   values  [capacity][value_stride]
struct KvLayout {
  explicit KvLayout(const ModelShape& shape)
      : num_time_layers(shape.num_time_layers),
        num_heads(shape.num_heads),
        head_dim(shape.head_dim),
        value_stride(static_cast<int>(round_up(shape.head_dim, kPartialSums))) {}
  std::size_t floats_per_head(int capacity) const {
    return std::size_t(capacity) * (head_dim + value_stride);
  }
  // Floats for a sequence of `capacity` positions (a multiple of kKeyPanel).
  std::size_t floats(int capacity) const {
    return std::size_t(num_time_layers) * num_heads * floats_per_head(capacity);
  }
  int num_time_layers = 0;
  int num_heads = 0;
  int head_dim = 0;
  int value_stride = 0;  // head_dim rounded up to kPartialSums
};

inline int round_up_positions(int positions) {
  return static_cast<int>(round_up(static_cast<std::size_t>(positions), kKeyPanel));
}

// Memory for the keys and values of one sequence; owned by the arena it was taken from.
struct KvSpan {
  float* base = nullptr;
  int capacity = 0;  // a multiple of kKeyPanel

  float* keys(const KvLayout& layout, int time_layer, int head) const {
    return base +
           (std::size_t(time_layer) * layout.num_heads + head) * layout.floats_per_head(capacity);
  }
  float* values(const KvLayout& layout, int time_layer, int head) const {
    return keys(layout, time_layer, head) + std::size_t(capacity) * layout.head_dim;
  }
};

inline constexpr const char* kKvCacheName = "StaticKVCache";

}  // namespace toto
