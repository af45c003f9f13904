// Toto 1.0, optimised: folded and packed weights, the static cache, ragged batches without padding.
//
// A forward pass works on rows, one row a patch of one variate. Rows of different series, lengths
// and samples share a pass; they meet only in attention, where RowRun and SpaceGroup say who sees
// whom. Weights are immutable after construction; the caller owns cache and workspace.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/threads.h"
#include "model/checkpoint.h"
#include "model/kv_cache.h"
#include "model/layers.h"
#include "model/rotary.h"
#include "model/schedules.h"
#include "model/toto1_weights.h"

namespace toto {

enum class Token : std::uint8_t { patch, target_label, exogenous_label };

// Consecutive positions of one variate in this pass, and the cache that belongs to them. The new
// positions' keys and values are appended to `tail`.
struct RowRun {
  int first_row = 0;
  int num_rows = 0;
  KvSpan prefix = {};  // read only: what all samples of a series share
  int prefix_length = 0;
  KvSpan tail = {};
  int tail_length = 0;            // positions in `tail` before this pass
  const float* rotary = nullptr;  // factors of the run's rows, Rotary::floats_per_position() each
  Token first_token = Token::patch;  // what the first row is
  bool wants_output = false;         // of its last row
};

// Rows that look at each other in space-wise layers: variates of one patch with one id.
struct SpaceGroup {
  const int* rows = nullptr;
  int count = 0;
};

struct Pass {
  std::span<const RowRun> runs = {};
  const float* patches = nullptr;  // [row][patch_size], scaled; a label's row is not read
  int num_rows = 0;
  std::span<const SpaceGroup> groups = {};  // over all rows
  std::span<const SpaceGroup>
      output_groups;  // over the rows that want output, numbered in run order
  int num_outputs = 0;
  int output_steps = 0;  // of a patch that are asked for
};

class Toto1 {
 public:
  // `weights` are those of `config` in this `type`, and outlive this. Several networks may share
  // them, each with its own pool.
  Toto1(const Config& config, DType type, const Toto1Weights& weights, const Kernels& kernels,
        ThreadPool& pool);

  // Scratch for passes of up to `max_rows` rows that see up to `max_positions` positions.
  struct Workspace {
    float* hidden = nullptr;  // [row][embed_stride]
    float* normed = nullptr;  // [row][embed_stride]
    float* qkv = nullptr;     // [row][qkv_stride]
    float* mixed = nullptr;   // [row][embed_stride], what attention gathered
    float* gated = nullptr;   // [row][gate_stride]
    float* scores = nullptr;  // [thread][score_stride]
    std::size_t score_stride = 0;
    float* heads = nullptr;  // [output][head_stride]: the head's raw output
    QuantisedRows quantised;
  };
  Workspace take_workspace(Arena& arena, int max_rows, int max_outputs, int max_positions) const;

  // Fills workspace.heads: [output][step][parameter][component] with stride head_stride(), to which
  // head_bias() is still to be added.
  void forward(const Pass& pass, Workspace& workspace) const noexcept;

  // One matrix product of a forward pass, between the workspace's buffers. `layer` means nothing to
  // the head, of which the first `num_panels` are computed.
  void multiply(Product product, int layer, int rows, const Workspace& workspace,
                const Schedule& schedule, int num_panels = -1) const noexcept;
  // From now on forward() cuts its products up like this; the caller keeps them.
  void use(const Schedules& schedules) noexcept { schedules_ = &schedules; }

  const Config& config() const { return config_; }
  const KvLayout& kv_layout() const { return kv_layout_; }
  const Rotary& rotary() const { return rotary_; }
  bool has_variate_labels() const { return weights_.target_label.size() > 0; }
  std::size_t head_stride() const { return weights_.head.linear.padded_out(); }
  const double* head_bias() const {  // [step][parameter][component]
    return weights_.head.bias.data();
  }

 private:
  std::size_t gate_stride() const {
    return row_stride(round_up(config_.mlp_hidden_dim, kPanel / 2));
  }
  Schedule schedule_of(Product product, int rows) const noexcept {
    return schedules_ != nullptr ? schedules_->find(product, rows) : Schedule{};
  }
  void embed(const Pass& pass, Workspace& workspace) const noexcept;
  void normalise(const WeightArray<float>& weight, int rows, Workspace& workspace) const noexcept;
  void append_keys_and_values(const Pass& pass, int time_layer,
                              Workspace& workspace) const noexcept;
  void attend_in_time(const Pass& pass, int time_layer, bool outputs_only,
                      Workspace& workspace) const noexcept;
  void attend_in_space(std::span<const SpaceGroup> groups, Workspace& workspace) const noexcept;
  void keep_outputs(const Pass& pass, Workspace& workspace) const noexcept;

  Config config_;
  DType type_ = DType::f32;
  const Kernels& kernels_;
  ThreadPool& pool_;
  KvLayout kv_layout_;
  Rotary rotary_;
  std::size_t embed_stride_ = 0;
  const Toto1Weights& weights_;
  int last_time_layer_ = -1;
  const Schedules* schedules_ = nullptr;
};

}  // namespace toto
