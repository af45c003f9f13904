#include "model/toto2/toto2_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "base/elementary.h"
#include "base/error.h"
#include "model/checkpoint.h"

namespace toto {
namespace {

constexpr int kGateColumns = kPanel / 2;  // gate columns of a panel, and as many up columns

// unit_scaling: silu of a standard normal has unit variance after this factor,
// exp(0.8 log sqrt(2 / (1 - 1 / pi)) + 0.2 log 2).
constexpr double kSiluGain = 1.766782948312328;

// log(1 + e^x), linear above 20 as in PyTorch; the C library's functions differ between CPUs.
double softplus(double x) {
  if (x > 20) return x;
  const double power = elementary::exp(x);
  return elementary::log1p_given(power, 1 + power, 1 / (1 + power));
}

double root(int number) { return std::sqrt(static_cast<double>(number)); }

// One tensor that is folded into a packed layer: weight and bias are multiplied by `factor`, column
// k of the weight also by column_factors[k].
struct FoldedPart {
  std::string name;
  bool has_bias = true;
  double factor = 1;
  double input_factor = 1;  // of the weight only
  std::vector<float> column_factors = {};
  std::vector<double> row_factors = {};  // of the tensor's rows
  int offset = 0;
  int group = 0, group_room = 0;  // columns come in groups that are spread out; 0: contiguous
};

// Reads the tensors row block by row block, which bounds the memory; folds in double and rounds
// once. Packed output n comes from row source_row(n) of every part, or is zero if that is negative.
template <typename SourceRow>
void pack_folded(const Checkpoint& checkpoint, ThreadPool& pool,
                 const std::vector<FoldedPart>& parts, PackedLinear& linear,
                 const SourceRow& source_row) {
  constexpr int kBlock = 256;  // rows of a tensor
  linear.panels.allocate();
  linear.bias.allocate();
  std::vector<int> target;  // of each row of the tensors: the packed output, or -1
  for (int n = 0; n < linear.out; ++n) {
    const int row = source_row(n);
    if (row < 0) continue;
    if (row >= static_cast<int>(target.size())) target.resize(row + 1, -1);
    target[row] = n;
  }
  const int num_rows = static_cast<int>(target.size());
  std::vector<std::vector<float>> biases, blocks(parts.size());
  std::vector<int> widths;
  for (const FoldedPart& part : parts) {
    widths.push_back(static_cast<int>(checkpoint.info(part.name + ".weight").shape[1]));
    biases.push_back(part.has_bias ? checkpoint.read(part.name + ".bias")
                                   : std::vector<float>(num_rows));
  }
  const std::size_t depth = linear.in;
  std::vector<double> sums(pool.num_threads() * depth);
  std::vector<float> rows(pool.num_threads() * depth);
  for (int first = 0; first < num_rows; first += kBlock) {
    const int count = std::min(kBlock, num_rows - first);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      blocks[i].resize(std::size_t(count) * widths[i]);
      checkpoint.read(parts[i].name + ".weight", std::uint64_t(first) * widths[i], blocks[i]);
    }
    pool.run(count, [&](int r, int worker) {
      if (target[first + r] < 0) return;
      double* sum = sums.data() + worker * depth;
      std::fill_n(sum, depth, 0.0);
      double bias = 0;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const FoldedPart& part = parts[i];
        const float* weight = blocks[i].data() + std::size_t(r) * widths[i];
        const double factor =
            part.factor * (part.row_factors.empty() ? 1 : part.row_factors[first + r]);
        const double weight_factor = factor * part.input_factor;
        for (int k = 0; k < widths[i]; ++k) {
          const int place = part.group == 0 ? k : k / part.group * part.group_room + k % part.group;
          const double column = part.column_factors.empty() ? 1 : part.column_factors[k];
          sum[part.offset + place] += weight[k] * weight_factor * column;
        }
        bias += biases[i][first + r] * factor;
      }
      float* row = rows.data() + worker * depth;
      std::copy_n(sum, depth, row);
      pack_column(linear, target[first + r], row, static_cast<float>(bias));
    });
  }
}

