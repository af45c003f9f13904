#include "forecast/state.h"

#include <algorithm>
namespace toto {
namespace {

// One KvSpan a sequence, each with its own block of floats.
KvSpan take_kv(Arena& arena, const KvLayout& layout, int positions) {
  const int capacity = round_up_positions(positions);
  return {arena.take<float>(layout.floats(capacity)), capacity};
}

// Rows of one decode pass: as many as keep the arithmetic busy, fewer if their keys and values
// would take too much memory, at least one path of the widest series.
int lane_rows_of(const Group& group, const PathPlan& paths, const KvLayout& layout) {
  int widest = 0;
  std::int64_t all = 0;
  for (const SeriesPlan& plan : group.series) {
    widest = std::max(widest, plan.series->num_variates);
    all += std::int64_t{plan.series->num_variates} * paths.num_paths;
  }
  const std::size_t row_bytes =
      sizeof(float) * layout.floats(round_up_positions(paths.decode_patches));
  const std::size_t affordable =
      std::max<std::size_t>(kTailBytes / std::max<std::size_t>(row_bytes, 1), 1);
  const std::int64_t rows =
      std::min<std::int64_t>({all, kDecodeRows, static_cast<std::int64_t>(affordable)});
  return static_cast<int>(std::max<std::int64_t>(rows, widest));
}

}  // namespace

State carve_state(Arena& arena, const Group& group, const PathPlan& paths, const Toto1& model,
                  int num_threads) {
  const Config& config = model.config();
  const std::size_t patch = config.patch_size, sequences = group.num_sequences;
  const std::size_t before = arena.used();
  State state;

  std::size_t num_values = 0, num_ids = 0;
  int widest = 0;
  for (const SeriesPlan& plan : group.series) {
    const std::size_t variates = plan.series->num_variates;
    if (plan.kept == nullptr) {
      num_ids += variates * plan.token_room;
      num_values += variates * plan.token_room * patch;
    }
    widest = std::max(widest, plan.series->num_variates);
  }
  state.values = arena.take<float>(num_values);
  state.mask = arena.take<std::uint8_t>(num_values);
  state.ids = arena.take<std::int64_t>(num_ids);
  state.scalers = arena.take<ScalerState>(sequences);
  state.loc = arena.take<double>(sequences * patch);
  state.scale = arena.take<double>(sequences * patch);
  state.prefixes = arena.take<KvSpan>(sequences);
  int sequence = 0;
  for (const SeriesPlan& plan : group.series) {
    for (int v = 0; v < plan.series->num_variates; ++v, ++sequence) {
      if (plan.kept != nullptr) continue;
      const KvSpan span = take_kv(arena, model.kv_layout(), plan.token_room);
      if (state.prefixes != nullptr) state.prefixes[sequence] = span;
    }
  }
  state.paths = arena.take<float>(sequences * paths.path_steps * paths.num_paths);

  const bool decodes = paths.decode_patches > 0;
  state.max_lane_rows = decodes ? lane_rows_of(group, paths, model.kv_layout()) : 0;
  // A pass holds at least one token of every variate: space-wise layers look across them.
  state.max_rows = std::max({std::min(group.row_room, kPrefillRows), widest, state.max_lane_rows});
  const std::size_t rows = state.max_rows;
  state.runs = arena.take<RowRun>(rows);
  state.groups = arena.take<SpaceGroup>(rows);
  state.output_groups = arena.take<SpaceGroup>(rows);
  state.group_rows = arena.take<int>(rows);
  state.output_group_rows = arena.take<int>(rows);
  state.patches = arena.take<float>(rows * patch);
  state.rotary = arena.take<float>(group.max_room * model.rotary().floats_per_position());
  const int outputs = std::max(group.num_sequences, state.max_lane_rows);
  state.network =
      model.take_workspace(arena, state.max_rows, outputs, group.max_room + paths.decode_patches);

  if (decodes) {
    const std::size_t lane_rows = state.max_lane_rows;
    state.lane_rows = arena.take<LaneRow>(lane_rows);
    state.lane_scalers = arena.take<ScalerState>(lane_rows);
    state.lane_loc = arena.take<double>(lane_rows * patch);
    state.lane_scale = arena.take<double>(lane_rows * patch);
    state.tails = arena.take<KvSpan>(lane_rows);
    for (std::size_t row = 0; row < lane_rows; ++row) {
      const KvSpan span = take_kv(arena, model.kv_layout(), paths.decode_patches);
      if (state.tails != nullptr) state.tails[row] = span;
    }
    state.decode_rotary = arena.take<float>(group.series.size() * paths.decode_patches *
                                            model.rotary().floats_per_position());
  }

  const std::size_t threads = num_threads;
  state.step_stride = round_up(step_workspace_doubles(config.num_components), kPartialSums);
  state.step = arena.take<double>(state.step_stride * threads);
  state.scratch_stride = round_up(std::max<std::size_t>(patch, paths.num_paths), kPartialSums);
  state.scratch = arena.take<float>(state.scratch_stride * threads);
  state.bytes = arena.used() - before;
  return state;
}

}  // namespace toto
