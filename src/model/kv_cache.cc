#include "model/kv_cache.h"

namespace toto {

KvLayout::KvLayout(const Config& config)
    : num_heads(config.num_heads),
      head_dim(config.head_dim()),
      value_stride(static_cast<int>(round_up(config.head_dim(), kPartialSums))) {
  for (int i = 0; i < config.num_layers; ++i) num_time_layers += config.is_spacewise(i) ? 0 : 1;
}

}  // namespace toto
