#include "model/layers.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace toto {

PackedLinear make_packed(int in, int out) {
  PackedLinear linear;
  linear.in = in;
  linear.num_panels = (out + kPanel - 1) / kPanel;
  linear.panels = Buffer<float>(std::size_t(linear.num_panels) * in * kPanel);
  linear.bias = Buffer<float>(std::size_t(linear.num_panels) * kPanel);
  return linear;
}

void pack_column(PackedLinear& linear, int column, const float* row, float bias) {
  float* dst =
      linear.panels.data() + std::size_t(column / kPanel) * linear.in * kPanel + column % kPanel;
  for (int k = 0; k < linear.in; ++k) dst[std::size_t(k) * kPanel] = row[k];
  linear.bias[column] = bias;
}

PackedLinear pack_linear(const Checkpoint& checkpoint, const std::string& name, int out,
                         const std::function<int(int)>& source_row) {
  const int in = static_cast<int>(checkpoint.info(name + ".weight").shape[1]);
  const std::vector<float> weight = checkpoint.read(name + ".weight");
  const std::vector<float> bias = checkpoint.read(name + ".bias");
  PackedLinear linear = make_packed(in, out);
  for (int n = 0; n < out; ++n) {
    if (const int row = source_row(n); row >= 0) {
      pack_column(linear, n, weight.data() + std::size_t(row) * in, bias[row]);
    }
  }
  return linear;
}

FoldedHead fold_head(const Checkpoint& checkpoint, const Kernels& kernels, ThreadPool& pool) {
  const Config& config = checkpoint.config();
  const int e = config.embed_dim, per_step = config.params_per_step();
  std::vector<float> head_weight, head_bias;  // [parameter][component][embed_dim]
  for (const char* name : {"df", "loc_proj", "scale_proj", "mixture_weights"}) {
    if (static_cast<int>(head_bias.size()) == per_step) break;
    const std::string full = fmt::format("output_distribution.{}", name);
    const std::vector<float> weight = checkpoint.read(full + ".weight");
    const std::vector<float> bias = checkpoint.read(full + ".bias");
    head_weight.insert(head_weight.end(), weight.begin(), weight.end());
    head_bias.insert(head_bias.end(), bias.begin(), bias.end());
  }

  FoldedHead folded;
  folded.linear = make_packed(e, config.patch_size * per_step);
  folded.bias = Buffer<double>(std::size_t(config.patch_size) * per_step);
  std::vector<float> step_weight(std::size_t(e) * e), step_bias(e);
  std::vector<double> sums(std::size_t(pool.num_threads()) * e);
  std::vector<float> rows(std::size_t(pool.num_threads()) * e);
  for (int step = 0; step < config.patch_size;
       ++step) {  // one step's share of the unembedding at a time
    checkpoint.read("unembed.weight", std::uint64_t(step) * e * e, step_weight);
    checkpoint.read("unembed.bias", std::uint64_t(step) * e, step_bias);
    pool.run(per_step, [&](int n, int worker) {
      double* sum = sums.data() + std::size_t(worker) * e;
      float* row = rows.data() + std::size_t(worker) * e;
      const float* weight = head_weight.data() + std::size_t(n) * e;
      std::fill_n(sum, e, 0.0);
      double bias = head_bias[n];
      for (int j = 0; j < e; ++j) {
        kernels.accumulate(sum, weight[j], step_weight.data() + std::size_t(j) * e, e);
        bias += static_cast<double>(weight[j]) * step_bias[j];
      }
      std::copy_n(sum, e, row);
      pack_column(folded.linear, step * per_step + n, row, 0.0f);
      folded.bias[std::size_t(step) * per_step + n] = bias;
    });
  }
  return folded;
}

void apply(const PackedLinear& linear, const GemmCall& call, const Kernels& kernels,
           ThreadPool& pool) noexcept {
  if (call.rows == 0) return;
  // Small enough to balance the threads, large enough that taking a task costs nothing.
  const int tasks =
      std::min(linear.num_panels, pool.num_threads() == 1 ? 1 : pool.num_threads() * 8);
  pool.run(tasks, [&](int task, int) {
    GemmArgs args;
    args.src = call.src;
    args.src_stride = call.src_stride;
    args.dst = call.dst;
    args.dst_stride = call.dst_stride;
    args.rows = call.rows;
    args.epilogue = call.epilogue;
    args.panels = linear.panels.data();
    args.bias = linear.bias.data();
    args.depth = linear.in;
    args.first_panel = static_cast<int>(std::int64_t{linear.num_panels} * task / tasks);
    args.last_panel = static_cast<int>(std::int64_t{linear.num_panels} * (task + 1) / tasks);
    kernels.gemm(args);
  });
}

}  // namespace toto
