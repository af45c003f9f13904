#include "model/toto1/toto1_network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "model/toto1/toto1_head.h"
#include "model/toto1/toto1_scaler.h"

namespace toto {
namespace {

constexpr double kNormEpsilon = 1e-8;  // util.py: RMSNorm

}  // namespace

Toto1Network::Toto1Network(const Toto1Config& config, const ModelShape& shape, DType type,
                           const Toto1Weights& weights, const Kernels& kernels, ThreadPool& pool)
    : Network(shape),
      config_(config),
      type_(type),
      kernels_(kernels),
      pool_(pool),
      rotary_({.dims = config_.head_dim(),
               .query_factor = 1 / std::sqrt(static_cast<double>(config_.head_dim())),
               .float32_tables = true}),
      embed_stride_(embed_stride(config_)),
      weights_(weights) {
  for (int i = 0; i < config_.num_layers; ++i) {
    if (!config_.is_spacewise(i)) last_time_layer_ = i;
  }
}

ScalerState Toto1Network::read_context(std::span<float> rows, std::span<const std::uint8_t> mask,
                                       const ContextReading& /*reading*/, double* loc,
                                       double* scale) const noexcept {
  return scale_context(config_, rows, mask, loc, scale);
}

void Toto1Network::read_patch(ScalerState& state, const float* values, float* row, double* loc,
                              double* scale) const noexcept {
  scale_patch<float>(config_, state, values, nullptr, row, loc, scale);
}

// A pass is centred on its own positions, cached keys on the context's; rotary.h has the algebra.
void Toto1Network::position_factors(int position, int last, int first_last,
                                    float* dst) const noexcept {
  rotary_.factors(position, position - last / 2 + first_last / 2, dst);
}

StepDistribution Toto1Network::step(const float* head, int step, double loc, double scale,
                                    ForecastRange /*range*/,
                                    std::span<double> memory) const noexcept {
  const std::size_t at = std::size_t(step) * config_.params_per_step();
  return StepDistribution(
      toto1_step(config_, head + at, weights_.head.bias.data() + at, loc, scale, memory));
}

std::size_t Toto1Network::step_doubles() const noexcept {
  return toto1_step_doubles(config_.num_components);
}

void Toto1Network::trace(int num_variates, int /*outputs*/, const Workspace& workspace,
                         const double* loc, const double* scale, Trace& trace) const {
  toto1_trace(config_, num_variates, workspace.heads, head_stride(), weights_.head.bias.data(), loc,
              scale, trace);
}

std::string Toto1Network::schedule_key() const {
  return fmt::format("embedding {} hidden {} layers {} head {}", config_.embed_dim,
                     config_.mlp_hidden_dim, config_.num_layers,
                     config_.patch_size * config_.params_per_step());
}

std::string Toto1Network::schedule_name() const {
  return fmt::format("{}-{}", config_.embed_dim, config_.mlp_hidden_dim);
}

Workspace Toto1Network::take_workspace(Arena& arena, int max_rows, int max_outputs,
                                       int max_positions) const {
  Workspace workspace;
  const std::size_t rows = max_rows;
  workspace.hidden = arena.take<float>(rows * embed_stride_);
  workspace.normed = arena.take<float>(rows * embed_stride_);
  // One extra vector: kernels read past the end of a narrow last head.
  workspace.qkv = arena.take<float>(rows * round_up(3 * config_.embed_dim, kPanel) + kPartialSums);
  workspace.mixed = arena.take<float>(rows * embed_stride_);
  workspace.gated = arena.take<float>(rows * gate_stride());
  // A space-wise group has at most all rows; each part of the cache is rounded up to whole panels.
  workspace.score_stride = round_up(std::max(max_positions, max_rows) + 3 * kKeyPanel, kKeyPanel);
  workspace.scores = arena.take<float>(workspace.score_stride * pool_.num_threads());
  workspace.heads = arena.take<float>(std::size_t(max_outputs) * head_stride());
  workspace.head_stride = head_stride();
  workspace.quantised = take_quantised(arena, type_, std::max(max_rows, max_outputs),
                                       std::max(config_.embed_dim, config_.mlp_hidden_dim));
  return workspace;
}

// Labels replace the embedding of their rows.
void Toto1Network::embed(const Pass& pass, Workspace& workspace) const noexcept {
  apply(weights_.embed,
        {.src = pass.inputs,
         .src_stride = static_cast<std::size_t>(config_.patch_size),
         .dst = workspace.hidden,
         .dst_stride = embed_stride_,
         .rows = pass.num_rows},
        kernels_, pool_);
  for (const ConstantRow& constant : pass.constants) {
    const WeightArray<float>& label =
        constant.constant == kTargetLabel ? weights_.target_label : weights_.exogenous_label;
    std::copy_n(label.data(), embed_stride_, workspace.hidden + constant.row * embed_stride_);
  }
}

void Toto1Network::normalise(const WeightArray<float>& weight, int rows,
                             Workspace& workspace) const noexcept {
  run_rows(pool_, rows, [&](int row, int) {
    kernels_.rms_norm(workspace.hidden + row * embed_stride_, weight.data(), kNormEpsilon,
                      workspace.normed + row * embed_stride_, config_.embed_dim);
  });
}

// One task per run and head: rotates queries and keys in place and stores keys in panels, values in
// rows.
void Toto1Network::append_keys_and_values(const Pass& pass, int time_layer,
                                          Workspace& workspace) const noexcept {
  const KvLayout& layout = kv_layout();
  const int e = config_.embed_dim, heads = config_.num_heads, hd = config_.head_dim();
  const std::size_t qkv_stride = round_up(3 * e, kPanel);
  pool_.run(static_cast<int>(pass.runs.size()) * heads, [&](int task, int) {
    const RowRun& run = pass.runs[task / heads];
    const int head = task % heads;
    float* keys = run.tail.keys(layout, time_layer, head);
    float* values = run.tail.values(layout, time_layer, head);
    for (int i = 0; i < run.num_rows; ++i) {
      float* row = workspace.qkv + (run.first_row + i) * qkv_stride + head * hd;
      const std::size_t place = run.places != nullptr ? run.places[i] : i;
      const float* factors = run.positions + place * rotary_.floats_per_position();
      kernels_.rotate(row, factors, factors + hd, row, hd);
      kernels_.rotate(row + e, factors + 2 * hd, factors + 3 * hd, row + e, hd);
      const int position = run.tail_length + i;
      float* panel =
          keys + std::size_t(position / kKeyPanel) * hd * kKeyPanel + position % kKeyPanel;
      for (int d = 0; d < hd; ++d) panel[std::size_t(d) * kKeyPanel] = row[e + d];
      std::copy_n(row + 2 * e, hd, values + std::size_t(position) * layout.value_stride);
    }
  });
}

// Causal attention of one head over the cached prefix and the run's own positions.
void Toto1Network::attend_in_time(const Pass& pass, int time_layer, bool outputs_only,
                                  Workspace& workspace) const noexcept {
  const KvLayout& layout = kv_layout();
  const int e = config_.embed_dim, heads = config_.num_heads, hd = config_.head_dim();
  const std::size_t qkv_stride = round_up(3 * e, kPanel);
  const int num_runs = static_cast<int>(pass.runs.size());
  pool_.run(num_runs * heads, [&](int task, int worker) {
    // All runs of one head, then the next head: paths share a prefix, which then stays in cache.
    const RowRun& run = pass.runs[task % num_runs];
    const int head = task / num_runs;
    const int first = outputs_only ? run.num_rows - run.num_outputs : 0;
    if (first == run.num_rows) return;
    AttendArgs args;
    args.head_dim = hd;
    args.value_stride = layout.value_stride;
    args.scores = workspace.scores + worker * workspace.score_stride;
    if (run.prefix_length > 0) {
      args.prefix = {run.prefix.keys(layout, time_layer, head),
                     run.prefix.values(layout, time_layer, head), run.prefix_length};
    }
    args.tail = {run.tail.keys(layout, time_layer, head), run.tail.values(layout, time_layer, head),
                 0};
    for (int i = first; i < run.num_rows; ++i) {
      args.query = workspace.qkv + (run.first_row + i) * qkv_stride + head * hd;
      args.tail.count = run.tail_length + i + 1;  // causal: itself and everything before
      args.dst = workspace.mixed + (run.first_row + i) * embed_stride_ + head * hd;
      kernels_.attend(args);
    }
  });
}

// Attention of one head across the variates of a group; no rotary embedding, no causality.
void Toto1Network::attend_in_space(std::span<const SpaceGroup> groups,
                                   Workspace& workspace) const noexcept {
  const int e = config_.embed_dim, heads = config_.num_heads, hd = config_.head_dim();
  const std::size_t qkv_stride = round_up(3 * e, kPanel);
  const float inverse_root = static_cast<float>(1 / std::sqrt(static_cast<double>(hd)));
  pool_.run(static_cast<int>(groups.size()) * heads, [&](int task, int worker) {
    const SpaceGroup& group = groups[task / heads];
    const int head = task % heads;
    AttendRowsArgs args;
    args.keys = workspace.qkv + e + head * hd;
    args.values = workspace.qkv + 2 * e + head * hd;
    args.stride = qkv_stride;
    args.rows = group.rows;
    args.count = group.count;
    args.head_dim = hd;
    args.scale = inverse_root;
    args.scores = workspace.scores + worker * workspace.score_stride;
    for (int i = 0; i < group.count; ++i) {
      args.query = workspace.qkv + group.rows[i] * qkv_stride + head * hd;
      args.dst = workspace.mixed + group.rows[i] * embed_stride_ + head * hd;
      kernels_.attend_rows(args);
    }
  });
}

// Moves the output rows to the front, in run order: after the last time-wise layer no other row is
// needed.
void Toto1Network::keep_outputs(const Pass& pass, Workspace& workspace) const noexcept {
  int next = 0;
  for (const RowRun& run : pass.runs) {
    for (int i = run.num_rows - run.num_outputs; i < run.num_rows; ++i, ++next) {
      const std::size_t from = run.first_row + i;
      if (from == static_cast<std::size_t>(next)) continue;
      std::copy_n(workspace.hidden + from * embed_stride_, embed_stride_,
                  workspace.hidden + next * embed_stride_);
      std::copy_n(workspace.mixed + from * embed_stride_, embed_stride_,
                  workspace.mixed + next * embed_stride_);
    }
  }
}

// Source, destination and epilogue of each product of a layer.
void Toto1Network::multiply_panels(Product product, int layer, int rows, const Workspace& workspace,
                                   const Schedule& schedule, int num_panels) const noexcept {
  GemmCall call{.src = workspace.normed,
                .src_stride = embed_stride_,
                .dst = workspace.hidden,
                .dst_stride = embed_stride_,
                .rows = rows,
                .epilogue = Epilogue::add,
                .quantised = workspace.quantised,
                .num_panels = num_panels,
                .schedule = schedule};
  const PackedLinear* linear = nullptr;
  switch (product) {
    case Product::qkv:
      linear = &weights_.layers[layer].qkv;
      call.dst = workspace.qkv;
      call.dst_stride = round_up(3 * config_.embed_dim, kPanel);
      call.epilogue = Epilogue::store;
      break;
    case Product::out:
      linear = &weights_.layers[layer].out;
      call.src = workspace.mixed;
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
      linear = &weights_.head.linear;
      call.src = workspace.hidden;
      call.dst = workspace.heads;
      call.dst_stride = head_stride();
      call.epilogue = Epilogue::store;
      break;
  }
  apply(*linear, call, kernels_, pool_);
}

// After the last time-wise layer only output rows are processed.
void Toto1Network::forward(const Pass& pass, Workspace& workspace) const noexcept {
  int rows = pass.num_rows;
  std::span<const SpaceGroup> groups = pass.groups;
  const auto multiply_all = [&](Product product, int layer) {
    multiply(product, layer, rows, workspace, schedule_of(product, rows));
  };
  embed(pass, workspace);
  int time_layer = 0;
  if (last_time_layer_ < 0) {  // without time-wise layers the past has no influence
    keep_outputs(pass, workspace);
    rows = pass.num_outputs;
    groups = pass.output_groups;
  }
  for (int i = 0; i < config_.num_layers; ++i) {
    const Toto1Weights::PackedLayer& layer = weights_.layers[i];
    normalise(layer.norm1, rows, workspace);
    multiply_all(Product::qkv, i);
    if (config_.is_spacewise(i)) {
      attend_in_space(groups, workspace);
    } else {
      append_keys_and_values(pass, time_layer, workspace);
      const bool last = i == last_time_layer_;
      attend_in_time(pass, time_layer, last, workspace);
      ++time_layer;
      if (last) {
        keep_outputs(pass, workspace);
        rows = pass.num_outputs;
        groups = pass.output_groups;
      }
    }
    multiply_all(Product::out, i);
    normalise(layer.norm2, rows, workspace);
    multiply_all(Product::gate_up, i);
    multiply_all(Product::down, i);
  }
  const int panels = (pass.output_steps * config_.params_per_step() + kPanel - 1) / kPanel;
  multiply_panels(Product::head, 0, pass.num_outputs, workspace,
                  schedule_of(Product::head, pass.num_outputs), panels);
}

}  // namespace toto
