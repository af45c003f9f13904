// One pass through a network: rows of different series, lengths and paths together.
//
// A row is one position of one variate: a patch, or a constant vector in its place. Rows meet only
// in attention, where RowRun and SpaceGroup say which rows see which.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/kernels.h"
#include "model/kv_cache.h"

namespace toto {

// Consecutive positions of one variate in this pass, and the cache that belongs to them. The new
// positions' keys and values are appended to `tail`.
struct RowRun {
  int first_row = 0;
  int num_rows = 0;
  KvSpan prefix = {};  // read only: what all paths of a series share
  int prefix_length = 0;
  KvSpan tail = {};
  int tail_length = 0;               // positions in `tail` before this pass
  const float* positions = nullptr;  // factors of the run's rows, ModelShape::position_floats each
  // Which of `positions` a row has, [num_rows]; null: one after the other. Positions that are left
  // out of the run (patches without a value) are left out of the cache too.
  const int* places = nullptr;
  int num_outputs = 0;  // of its last rows
};

// A row that is not embedded from a patch: a variate's label, a patch to be predicted.
struct ConstantRow {
  int row = 0;
  int constant = 0;  // which of the network's constant vectors
};

// Rows that look at each other in space-wise layers: variates of one patch with one id.
struct SpaceGroup {
  const int* rows = nullptr;
  int count = 0;
};

struct Pass {
  std::span<const RowRun> runs = {};
  const float* inputs = nullptr;  // [row][input_width]; of a constant row it is not used
  int num_rows = 0;
  std::span<const ConstantRow> constants = {};
  std::span<const SpaceGroup> groups = {};  // over all rows
  // Over the rows that want output, numbered in the order of runs and rows.
  std::span<const SpaceGroup> output_groups = {};
  int num_outputs = 0;
  int output_steps = 0;  // of a patch that are asked for
};

// Scratch of a pass, owned by the caller's arena; an architecture takes what it needs of it.
struct Workspace {
  float* hidden = nullptr;  // [row][embed stride]
  float* normed = nullptr;  // [row][embed stride]
  float* qkv = nullptr;     // [row][qkv stride]
  float* mixed = nullptr;   // [row][embed stride], what attention gathered
  float* gated = nullptr;   // [row][gate stride]
  float* scores = nullptr;  // [thread][score_stride]
  std::size_t score_stride = 0;
  float* heads = nullptr;  // [output][head_stride]: the head's raw output
  std::size_t head_stride = 0;
  QuantisedRows quantised;
};

}  // namespace toto
