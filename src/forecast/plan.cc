#include "forecast/plan.h"

#include <algorithm>

namespace toto {

PathPlan::PathPlan(const ForecastOptions& options, int patch_size)
    : exact_first_patch(options.num_samples == 0),
      decode_patches((options.horizon - 1) / patch_size),
      follows_mean(options.decode == Decode::mean) {
  if (follows_mean) {
    num_paths = decode_patches > 0 ? 1 : 0;
  } else if (options.num_samples > 0) {
    num_paths = options.num_samples;
  } else if (decode_patches > 0 || options.keep_samples) {
    num_paths = kDefaultPaths;
  }
  path_steps = decode_patches > 0 ? (decode_patches + 1) * patch_size : options.horizon;
  if (follows_mean) {
    exact_steps = options.horizon;
  } else if (exact_first_patch) {
    exact_steps = std::min(options.horizon, patch_size);
  }
}

Group take_group(std::span<SeriesPlan>& rest, const PathPlan& paths) {
  Group group;
  std::size_t count = 0;
  for (SeriesPlan& plan : rest) {
    const int variates = plan.series->num_variates;
    const std::size_t path_bytes = sizeof(float) * paths.num_paths * paths.path_steps *
                                   static_cast<std::size_t>(group.num_sequences + variates);
    const bool fits =
        std::int64_t{group.row_room} + std::int64_t{variates} * plan.row_room <= kPrefillRows;
    if (count > 0 && (!fits || path_bytes > kPathBytes)) break;
    plan.first_sequence = group.num_sequences;
    group.num_sequences += variates;
    group.num_rows += variates * (plan.num_tokens - plan.first_token);
    group.first_token =
        count > 0 ? std::min(group.first_token, plan.first_token) : plan.first_token;
    group.max_tokens = std::max(group.max_tokens, plan.num_tokens);
    group.row_room += variates * plan.row_room;
    group.max_room = std::max(group.max_room, plan.token_room);
    ++count;
  }
  group.series = rest.first(count);
  rest = rest.subspan(count);
  return group;
}

}  // namespace toto
