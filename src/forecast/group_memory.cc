#include "forecast/group_memory.h"

#include <algorithm>

namespace toto {
namespace {

// Takes the keys and values of one sequence.
KvSpan take_kv(Arena& arena, const KvLayout& layout, int positions) {
  const int capacity = round_up_positions(positions);
  return {arena.take<float>(layout.floats(capacity)), capacity};
}

// Rows of one decode pass: kDecodeRows, fewer if their keys and values would exceed kTailBytes, but
// at least one path of the widest series.
int lane_rows_of(const SeriesGroup& group, const PathPlan& paths, const KvLayout& layout) {
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

// Every size follows from the arguments alone, so the measuring run and the second one take the
// same pieces.
GroupMemory carve_memory(Arena& arena, const SeriesGroup& group, const PathPlan& paths,
                         const Network& network, int num_threads) {
  const ModelShape& shape = network.shape();
  const std::size_t patch = shape.patch, sequences = group.num_sequences;
  const std::size_t before = arena.used();
  GroupMemory memory;

  std::size_t num_patches = 0, num_places = 0;
  int widest = 0;
  for (const SeriesPlan& plan : group.series) {
    const std::size_t variates = plan.series->num_variates;
    if (plan.kept == nullptr) num_patches += variates * plan.token_room;
    if (shape.skips_gaps) num_places += variates * (plan.token_room + 1);
    widest = std::max(widest, plan.series->num_variates);
  }
  memory.inputs = arena.take<float>(num_patches * shape.input_width);
  memory.mask = arena.take<std::uint8_t>(num_patches * patch);
  memory.ids = arena.take<std::int64_t>(num_patches);
  memory.places = arena.take<int>(num_places);
  memory.scalers = arena.take<ScalerState>(sequences);
  memory.loc = arena.take<double>(sequences * patch);
  memory.scale = arena.take<double>(sequences * patch);
  memory.prefixes = arena.take<KvSpan>(sequences);
  int sequence = 0;
  for (const SeriesPlan& plan : group.series) {
    for (int v = 0; v < plan.series->num_variates; ++v, ++sequence) {
      if (plan.kept != nullptr) continue;
      const KvSpan span = take_kv(arena, network.kv_layout(), plan.token_room + paths.context_room);
      if (memory.prefixes != nullptr) memory.prefixes[sequence] = span;
    }
  }
  memory.paths = arena.take<float>(sequences * paths.path_steps * paths.stored_paths);
  if (paths.joins) {
    const std::size_t components = shape.num_components, num_paths = paths.stored_paths;
    memory.mixture_stride = StoredMixture::num_doubles(components);
    memory.mixtures =
        arena.take<double>(sequences * paths.joined_steps() * num_paths * memory.mixture_stride);
    memory.joined_block_stride = JoinedMixture::num_blocks(num_paths, components);
    const std::size_t bytes =
        memory.joined_block_stride * sizeof(StudentBlock) + 2 * num_paths * sizeof(double);
    memory.num_joined =
        static_cast<int>(std::clamp<std::size_t>(kJoinedBytes / bytes, 1, num_threads));
    const std::size_t count = memory.num_joined;
    memory.joined_blocks = arena.take<StudentBlock>(count * memory.joined_block_stride);
    memory.joined_means = arena.take<double>(count * num_paths);
    memory.joined_squares = arena.take<double>(count * num_paths);
  }

  const bool has_lanes = paths.forks && paths.decode_patches > 0;
  const int queries = paths.query_rows();
  memory.max_lane_rows = has_lanes ? lane_rows_of(group, paths, network.kv_layout()) : 0;
  // A pass holds at least one token of every variate, because space-wise layers look across them. A
  // context is followed by its query rows; a later block feeds back as many patches as the previous
  // one had.
  memory.max_rows =
      std::max({std::min(group.row_room, kPrefillRows) + group.num_sequences * queries,
                widest * (1 + queries), memory.max_lane_rows});
  if (!paths.forks && paths.decode_patches > 0) {
    memory.max_rows =
        std::max(memory.max_rows, group.num_sequences * (paths.block_patches + queries));
  }
  const std::size_t rows = memory.max_rows;
  memory.runs = arena.take<RowRun>(rows);
  memory.groups = arena.take<SpaceGroup>(rows);
  memory.output_groups = arena.take<SpaceGroup>(rows);
  memory.group_rows = arena.take<int>(rows);
  memory.output_group_rows = arena.take<int>(rows);
  memory.row_places = arena.take<int>(shape.skips_gaps ? rows : 0);
  memory.constants = arena.take<ConstantRow>(shape.leading_rows + queries > 0 ? rows : 0);
  memory.rows = arena.take<float>(rows * shape.input_width);
  const std::size_t num_positions = group.max_room + queries;
  memory.positions = arena.take<float>(num_positions * shape.position_floats);
  const int outputs = std::max(group.num_sequences * paths.block_patches, memory.max_lane_rows);
  memory.network = network.take_workspace(arena, memory.max_rows, outputs,
                                          group.max_room + queries + paths.decode_patches);

  if (paths.decode_patches > 0) {
    memory.decode_positions =
        arena.take<float>(group.series.size() * paths.decode_positions() * shape.position_floats);
  }
  if (has_lanes) {
    const std::size_t lane_rows = memory.max_lane_rows;
    memory.lane_rows = arena.take<LaneRow>(lane_rows);
    memory.lane_scalers = arena.take<ScalerState>(lane_rows);
    memory.lane_loc = arena.take<double>(lane_rows * patch);
    memory.lane_scale = arena.take<double>(lane_rows * patch);
    memory.tails = arena.take<KvSpan>(lane_rows);
    for (std::size_t row = 0; row < lane_rows; ++row) {
      const KvSpan span = take_kv(arena, network.kv_layout(), paths.decode_patches);
      if (memory.tails != nullptr) memory.tails[row] = span;
    }
  }

  const std::size_t threads = num_threads;
  memory.step_stride = round_up(network.step_doubles(), kPartialSums);
  memory.step = arena.take<double>(memory.step_stride * threads);
  memory.scratch_stride = round_up(std::max<std::size_t>(patch, paths.stored_paths), kPartialSums);
  memory.scratch = arena.take<float>(memory.scratch_stride * threads);
  memory.bytes = arena.used() - before;
  return memory;
}

}  // namespace toto
