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
    all += std::int64_t{plan.series->num_variates} * paths.stored_paths;
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

State carve_state(Arena& arena, const Group& group, const PathPlan& paths, const Network& network,
                  int num_threads) {
  const ModelShape& shape = network.shape();
  const std::size_t patch = shape.patch, sequences = group.num_sequences;
  const std::size_t before = arena.used();
  State state;

  std::size_t num_patches = 0;
  int widest = 0;
  for (const SeriesPlan& plan : group.series) {
    const std::size_t variates = plan.series->num_variates;
    if (plan.kept == nullptr) num_patches += variates * plan.token_room;
    widest = std::max(widest, plan.series->num_variates);
  }
  state.inputs = arena.take<float>(num_patches * shape.input_width);
  state.mask = arena.take<std::uint8_t>(num_patches * patch);
  state.ids = arena.take<std::int64_t>(num_patches);
  state.scalers = arena.take<ScalerState>(sequences);
  state.loc = arena.take<double>(sequences * patch);
  state.scale = arena.take<double>(sequences * patch);
  state.prefixes = arena.take<KvSpan>(sequences);
  int sequence = 0;
  for (const SeriesPlan& plan : group.series) {
    for (int v = 0; v < plan.series->num_variates; ++v, ++sequence) {
      if (plan.kept != nullptr) continue;
      const KvSpan span = take_kv(arena, network.kv_layout(), plan.token_room + paths.context_room);
      if (state.prefixes != nullptr) state.prefixes[sequence] = span;
    }
  }
  state.paths = arena.take<float>(sequences * paths.path_steps * paths.stored_paths);

  const bool has_lanes = paths.forks && paths.decode_patches > 0;
  const int queries = paths.query_rows();
  state.max_lane_rows = has_lanes ? lane_rows_of(group, paths, network.kv_layout()) : 0;
  // A pass holds at least one token of every variate: space-wise layers look across them. Behind a
  // context come its query rows; a later block is fed as many patches as the one before it had.
  state.max_rows = std::max({std::min(group.row_room, kPrefillRows) + group.num_sequences * queries,
                             widest * (1 + queries), state.max_lane_rows});
  if (!paths.forks && paths.decode_patches > 0) {
    state.max_rows =
        std::max(state.max_rows, group.num_sequences * (paths.block_patches + queries));
  }
  const std::size_t rows = state.max_rows;
  state.runs = arena.take<RowRun>(rows);
  state.groups = arena.take<SpaceGroup>(rows);
  state.output_groups = arena.take<SpaceGroup>(rows);
  state.group_rows = arena.take<int>(rows);
  state.output_group_rows = arena.take<int>(rows);
  state.constants = arena.take<ConstantRow>(shape.leading_rows + queries > 0 ? rows : 0);
  state.rows = arena.take<float>(rows * shape.input_width);
  const std::size_t num_positions = group.max_room + queries;
  state.positions = arena.take<float>(num_positions * shape.position_floats);
  const int outputs = std::max(group.num_sequences * paths.block_patches, state.max_lane_rows);
  state.network = network.take_workspace(arena, state.max_rows, outputs,
                                         group.max_room + queries + paths.decode_patches);

  if (paths.decode_patches > 0) {
    state.decode_positions =
        arena.take<float>(group.series.size() * paths.decode_positions() * shape.position_floats);
  }
  if (has_lanes) {
    const std::size_t lane_rows = state.max_lane_rows;
    state.lane_rows = arena.take<LaneRow>(lane_rows);
    state.lane_scalers = arena.take<ScalerState>(lane_rows);
    state.lane_loc = arena.take<double>(lane_rows * patch);
    state.lane_scale = arena.take<double>(lane_rows * patch);
    state.tails = arena.take<KvSpan>(lane_rows);
    for (std::size_t row = 0; row < lane_rows; ++row) {
      const KvSpan span = take_kv(arena, network.kv_layout(), paths.decode_patches);
      if (state.tails != nullptr) state.tails[row] = span;
    }
  }

  const std::size_t threads = num_threads;
  state.step_stride = round_up(network.step_doubles(), kPartialSums);
  state.step = arena.take<double>(state.step_stride * threads);
  state.scratch_stride = round_up(std::max<std::size_t>(patch, paths.stored_paths), kPartialSums);
  state.scratch = arena.take<float>(state.scratch_stride * threads);
  state.bytes = arena.used() - before;
  return state;
}

}  // namespace toto