// The embedding of a patch whose values are all missing: 0 and a flag each.
std::vector<double> query_embedding(const Toto2Config& config, const Checkpoint& checkpoint) {
  const int d = config.d_model, width = config.mlp_width(), in = config.input_width();
  const auto flags_times = [&](const std::string& name, int out) {
    const std::vector<float> weight = checkpoint.read(name + ".weight");
    const std::vector<float> bias = checkpoint.read(name + ".bias");
    std::vector<double> result(bias.begin(), bias.end());
    for (int n = 0; n < out; ++n) {
      for (int k = config.patch_size; k < in; ++k) result[n] += weight[std::size_t(n) * in + k];
      result[n] /= root(in);
    }
    return result;
  };
  std::vector<double> hidden = flags_times("patch_proj.linear1", width);
  for (double& x : hidden) x = kSiluGain * x / (1 + elementary::exp(-x));
  std::vector<double> result = flags_times("patch_proj.skip_proj", d);
  const std::vector<float> weight = checkpoint.read("patch_proj.linear2.weight");
  const std::vector<float> bias = checkpoint.read("patch_proj.linear2.bias");
  for (int n = 0; n < d; ++n) {
    double sum = bias[n];
    for (int k = 0; k < width; ++k) sum += weight[std::size_t(n) * width + k] * hidden[k];
    result[n] = (result[n] + sum / root(width)) / std::numbers::sqrt2;
  }
  return result;
}

int same_row(int n) { return n; }

}  // namespace

std::size_t toto2_embed_stride(const Toto2Config& config) {
  return row_stride(round_up(config.d_model, kPanel));
}

// The order of add() is the order of the arrays in a cache file: changing it needs a new packing
// version.
Toto2Weights::Toto2Weights(const Toto2Config& config, DType type) {
  const int d = config.d_model, width = config.mlp_width(), in = config.input_width();
  const int head_dim = head_dim_of(config);
  embed_in = declare_packed(in, width, DType::f32);
  embed_out = declare_packed(width + in, d, DType::f32);
  query = WeightArray<float>(toto2_embed_stride(config));
  layers.resize(config.num_layers);
  for (PackedLayer& layer : layers) {
    layer.qkv = declare_packed(d, (config.num_heads + 2 * config.num_groups) * head_dim, type);
    layer.q_norm = WeightArray<float>(config.qk_norm ? round_up(head_dim, kPartialSums) : 0);
    layer.k_norm = WeightArray<float>(layer.q_norm.size());
    layer.out = declare_packed(config.num_heads * head_dim, d, type);
    layer.gate_up =
        declare_packed(d, 2 * static_cast<int>(round_up(config.d_ff, kGateColumns)), type);
    layer.down = declare_packed(config.d_ff, d, type);
  }
  epsilons = WeightArray<double>(std::size_t(2) * config.num_layers + 1);
  head_in = declare_packed(d, width, type);
  head_out = declare_packed(width + d, config.outputs(), DType::f32);

  const auto add_linear = [this](PackedLinear& linear) {
    add(linear.panels);
    add(linear.bias);
  };
  add_linear(embed_in);
  add_linear(embed_out);
  add(query);
  for (PackedLayer& layer : layers) {
    add_linear(layer.qkv);
    add(layer.q_norm);
    add(layer.k_norm);
    add_linear(layer.out);
    add_linear(layer.gate_up);
    add_linear(layer.down);
  }
  add(epsilons);
  add_linear(head_in);
  add_linear(head_out);
}

