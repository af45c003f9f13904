#include "model/toto1_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"

namespace toto {
namespace {

constexpr int kHalf = kPanel / 2;  // gates, and as many ups, of a panel

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

// Every array, in the order of the forward pass: who writes, maps or measures them all goes
// through here, so that none can be forgotten.
template <typename Weights, typename Visit>
void visit_arrays(Weights& weights, const Visit& visit) {
  const auto visit_linear = [&visit](auto& linear) {
    visit(linear.panels);
    visit(linear.bias);
  };
  visit(weights.target_label);
  visit(weights.exogenous_label);
  visit_linear(weights.embed);
  for (auto& layer : weights.layers) {
    visit(layer.norm1);
    visit_linear(layer.qkv);
    visit_linear(layer.out);
    visit(layer.norm2);
    visit_linear(layer.gate_up);
    visit_linear(layer.down);
  }
  visit_linear(weights.head.linear);
  visit(weights.head.bias);
}

}  // namespace

std::size_t embed_stride(const Config& config) {
  return row_stride(round_up(config.embed_dim, kPanel));
}

Toto1Weights Toto1Weights::declare(const Config& config, bool with_labels, DType type) {
  const int e = config.embed_dim, hidden = config.mlp_hidden_dim;
  const std::size_t stride = embed_stride(config);
  Toto1Weights weights;
  weights.target_label = WeightArray<float>(with_labels ? stride : 0);
  weights.exogenous_label = WeightArray<float>(with_labels ? stride : 0);
  weights.embed = declare_packed(config.patch_size, e, DType::f32);
  for (int i = 0; i < config.num_layers; ++i) {
    Layer layer;
    layer.norm1 = WeightArray<float>(stride);
    layer.norm2 = WeightArray<float>(stride);
    layer.qkv = declare_packed(e, 3 * e, type);
    layer.out = declare_packed(e, e, type);
    layer.gate_up = declare_packed(e, 2 * static_cast<int>(round_up(hidden, kHalf)), type);
    layer.down = declare_packed(hidden, e, type);
    weights.layers.push_back(std::move(layer));
  }
  weights.head = declare_head(config, type);
  return weights;
}

Toto1Weights Toto1Weights::pack(const Checkpoint& checkpoint, DType type, const Kernels& kernels,
                                ThreadPool& pool) {
  const Config& config = checkpoint.config();
  const int e = config.embed_dim, heads = config.num_heads, hd = config.head_dim();
  const int hidden = config.mlp_hidden_dim;
  const auto same_row = [](int n) { return n; };
  Toto1Weights weights = declare(config, checkpoint.has_variate_labels(), type);
  if (checkpoint.has_variate_labels()) {
    fill(weights.target_label, normalised(checkpoint.read("target_variate_label")));
    fill(weights.exogenous_label, normalised(checkpoint.read("exogenous_variate_label")));
  }
  pack_linear(checkpoint, "patch_embed.projection", weights.embed, same_row);
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string name = fmt::format("transformer.layers.{}", i);
    Layer& layer = weights.layers[i];
    fill(layer.norm1, checkpoint.read(name + ".norm1.scale"));
    fill(layer.norm2, checkpoint.read(name + ".norm2.scale"));
    // attention.py: get_qkv reads its outputs as (qkv, head_dim, head); heads come first here.
    pack_linear(checkpoint, name + ".attention.wQKV", layer.qkv, [&](int n) {
      const int head = n % e / hd, d = n % hd;
      return n / e * e + d * heads + head;
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
  fold_head(checkpoint, weights.head, kernels, pool);
  return weights;
}

void Toto1Weights::map(std::span<const std::span<const std::byte>> arrays) {
  std::size_t next = 0;
  visit_arrays(*this, [&](auto& array) {
    if (next >= arrays.size() || arrays[next].size() != array.bytes()) {
      fail(ErrorCode::internal, "packed array {} does not fit: {} of {} bytes", next,
           next < arrays.size() ? arrays[next].size() : 0, array.bytes());
    }
    array.map(arrays[next++].data());
  });
}

std::vector<std::span<const std::byte>> Toto1Weights::arrays() const {
  std::vector<std::span<const std::byte>> arrays;
  visit_arrays(*this, [&](const auto& array) { arrays.push_back(array.as_bytes()); });
  return arrays;
}

std::vector<std::uint64_t> Toto1Weights::array_sizes() const {
  std::vector<std::uint64_t> sizes;
  visit_arrays(*this, [&](const auto& array) { sizes.push_back(array.bytes()); });
  return sizes;
}

std::size_t Toto1Weights::bytes() const {
  const std::vector<std::uint64_t> sizes = array_sizes();
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

}  // namespace toto
