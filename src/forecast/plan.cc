#include "forecast/plan.h"

#include <algorithm>

namespace toto {

PathPlan::PathPlan(const ForecastOptions& options, const ModelFacts& facts)
    : follows_mean(options.decode == Decode::mean) {
  const int num_patches = (options.horizon - 1) / facts.patch + 1;
  if (facts.block != 0) block_patches = std::min(num_patches, facts.block / facts.patch);
  if (facts.block == 0) {
    block_patches =
        options.block > 0 ? std::min(num_patches, options.block / facts.patch) : num_patches;
  }
  decode_patches = num_patches - block_patches;
  const bool feeds_back = decode_patches > 0;
  path_steps = feeds_back ? num_patches * facts.patch : options.horizon;
  if (follows_mean) {
    num_paths = facts.can_sample && feeds_back ? 1 : 0;
  } else if (options.num_samples > 0) {
    num_paths = options.num_samples;
  } else if ((facts.can_sample && feeds_back) || options.keep_samples) {
    num_paths = options.num_paths;
  }
  forks = facts.can_sample;
  context_room = forks ? query_rows() : query_rows() + decode_patches;
  if (!facts.can_sample) {
    stored_paths = feeds_back ? 1 : 0;
    exact_steps = options.horizon;
    return;
  }
  stored_paths = num_paths;
  if (follows_mean) {
    exact_steps = options.horizon;
  } else if (options.num_samples == 0) {
    exact_steps = facts.exact_steps(options.horizon);
    joins = feeds_back;
  }
}

int planned_paths(const ForecastOptions& options, const ModelFacts& facts) noexcept {
  return PathPlan(options, facts).num_paths;
}

int exact_steps(const ForecastOptions& options, const ModelFacts& facts) noexcept {
  return PathPlan(options, facts).exact_steps;
}

double answer_bytes(double num_variates, const ForecastOptions& options,
                    const ModelFacts& facts) noexcept {
  const bool samples = options.keep_samples && options.decode != Decode::mean;
  const double a_step = 3 + static_cast<double>(options.quantiles.size()) +  // mean, median, point
                        (samples ? planned_paths(options, facts) : 0);
  return a_step * options.horizon * num_variates * sizeof(float);
}

double path_bytes(double num_variates, const ForecastOptions& options,
                  const ModelFacts& facts) noexcept {
  const PathPlan paths(options, facts);
  const double steps = double{sizeof(float)} * paths.path_steps,
               distributions = static_cast<double>(facts.step_bytes) * paths.joined_steps();
  return num_variates * paths.stored_paths * (steps + distributions);
}

// The first series is always taken, however large it is.
SeriesGroup take_group(std::span<SeriesPlan>& rest, std::size_t path_bytes) {
  SeriesGroup group;
  std::size_t count = 0;
  for (SeriesPlan& plan : rest) {
    const int variates = plan.series->num_variates;
    const bool fits =
        std::int64_t{group.row_room} + std::int64_t{variates} * plan.row_room <= kPrefillRows;
    const std::size_t bytes = path_bytes * static_cast<std::size_t>(group.num_sequences + variates);
    if (count > 0 && (!fits || bytes > kPathBytes)) break;
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
