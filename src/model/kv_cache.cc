#include "model/kv_cache.h"

namespace toto {

KvLayout::KvLayout(const ModelShape& shape)
    : num_time_layers(shape.num_time_layers),
      num_heads(shape.num_heads),
      head_dim(shape.head_dim),
      value_stride(static_cast<int>(round_up(shape.head_dim, kPartialSums))) {}

}  // namespace toto