void Toto2Weights::pack(const Toto2Config& config, const Checkpoint& checkpoint, ThreadPool& pool) {
  const int d = config.d_model, width = config.mlp_width(), in = config.input_width();
  const int heads = config.num_heads, groups = config.num_groups, head_dim = head_dim_of(config);
  const int qk_dim = config.qk_dim, v_dim = config.v_dim, f = config.d_ff;
  const double gain = kSiluGain, half = 1 / std::numbers::sqrt2;
  const auto norm_weight = [&](const std::string& name) {
    return config.norm_include_weight ? checkpoint.read(name) : std::vector<float>();
  };

  pack_folded(checkpoint, pool, {{.name = "patch_proj.linear1", .factor = 1 / root(in)}}, embed_in,
              same_row);
  pack_folded(checkpoint, pool,
              {{.name = "patch_proj.linear2", .factor = half / root(width), .input_factor = gain},
               {.name = "patch_proj.skip_proj", .factor = half / root(in), .offset = width}},
              embed_out, same_row);
  const std::vector<double> embedded = query_embedding(config, checkpoint);
  std::copy(embedded.begin(), embedded.end(), query.allocate());

  double* epsilon = epsilons.allocate();
  double stream = 1;  // c, the network's stream relative to the reference's
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string name = fmt::format("transformer.layers.{}", i);
    PackedLayer& layer = layers[i];
    const bool has_taus = checkpoint.has(name + ".attn_tau");
    const double attn_tau = has_taus ? checkpoint.read(name + ".attn_tau")[0] : config.attn_tau(i);
    const double mlp_tau = has_taus ? checkpoint.read(name + ".mlp_tau")[0] : config.mlp_tau(i);

    // Scores are divided by qk_dim, and each dimension of a query has its own scale.
    std::vector<double> query_factors(qk_dim, 1.0 / qk_dim);
    if (config.per_dim_scale) {
      const std::vector<float> scales = checkpoint.read(name + ".attn._pds.per_dim_scale");
      for (int k = 0; k < qk_dim; ++k) {
        query_factors[k] *= softplus(scales[k]) / std::numbers::ln2;
      }
    }
    FoldedPart qkv{.name = name + ".attn.in_proj",
                   .has_bias = config.attn_bias,
                   .factor = 1 / root(d),
                   .column_factors = norm_weight(name + ".norm1.weight")};
    if (config.qk_norm) {  // the scale comes after the norm
      const bool weights = config.qk_norm_include_weight;
      const auto q = weights ? checkpoint.read(name + ".attn.q_norm.weight")
                             : std::vector<float>(qk_dim, 1.0f);
      const auto k = weights ? checkpoint.read(name + ".attn.k_norm.weight")
                             : std::vector<float>(qk_dim, 1.0f);
      float* q_factors = layer.q_norm.allocate();
      for (int j = 0; j < qk_dim; ++j) q_factors[j] = static_cast<float>(q[j] * query_factors[j]);
      std::copy(k.begin(), k.end(), layer.k_norm.allocate());
    } else {
      qkv.row_factors.assign(config.qkv_rows(), 1.0);
      for (int n = 0; n < heads * qk_dim; ++n) qkv.row_factors[n] = query_factors[n % qk_dim];
      layer.q_norm.allocate();
      layer.k_norm.allocate();
    }
    pack_folded(checkpoint, pool, {qkv}, layer.qkv, [&](int n) {
      const int head = n / head_dim, k = n % head_dim;
      if (head >= heads + groups) {
        const int first = (heads + groups) * qk_dim;
        return k < v_dim ? first + (head - heads - groups) * v_dim + k : -1;
      }
      return k < qk_dim ? head * qk_dim + k : -1;
    });

    *epsilon++ = config.norm_eps * stream * stream;
    pack_folded(checkpoint, pool,
                {{.name = name + ".attn.out_proj",
                  .has_bias = config.attn_bias,
                  .factor = stream * attn_tau / root(heads * v_dim),
                  .group = v_dim,
                  .group_room = head_dim}},
                layer.out, same_row);
    stream *= std::sqrt(1 + attn_tau * attn_tau);

    *epsilon++ = config.norm_eps * stream * stream;
    // The second half of the outputs gates the first. A panel holds 16 of each.
    pack_folded(checkpoint, pool,
                {{.name = name + ".ffn.fc1",
                  .has_bias = config.mlp_bias,
                  .factor = 1 / root(d),
                  .column_factors = norm_weight(name + ".norm2.weight")}},
                layer.gate_up, [&](int n) {
                  const int unit = n / kPanel * kGateColumns + n % kGateColumns;
                  if (unit >= f) return -1;
                  return n % kPanel < kGateColumns ? f + unit : unit;
                });
    pack_folded(checkpoint, pool,
                {{.name = name + ".ffn.fc2",
                  .has_bias = config.mlp_bias,
                  .factor = stream * mlp_tau / root(f)}},
                layer.down, same_row);
    stream *= std::sqrt(1 + mlp_tau * mlp_tau);
  }
  *epsilon = config.norm_eps * stream * stream;

  const std::string head = "output_head.param_projection.proj";
  const std::vector<float> out_norm = norm_weight("transformer.out_norm.weight");
  pack_folded(checkpoint, pool,
              {{.name = head + ".linear1", .factor = 1 / root(d), .column_factors = out_norm}},
              head_in, same_row);
  pack_folded(checkpoint, pool,
              {{.name = head + ".linear2", .factor = half / width, .input_factor = gain},
               {.name = head + ".skip_proj",
                .factor = half / d,
                .column_factors = out_norm,
                .offset = width}},
              head_out, same_row);
}

}  // namespace toto
