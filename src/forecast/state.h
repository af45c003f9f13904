// The memory of one group of series on its way through the network, carved out of one arena.
#pragma once

#include <cstdint>

#include "base/memory.h"
#include "forecast/outputs.h"
#include "forecast/plan.h"
#include "model/architecture.h"

namespace toto {

// One row of a decode pass: one variate of one sampled path of one series.
struct LaneRow {
  int series = 0;  // within the group
  int variate = 0;
  int path = 0;
};

struct State {
  // Per sequence: one variate of one series.
  // Contexts, back to back; of a session's series these three, and keys and values, are kept there.
  float* inputs = nullptr;       // [sequence][patch][input_width]
  std::uint8_t* mask = nullptr;  // [sequence][patch][step]
  std::int64_t* ids = nullptr;   // [sequence][patch]
  ScalerState* scalers = nullptr;
  double* loc = nullptr;  // [sequence][patch] of the latest patch of the context
  double* scale = nullptr;
  KvSpan* prefixes = nullptr;  // keys and values of the context
  float* paths = nullptr;      // [sequence][step][path]

  // One pass, prefill or decode, of up to max_rows rows.
  int max_rows = 0;
  RowRun* runs = nullptr;
  SpaceGroup* groups = nullptr;
  SpaceGroup* output_groups = nullptr;
  int* group_rows = nullptr;
  int* output_group_rows = nullptr;
  ConstantRow* constants = nullptr;
  float* rows = nullptr;  // [row][input_width]
  Workspace network;
  float* positions = nullptr;  // [token] factors of the positions of context and query rows

  // Sampled paths beyond the first block.
  int max_lane_rows = 0;
  LaneRow* lane_rows = nullptr;
  ScalerState* lane_scalers = nullptr;  // [row]
  double* lane_loc = nullptr;           // [row][patch]
  double* lane_scale = nullptr;
  KvSpan* tails = nullptr;            // [row] keys and values of what was decoded
  float* decode_positions = nullptr;  // [series][decode patch] factors

  // Per thread.
  double* step = nullptr;  // one step's distribution
  std::size_t step_stride = 0;
  float* scratch = nullptr;  // a patch of values, or one step of all paths
  std::size_t scratch_stride = 0;

  std::size_t bytes = 0;  // of the arena, taken by this group

  std::span<double> step_workspace(int thread) const {
    return {step + thread * step_stride, step_stride};
  }
};

// Called twice: with a measuring arena to learn the size, then to hand out the pieces.
State carve_state(Arena& arena, const Group& group, const PathPlan& paths, const Network& network,
                  int num_threads);

}  // namespace toto
