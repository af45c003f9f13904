#include "model/toto1/toto1_weights.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace toto {
namespace {

constexpr int kHalf = kPanel / 2;  // gate columns of a panel, and as many up columns

void fill(WeightArray<float>& array, const std::vector<float>& values) {
  std::copy(values.begin(), values.end(), array.allocate());
}

// fusion.py: F.normalize(label, p=2)
std::vector<float> normalised(std::vector<float> label) {
  double sum = 0;
  for (const float x : label) sum += static_cast<double>(x) * x;
  const double norm = std::max(std::sqrt(sum), 1e-12);
  for (float& x : label) x = static_cast<float>(x / norm);
  return label;
}

// Multiplies the head's projections with the unembedding in double: one layer instead of two.
void fold_head(const Toto1Config& config, const Checkpoint& checkpoint, FoldedHead& folded,
               const Kernels& kernels, ThreadPool& pool) {
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

  folded.linear.panels.allocate();
  folded.linear.bias.allocate();
  double* folded_bias = folded.bias.allocate();
  std::vector<float> step_weight(std::size_t(e) * e), step_bias(e);
  std::vector<double> sums(std::size_t(pool.num_threads()) * e);
  std::vector<float> rows(std::size_t(pool.num_threads()) * e);
  for (int step = 0; step < config.patch_size; ++step) {  // bounds the memory for the unembedding
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
      folded_bias[std::size_t(step) * per_step + n] = bias;
    });
  }
}

}  // namespace

std::size_t embed_stride(const Toto1Config& config) {
  return row_stride(round_up(config.embed_dim, kPanel));
}

// The order of add() is the order of the arrays in a cache file: changing it needs a new packing
// version.
Toto1Weights::Toto1Weights(const Toto1Config& config, bool with_labels, DType type) {
  const int e = config.embed_dim, hidden = config.mlp_hidden_dim;
  const std::size_t stride = embed_stride(config);
  target_label = WeightArray<float>(with_labels ? stride : 0);
  exogenous_label = WeightArray<float>(with_labels ? stride : 0);
  embed = declare_packed(config.patch_size, e, DType::f32);
  layers.resize(config.num_layers);
  for (PackedLayer& layer : layers) {
    layer.norm1 = WeightArray<float>(stride);
    layer.norm2 = WeightArray<float>(stride);
    layer.qkv = declare_packed(e, 3 * e, type);
    layer.out = declare_packed(e, e, type);
    layer.gate_up = declare_packed(e, 2 * static_cast<int>(round_up(hidden, kHalf)), type);
    layer.down = declare_packed(hidden, e, type);
  }
  const int outputs = config.patch_size * config.params_per_step();
  head.linear = declare_packed(e, outputs, type);
  head.bias = WeightArray<double>(static_cast<std::size_t>(outputs));

  const auto add_linear = [this](PackedLinear& linear) {
    add(linear.panels);
    add(linear.bias);
  };
  add(target_label);
  add(exogenous_label);
  add_linear(embed);
  for (PackedLayer& layer : layers) {
    add(layer.norm1);
    add_linear(layer.qkv);
    add_linear(layer.out);
    add(layer.norm2);
    add_linear(layer.gate_up);
    add_linear(layer.down);
  }
  add_linear(head.linear);
  add(head.bias);
}

void Toto1Weights::pack(const Toto1Config& config, const Checkpoint& checkpoint,
                        const Kernels& kernels, ThreadPool& pool) {
  const int e = config.embed_dim, heads = config.num_heads, hd = config.head_dim();
  const int hidden = config.mlp_hidden_dim;
  const auto same_row = [](int n) { return n; };
  if (target_label.size() > 0) {
    fill(target_label, normalised(checkpoint.read("target_variate_label")));
    fill(exogenous_label, normalised(checkpoint.read("exogenous_variate_label")));
  }
  pack_linear(checkpoint, "patch_embed.projection", embed, same_row);
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string name = fmt::format("transformer.layers.{}", i);
    PackedLayer& layer = layers[i];
    fill(layer.norm1, checkpoint.read(name + ".norm1.scale"));
    fill(layer.norm2, checkpoint.read(name + ".norm2.scale"));
    // attention.py: get_qkv reads its outputs as (qkv, head_dim, head); heads come first here.
    pack_linear(checkpoint, name + ".attention.wQKV", layer.qkv, [&](int n) {
      const int in_head = n % e / hd, d = n % hd;
      return n / e * e + d * heads + in_head;
    });
    pack_linear(checkpoint, name + ".attention.wO", layer.out, same_row);
    // feed_forward.py: the first half of the outputs gates the second. A panel holds 16 of each.
    pack_linear(checkpoint, name + ".mlp.0", layer.gate_up, [&](int n) {
      const int unit = n / kPanel * kHalf + n % kHalf;
      if (unit >= hidden) return -1;
      return n % kPanel < kHalf ? unit : hidden + unit;
    });
    pack_linear(checkpoint, name + ".mlp.2", layer.down, same_row);
  }
  fold_head(config, checkpoint, head, kernels, pool);
}

}  // namespace toto
