#include "model/toto2/toto2_network.h"

#include <algorithm>

#include "base/error.h"
#include "model/toto2/toto2_head.h"
#include "model/toto2/toto2_scaler.h"

namespace toto {

Toto2Network::Toto2Network(const Toto2Config& config, const ModelShape& shape,
                           const Toto2Weights& weights, const Kernels& kernels, ThreadPool& pool)
    : Network(shape),
      config_(config),
      kernels_(kernels),
      pool_(pool),
      rotary_({.dims = config.rotary_dims(),
               .has_xpos = config.use_xpos,
               .xpos_base = 256,
               .paired_scales = true}),
      head_dim_(head_dim_of(config)),
      attended_(config.num_heads * head_dim_),
      embed_stride_(toto2_embed_stride(config)),
      weights_(weights) {
  for (int i = 0; i < config_.num_layers; ++i) {
    if (!config_.is_variate_layer(i)) last_time_layer_ = i;
  }
}

// ---------------------------------------------------------------------------------------- reading

ScalerState Toto2Network::read_context(std::span<float> rows, std::span<const std::uint8_t> mask,
                                       const ContextReading& reading, double* loc,
                                       double* scale) const noexcept {
  return toto2_read_context(config_.patch_size, rows, mask, reading, loc, scale);
}

void Toto2Network::read_patch(ScalerState& state, const float* values, float* row, double* loc,
                              double* scale) const noexcept {
  read_block(state, {values, static_cast<std::size_t>(config_.patch_size)}, row, loc, scale);
}

void Toto2Network::read_block(ScalerState& state, std::span<const float> values, float* rows,
                              double* loc, double* scale) const noexcept {
  toto2_read_patches(config_.patch_size, state, values, false, rows, loc, scale);
}

void Toto2Network::read_known(ScalerState& state, const float* values, float* row, double* loc,
                              double* scale) const noexcept {
  toto2_read_patches(config_.patch_size, state,
                     {values, static_cast<std::size_t>(config_.patch_size)}, true, row, loc, scale);
}

// The reference centres each call on half its length, which counts one row more than ours: that of
// the last patch to predict, whose output is not needed.
void Toto2Network::position_factors(int position, int last, int first_last,
                                    float* dst) const noexcept {
  rotary_.factors(position, position - (last + 2) / 2 + (first_last + 2) / 2, dst);
}

StepDistribution Toto2Network::step(const float* head, int step, double loc, double scale,
                                    ForecastRange range, std::span<double> memory) const noexcept {
  return toto2_step(head, config_.patch_size, step, loc, scale, range, memory);
}

void Toto2Network::trace(int num_variates, int outputs, const Workspace& workspace,
                         const double* loc, const double* scale, Trace& trace) const {
  std::vector<double> locs, scales;
  for (int v = 0; v < num_variates; ++v) {
    locs.push_back(loc[std::size_t(v) * config_.patch_size]);
    scales.push_back(scale[std::size_t(v) * config_.patch_size]);
  }
  toto2_trace(num_variates, outputs, config_.patch_size, workspace.heads, workspace.head_stride,
              std::move(locs), std::move(scales), trace);
}

std::string Toto2Network::schedule_key() const {
  return fmt::format("toto2 width {} hidden {} layers {} heads {} groups {} of {} head {}",
                     config_.d_model, config_.d_ff, config_.num_layers, config_.num_heads,
                     config_.num_groups, head_dim_, config_.outputs());
}

std::string Toto2Network::schedule_name() const {
  return fmt::format("{}-{}", config_.d_model, config_.d_ff);
}

// ---------------------------------------------------------------------------------------- forward

std::size_t Toto2Network::wide_stride() const {
  const int width = config_.mlp_width();
  return row_stride(round_up(width + std::max(config_.input_width(), config_.d_model), kPanel));
}

Workspace Toto2Network::take_workspace(Arena& arena, int max_rows, int max_outputs,
                                       int max_positions) const {
  Workspace workspace;
  const std::size_t rows = max_rows;
  workspace.hidden = arena.take<float>(rows * embed_stride_);
  workspace.normed = arena.take<float>(rows * embed_stride_);
  // One extra vector: kernels read past the end of a narrow last head.
  workspace.qkv = arena.take<float>(rows * qkv_stride() + kPartialSums);
  workspace.mixed = arena.take<float>(rows * mixed_stride());
  // The gated values of a layer, or the hidden ones of a residual MLP.
  workspace.gated = arena.take<float>(rows * std::max(gate_stride(), wide_stride()));
  // A group of variates has at most all rows; each part of the cache is rounded up to whole panels.
  // A head on its way through its norm is there too.
  workspace.score_stride =
      round_up(std::max({max_positions, max_rows, head_dim_}) + 3 * kKeyPanel, kKeyPanel);
  workspace.scores = arena.take<float>(workspace.score_stride * pool_.num_threads());
  workspace.heads = arena.take<float>(std::size_t(max_outputs) * head_stride());
  workspace.head_stride = head_stride();
  return workspace;
}

void Toto2Network::embed(const Pass& pass, Workspace& workspace) const noexcept {
  const std::size_t in = config_.input_width(), width = config_.mlp_width();
  apply(weights_.embed_in,
        {.src = pass.inputs,
         .src_stride = in,
         .dst = workspace.gated,
         .dst_stride = wide_stride(),
         .rows = pass.num_rows,
         .epilogue = Epilogue::silu},
        kernels_, pool_);
  for (int row = 0; row < pass.num_rows; ++row) {
    std::copy_n(pass.inputs + row * in, in, workspace.gated + row * wide_stride() + width);
  }
  apply(weights_.embed_out,
        {.src = workspace.gated,
         .src_stride = wide_stride(),
         .dst = workspace.hidden,
         .dst_stride = embed_stride_,
         .rows = pass.num_rows},
        kernels_, pool_);
  for (const ConstantRow& constant : pass.constants) {
    std::copy_n(weights_.query.data(), embed_stride_,
                workspace.hidden + constant.row * embed_stride_);
  }
}

void Toto2Network::normalise(double epsilon, int rows, Workspace& workspace) const noexcept {
  run_rows(pool_, rows, [&](int row, int) {
    kernels_.rms_norm(workspace.hidden + row * embed_stride_, nullptr, epsilon,
                      workspace.normed + row * embed_stride_, config_.d_model);
  });
}

// qk_norm: each head of queries and keys has its own norm. A copy of the head is padded with zeros
// to whole vectors, as the kernel expects.
void Toto2Network::normalise_heads(const Toto2Weights::PackedLayer& layer, int rows,
                                   Workspace& workspace) const noexcept {
  const int dim = config_.qk_dim, padded = static_cast<int>(round_up(dim, kPartialSums));
  run_rows(pool_, rows, [&](int row, int worker) {
    float* copy = workspace.scores + worker * workspace.score_stride;
    for (int h = 0; h < config_.num_heads + config_.num_groups; ++h) {
      float* head = workspace.qkv + row * qkv_stride() + std::size_t(h) * head_dim_;
      std::copy_n(head, dim, copy);
      std::fill_n(copy + dim, padded - dim, 0.0f);
      const auto& factors = h < config_.num_heads ? layer.q_norm : layer.k_norm;
      kernels_.rms_norm(copy, factors.data(), config_.norm_eps, copy, dim);
      std::copy_n(copy, dim, head);
    }
  });
}

// One task per run and group: rotates queries and keys in place and stores keys in panels, values
// in rows. Only the first rotary_dims of a head are rotated.
void Toto2Network::append_keys_and_values(const Pass& pass, int time_layer,
                                          Workspace& workspace) const noexcept {
  const KvLayout& layout = kv_layout();
  const int groups = config_.num_groups, per_group = config_.num_heads / groups;
  const int dims = config_.rotary_dims(), hd = head_dim_;
  const std::size_t to_keys = std::size_t(config_.num_heads) * hd,
                    to_values = std::size_t(groups) * hd;
  pool_.run(static_cast<int>(pass.runs.size()) * groups, [&](int task, int) {
    const RowRun& run = pass.runs[task / groups];
    const int group = task % groups;
    float* keys = run.tail.keys(layout, time_layer, group);
    float* values = run.tail.values(layout, time_layer, group);
    for (int i = 0; i < run.num_rows; ++i) {
      float* row = workspace.qkv + (run.first_row + i) * qkv_stride();
      const std::size_t place = run.places != nullptr ? run.places[i] : i;
      const float* factors = run.positions + place * rotary_.floats_per_position();
      for (int h = group * per_group; h < (group + 1) * per_group; ++h) {
        kernels_.rotate(row + h * hd, factors, factors + dims, row + h * hd, dims);
      }
      float* key = row + to_keys + group * hd;
      kernels_.rotate(key, factors + 2 * dims, factors + 3 * dims, key, dims);
      const int position = run.tail_length + i;
      float* panel =
          keys + std::size_t(position / kKeyPanel) * hd * kKeyPanel + position % kKeyPanel;
      for (int d = 0; d < hd; ++d) panel[std::size_t(d) * kKeyPanel] = key[d];
      std::copy_n(key + to_values, hd, values + std::size_t(position) * layout.value_stride);
    }
  });
}

// Causal attention of one head over the cached prefix and the run's own positions.
void Toto2Network::attend_in_time(const Pass& pass, int time_layer, bool outputs_only,
                                  Workspace& workspace) const noexcept {
  const KvLayout& layout = kv_layout();
  const int heads = config_.num_heads, per_group = heads / config_.num_groups;
  const int num_runs = static_cast<int>(pass.runs.size());
  pool_.run(num_runs * heads, [&](int task, int worker) {
    const RowRun& run = pass.runs[task / heads];
    const int head = task % heads, group = head / per_group;
    const int first = outputs_only ? run.num_rows - run.num_outputs : 0;
    AttendArgs args;
    args.head_dim = head_dim_;
    args.value_stride = layout.value_stride;
    args.scores = workspace.scores + worker * workspace.score_stride;
    if (run.prefix_length > 0) {
      args.prefix = {run.prefix.keys(layout, time_layer, group),
                     run.prefix.values(layout, time_layer, group), run.prefix_length};
    }
    args.tail = {run.tail.keys(layout, time_layer, group),
                 run.tail.values(layout, time_layer, group), 0};
    for (int i = first; i < run.num_rows; ++i) {
      args.query = workspace.qkv + (run.first_row + i) * qkv_stride() + head * head_dim_;
      args.tail.count = run.tail_length + i + 1;  // causal: itself and everything before
      args.dst = workspace.mixed + (run.first_row + i) * mixed_stride() + head * head_dim_;
      kernels_.attend(args);
    }
  });
}

// Attention of one head across the variates of a group; no rotary embedding, no causality.
void Toto2Network::attend_across(std::span<const SpaceGroup> groups,
                                 Workspace& workspace) const noexcept {
  const int heads = config_.num_heads, per_group = heads / config_.num_groups;
  pool_.run(static_cast<int>(groups.size()) * heads, [&](int task, int worker) {
    const SpaceGroup& group = groups[task / heads];
    const int head = task % heads, kv_head = head / per_group;
    AttendRowsArgs args;
    args.keys = workspace.qkv + std::size_t(heads + kv_head) * head_dim_;
    args.values = args.keys + std::size_t(config_.num_groups) * head_dim_;
    args.stride = qkv_stride();
    args.rows = group.rows;
    args.count = group.count;
    args.head_dim = head_dim_;
    args.scores = workspace.scores + worker * workspace.score_stride;
    for (int i = 0; i < group.count; ++i) {
      args.query = workspace.qkv + group.rows[i] * qkv_stride() + head * head_dim_;
      args.dst = workspace.mixed + group.rows[i] * mixed_stride() + head * head_dim_;
      kernels_.attend_rows(args);
    }
  });
}

// Moves the output rows to the front, in run order: after the last time layer no other row is
// needed.
void Toto2Network::keep_outputs(const Pass& pass, Workspace& workspace) const noexcept {
  int next = 0;
  for (const RowRun& run : pass.runs) {
    for (int i = run.num_rows - run.num_outputs; i < run.num_rows; ++i, ++next) {
      const std::size_t from = run.first_row + i;
      if (from == static_cast<std::size_t>(next)) continue;
      std::copy_n(workspace.hidden + from * embed_stride_, embed_stride_,
                  workspace.hidden + next * embed_stride_);
      std::copy_n(workspace.mixed + from * mixed_stride(), mixed_stride(),
                  workspace.mixed + next * mixed_stride());
    }
  }
}

// Source, destination and epilogue of each product.
void Toto2Network::multiply(Product product, int layer, int rows, const Workspace& workspace,
                            const Schedule& schedule) const noexcept {
  GemmCall call{.src = workspace.normed,
                .src_stride = embed_stride_,
                .dst = workspace.hidden,
                .dst_stride = embed_stride_,
                .rows = rows,
                .epilogue = Epilogue::add,
                .schedule = schedule};
  const PackedLinear* linear = nullptr;
  switch (product) {
    case Product::qkv:
      linear = &weights_.layers[layer].qkv;
      call.dst = workspace.qkv;
      call.dst_stride = qkv_stride();
      call.epilogue = Epilogue::store;
      break;
    case Product::out:
      linear = &weights_.layers[layer].out;
      call.src = workspace.mixed;
      call.src_stride = mixed_stride();
      break;
    case Product::gate_up:
      linear = &weights_.layers[layer].gate_up;
      call.dst = workspace.gated;
      call.dst_stride = gate_stride();
      call.epilogue = Epilogue::gate;
      break;
    case Product::down:
      linear = &weights_.layers[layer].down;
      call.src = workspace.gated;
      call.src_stride = gate_stride();
      break;
    case Product::head:
      linear = &weights_.head_out;
      call.src = workspace.gated;
      call.src_stride = wide_stride();
      call.dst = workspace.heads;
      call.dst_stride = head_stride();
      call.epilogue = Epilogue::store;
      break;
  }
  apply(*linear, call, kernels_, pool_);
}

// The last norm and the head, for the first `outputs` rows.
void Toto2Network::predict(int outputs, Workspace& workspace) const noexcept {
  normalise(weights_.epsilons.data()[2 * config_.num_layers], outputs, workspace);
  apply(weights_.head_in,
        {.src = workspace.normed,
         .src_stride = embed_stride_,
         .dst = workspace.gated,
         .dst_stride = wide_stride(),
         .rows = outputs,
         .epilogue = Epilogue::silu},
        kernels_, pool_);
  for (int row = 0; row < outputs; ++row) {
    std::copy_n(workspace.normed + row * embed_stride_, config_.d_model,
                workspace.gated + row * wide_stride() + config_.mlp_width());
  }
  multiply(Product::head, 0, outputs, workspace, schedule_of(Product::head, outputs));
}

// After the last time layer only output rows are processed.
void Toto2Network::forward(const Pass& pass, Workspace& workspace) const noexcept {
  int rows = pass.num_rows;
  std::span<const SpaceGroup> groups = pass.groups;
  const auto multiply_all = [&](Product product, int layer) {
    multiply(product, layer, rows, workspace, schedule_of(product, rows));
  };
  const auto only_outputs = [&] {
    keep_outputs(pass, workspace);
    rows = pass.num_outputs;
    groups = pass.output_groups;
  };
  embed(pass, workspace);
  if (last_time_layer_ < 0) only_outputs();  // without time layers the past has no influence
  int time_layer = 0;
  for (int i = 0; i < config_.num_layers; ++i) {
    const Toto2Weights::PackedLayer& layer = weights_.layers[i];
    normalise(weights_.epsilons.data()[2 * i], rows, workspace);
    multiply_all(Product::qkv, i);
    if (config_.qk_norm) normalise_heads(layer, rows, workspace);
    if (config_.is_variate_layer(i)) {
      attend_across(groups, workspace);
    } else {
      const bool last = i == last_time_layer_;
      append_keys_and_values(pass, time_layer, workspace);
      attend_in_time(pass, time_layer, last, workspace);
      ++time_layer;
      if (last) only_outputs();
    }
    multiply_all(Product::out, i);
    normalise(weights_.epsilons.data()[2 * i + 1], rows, workspace);
    multiply_all(Product::gate_up, i);
    multiply_all(Product::down, i);
  }
  predict(pass.num_outputs, workspace);
}

}  // namespace toto
