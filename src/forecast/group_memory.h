// The memory of one group of series while its passes run, taken from one arena.
#pragma once

#include <cstdint>

#include "base/memory.h"
#include "forecast/outputs.h"
#include "forecast/plan.h"
#include "model/architecture.h"
#include "model/joined_mixture.h"

namespace toto {

// One row of a decode pass: one variate of one sampled path of one series.
struct LaneRow {
  int series = 0;  // within the group
  int variate = 0;
  int path = 0;
};

// Pointers into the arena; null in a measuring run. Not owned.
struct GroupMemory {
  // Per sequence (one variate of one series). Contexts are contiguous; for a session's series the
  // first three, keys and values are in its KeptContexts instead.
  float* inputs = nullptr;       // [sequence][patch][input_width]
  std::uint8_t* mask = nullptr;  // [sequence][patch][step]
  std::int64_t* ids = nullptr;   // [sequence][patch]
  int* places = nullptr;         // SeriesPlan::places of all series; null if no patch is skipped
  ScalerState* scalers = nullptr;
  double* loc = nullptr;  // [sequence][step] of the latest patch of the context
  double* scale = nullptr;
  KvSpan* prefixes = nullptr;  // [sequence], keys and values of the context
  float* paths = nullptr;      // [sequence][step][path]
  double* mixtures = nullptr;  // [sequence][joined step][path][mixture_stride], StoredMixture
  std::size_t mixture_stride = 0;

  // One pass of up to max_rows rows.
  int max_rows = 0;
  RowRun* runs = nullptr;
  SpaceGroup* groups = nullptr;
  SpaceGroup* output_groups = nullptr;
  int* group_rows = nullptr;
  int* output_group_rows = nullptr;
  int* row_places = nullptr;  // RowRun::places of all runs; null if no patch is skipped
  ConstantRow* constants = nullptr;
  float* rows = nullptr;  // [row][input_width]
  Workspace network;
  float* positions = nullptr;  // [token][position_floats], of context and query rows

  // Sampled paths beyond the first block.
  int max_lane_rows = 0;
  LaneRow* lane_rows = nullptr;
  ScalerState* lane_scalers = nullptr;  // [row]
  double* lane_loc = nullptr;           // [row][step]
  double* lane_scale = nullptr;
  KvSpan* tails = nullptr;            // [row], keys and values of decoded patches
  float* decode_positions = nullptr;  // [series][decode position][position_floats]

  // Distributions being averaged, several at a time.
  int num_joined = 0;
  StudentBlock* joined_blocks = nullptr;  // [joined][joined_block_stride]
  std::size_t joined_block_stride = 0;
  double* joined_means = nullptr;    // [joined][path]
  double* joined_squares = nullptr;  // [joined][path]

  // Per thread.
  double* step = nullptr;  // one step's distribution
  std::size_t step_stride = 0;
  float* scratch = nullptr;  // [max(patch, stored paths)]
  std::size_t scratch_stride = 0;

  std::size_t bytes = 0;  // taken from the arena

  JoinedMixture::Memory joined(int slot, std::size_t num_paths) const {
    return {.blocks = {joined_blocks + slot * joined_block_stride, joined_block_stride},
            .means = {joined_means + slot * num_paths, num_paths},
            .squares = {joined_squares + slot * num_paths, num_paths}};
  }
  std::span<double> step_workspace(int thread) const {
    return {step + thread * step_stride, step_stride};
  }
};

// Called twice: with a measuring arena to compute the size, then to receive the pieces.
GroupMemory carve_memory(Arena& arena, const SeriesGroup& group, const PathPlan& paths,
                         const Network& network, int num_threads);

}  // namespace toto
