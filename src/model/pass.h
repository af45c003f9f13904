// One pass through a network, with rows of different series, lengths and paths in one batch.
//
// A row is one position of one variate: a patch, or a constant vector in its place. Rows interact
// only in attention, as described by RowRun (along time) and SpaceGroup (across variates).
#pragma once

#include <cstddef>
#include <span>

#include "kernels/kernels.h"
#include "model/kv_cache.h"

namespace toto {

// Positions of one variate in this pass, and their cache. A run may be empty. The keys and values
// of the new positions are appended to `tail`.
struct RowRun {
  int first_row = 0;
  int num_rows = 0;
  KvSpan prefix = {};  // read-only; shared by all paths of a series
  int prefix_length = 0;
  KvSpan tail = {};
  int tail_length = 0;               // positions in `tail` before this pass
  const float* positions = nullptr;  // factors of the run's rows, ModelShape::position_floats each
  // Index into `positions` of each row, [num_rows]; null: 0, 1, ... Positions skipped by the run
  // (patches without a value) are not in the cache either.
  const int* places = nullptr;
  int num_outputs = 0;   // the last k rows of the run produce output
  int first_output = 0;  // number of the first of them among all output rows
};

// A row that is a constant vector instead of an embedded patch: a variate's label, or a query row
// for a patch to predict.
struct ConstantRow {
  int row = 0;
  int constant = 0;  // number of the network's constant vector
};

// Rows that attend to each other in space-wise layers: variates of one patch with the same id.
struct SpaceGroup {
  const int* rows = nullptr;
  int count = 0;
};

struct Pass {
  std::span<const RowRun> runs = {};
  const float* inputs = nullptr;  // [row][input_width]; not read for constant rows
  int num_rows = 0;
  std::span<const ConstantRow> constants = {};
  std::span<const SpaceGroup> groups = {};  // over all rows
  // Over the output rows only, numbered in the order of runs and rows.
  std::span<const SpaceGroup> output_groups = {};
  int num_outputs = 0;
  int output_steps = 0;  // steps of the output patches that are needed
};

// Scratch memory of a pass, owned by the caller's arena; an architecture takes only what it needs.
struct Workspace {
  float* hidden = nullptr;  // [row][embed stride]
  float* normed = nullptr;  // [row][embed stride]
  float* qkv = nullptr;     // [row][qkv stride]
  float* mixed = nullptr;   // [row][embed stride], output of attention
  float* gated = nullptr;   // [row][gate stride]
  float* scores = nullptr;  // [thread][score_stride]
  std::size_t score_stride = 0;
  float* heads = nullptr;  // [output][head_stride]: the head's raw output
  std::size_t head_stride = 0;
  QuantisedRows quantised;
};

}  // namespace toto
