#include "model/toto2/toto2_reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "model/plain_math.h"

namespace toto {
namespace {

using plain::dot;

// x / sqrt(mean(x^2) + epsilon) * weight, in place, for each `size` values of `rows`.
template <typename T>
void normalise_rows(T* rows, std::size_t count, int size, double epsilon,
                    const std::vector<T>& weight) {
  for (T* row = rows; row < rows + count; row += size) {
    const double root = std::sqrt(dot(row, row, size) / size + epsilon);
    for (int i = 0; i < size; ++i) {
      row[i] = static_cast<T>(row[i] / root * (weight.empty() ? 1.0 : double{weight[i]}));
    }
  }
}

double silu(double x) { return x / (1 + std::exp(-x)); }

// model.py: ExtrapolatableRotaryProjection on the first half of a head, in pairs.
template <typename T>
void rotate_plain(const Toto2Config& config, T* head, int position, int centre, bool is_key) {
  const int width = config.rotary_dims();
  for (int i = 0; i < width; i += 2) {
    const double angle = position * std::pow(10000.0, -double(i) / width);
    const double base = (i + 0.4 * width) / (1.4 * width);
    const double power = (position - centre) / 256.0 * (is_key ? -1 : 1);
    const double scale = config.use_xpos ? std::pow(base, power) : 1;
    const double even = head[i], odd = head[i + 1];
    head[i] = static_cast<T>((even * std::cos(angle) - odd * std::sin(angle)) * scale);
    head[i + 1] = static_cast<T>((odd * std::cos(angle) + even * std::sin(angle)) * scale);
  }
}

template <typename T>
std::vector<T> read_as(const Checkpoint& checkpoint, const std::string& name) {
  const std::vector<float> values = checkpoint.read(name);
  return {values.begin(), values.end()};
}

}  // namespace

template <typename T>
typename Toto2Reference<T>::Linear Toto2Reference<T>::read_linear(const Checkpoint& checkpoint,
                                                                  const std::string& name,
                                                                  bool has_bias) const {
  const std::vector<std::int64_t>& shape = checkpoint.info(name + ".weight").shape;
  Linear linear;
  linear.out = static_cast<int>(shape[0]);
  linear.in = static_cast<int>(shape[1]);
  linear.weight.resize(static_cast<std::size_t>(shape[0] * shape[1]));
  std::vector<float> row(linear.in);
  for (int n = 0; n < linear.out; ++n) {
    checkpoint.read(name + ".weight", std::uint64_t(n) * linear.in, row);
    std::copy(row.begin(), row.end(), linear.weight.begin() + std::size_t(n) * linear.in);
  }
  linear.bias.resize(linear.out);
  if (has_bias) linear.bias = read_as<T>(checkpoint, name + ".bias");
  return linear;
}

template <typename T>
typename Toto2Reference<T>::ResidualMlp Toto2Reference<T>::read_mlp(const Checkpoint& checkpoint,
                                                                    const std::string& name) const {
  return {read_linear(checkpoint, name + ".linear1", true),
          read_linear(checkpoint, name + ".linear2", true),
          read_linear(checkpoint, name + ".skip_proj", true)};
}

template <typename T>
Toto2Reference<T>::Toto2Reference(const Toto2Config& config, const Checkpoint& checkpoint)
    : config_(config),
      patch_proj_(read_mlp(checkpoint, "patch_proj")),
      head_(read_mlp(checkpoint, "output_head.param_projection.proj")) {
  for (int i = 0; i < config_.num_layers; ++i) {
    const std::string name = fmt::format("transformer.layers.{}", i);
    PlainLayer layer;
    layer.across_variates = config_.is_variate_layer(i);
    layer.in_proj = read_linear(checkpoint, name + ".attn.in_proj", config_.attn_bias);
    layer.out_proj = read_linear(checkpoint, name + ".attn.out_proj", config_.attn_bias);
    layer.fc1 = read_linear(checkpoint, name + ".ffn.fc1", config_.mlp_bias);
    layer.fc2 = read_linear(checkpoint, name + ".ffn.fc2", config_.mlp_bias);
    const bool has_taus = checkpoint.has(name + ".attn_tau");
    layer.attn_tau = has_taus ? checkpoint.read(name + ".attn_tau")[0] : config_.attn_tau(i);
    layer.mlp_tau = has_taus ? checkpoint.read(name + ".mlp_tau")[0] : config_.mlp_tau(i);
    if (config_.norm_include_weight) {
      layer.norm1 = read_as<T>(checkpoint, name + ".norm1.weight");
      layer.norm2 = read_as<T>(checkpoint, name + ".norm2.weight");
    }
    if (config_.qk_norm && config_.qk_norm_include_weight) {
      layer.q_norm = read_as<T>(checkpoint, name + ".attn.q_norm.weight");
      layer.k_norm = read_as<T>(checkpoint, name + ".attn.k_norm.weight");
    }
    if (config_.per_dim_scale) {
      for (const double x : read_as<double>(checkpoint, name + ".attn._pds.per_dim_scale")) {
        const double softplus = x > 20 ? x : std::log1p(std::exp(x));
        layer.per_dim_scale.push_back(softplus / std::numbers::ln2);
      }
    }
    layers_.push_back(std::move(layer));
  }
  if (config_.norm_include_weight) {
    out_norm_ = read_as<T>(checkpoint, "transformer.out_norm.weight");
  }
}

// `check` runs every kRowsBetweenChecks rows.
template <typename T>
std::vector<T> Toto2Reference<T>::apply(const Linear& linear, const std::vector<T>& rows,
                                        double divisor, ThreadPool& pool,
                                        const std::function<void()>& check) const {
  const int num_rows = static_cast<int>(rows.size() / linear.in);
  std::vector<T> result(std::size_t(num_rows) * linear.out);
  for (int first = 0; first < num_rows; first += plain::kRowsBetweenChecks) {
    if (check) check();
    const int last = std::min(num_rows, first + plain::kRowsBetweenChecks);
    pool.run(linear.out, [&](int n, int) {
      const T* weight = linear.weight.data() + std::size_t(n) * linear.in;
      for (int r = first; r < last; ++r) {
        const double sum = dot(rows.data() + std::size_t(r) * linear.in, weight, linear.in);
        result[std::size_t(r) * linear.out + n] = static_cast<T>((sum + linear.bias[n]) / divisor);
      }
    });
  }
  return result;
}

// model.py: ResidualMLP. A hidden layer divides by the root of its inputs, a readout by their
// number; the scaled SiLU has a factor that keeps unit variance.
template <typename T>
std::vector<T> Toto2Reference<T>::apply(const ResidualMlp& mlp, const std::vector<T>& rows,
                                        bool readout, ThreadPool& pool,
                                        const std::function<void()>& check) const {
  const double gain =
      std::exp(0.8 * std::log(std::sqrt(2 / (1 - 1 / std::numbers::pi))) + 0.2 * std::numbers::ln2);
  const auto divisor = [readout](const Linear& linear) {
    return readout ? double(linear.in) : std::sqrt(double(linear.in));
  };
  std::vector<T> hidden = apply(mlp.linear1, rows, std::sqrt(double(mlp.linear1.in)), pool, check);
  for (T& x : hidden) x = static_cast<T>(gain * silu(x));
  std::vector<T> result = apply(mlp.linear2, hidden, divisor(mlp.linear2), pool, check);
  const std::vector<T> skip = apply(mlp.skip, rows, divisor(mlp.skip), pool, check);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<T>((double{result[i]} + skip[i]) / std::numbers::sqrt2);
  }
  return result;
}

// Norms and scale of queries and keys, before any rotation. A row is [heads of Q][K][V].
template <typename T>
void Toto2Reference<T>::prepare_heads(const PlainLayer& layer, std::vector<T>& qkv) const {
  const int dim = config_.qk_dim;
  for (T* row = qkv.data(); row < qkv.data() + qkv.size(); row += config_.qkv_rows()) {
    T* keys = row + std::size_t(config_.num_heads) * dim;
    if (config_.qk_norm) {
      normalise_rows(row, std::size_t(config_.num_heads) * dim, dim, config_.norm_eps,
                     layer.q_norm);
      normalise_rows(keys, std::size_t(config_.num_groups) * dim, dim, config_.norm_eps,
                     layer.k_norm);
    }
    for (T* x = row; x < keys && !layer.per_dim_scale.empty(); ++x) {
      *x = static_cast<T>(*x * layer.per_dim_scale[(x - row) % dim]);
    }
  }
}

// Causal, within one variate; absent patches see only each other.
template <typename T>
std::vector<T> Toto2Reference<T>::time_attention(int time_layer, std::vector<T>& qkv,
                                                 const Toto2ReferenceInput<T>& input,
                                                 Toto2ReferenceCache<T>& cache,
                                                 ThreadPool& pool) const {
  const int heads = config_.num_heads, groups = config_.num_groups, rows = input.num_rows;
  const int dim = config_.qk_dim, v_dim = config_.v_dim, width = config_.qkv_rows();
  const int before = cache.length, total = before + rows;
  const int centre = total / 2;  // of this call's positions: (the last one + 1) / 2
  const std::size_t key_row = std::size_t(groups) * dim, value_row = std::size_t(groups) * v_dim;
  std::vector<T> keys(input.num_variates * total * key_row);
  std::vector<T> values(input.num_variates * total * value_row);
  for (int v = 0; v < input.num_variates; ++v) {
    if (before > 0) {
      std::copy_n(cache.keys[time_layer].begin() + v * before * key_row, before * key_row,
                  keys.begin() + v * total * key_row);
      std::copy_n(cache.values[time_layer].begin() + v * before * value_row, before * value_row,
                  values.begin() + v * total * value_row);
    }
    for (int i = 0; i < rows; ++i) {
      T* row = &qkv[(std::size_t(v) * rows + i) * width];
      T* key = row + std::size_t(heads) * dim;
      for (int h = 0; h < heads; ++h) {
        rotate_plain(config_, row + h * dim, before + i, centre, false);
      }
      for (int g = 0; g < groups; ++g) {
        rotate_plain(config_, key + g * dim, before + i, centre, true);
      }
      const std::size_t at = std::size_t(v) * total + before + i;
      std::copy_n(key, key_row, &keys[at * key_row]);
      std::copy_n(key + key_row, value_row, &values[at * value_row]);
    }
  }
  std::vector<T> result(std::size_t(input.num_variates) * rows * heads * v_dim);
  std::vector<double> all_scores(std::size_t(pool.num_threads()) * total);
  std::vector<int> all_seen(all_scores.size());
  for (int v = 0; v < input.num_variates; ++v) {
    if (input.check) input.check();
    pool.run(heads, [&](int h, int worker) {
      const int group = h / (heads / groups);
      double* scores = all_scores.data() + std::size_t(worker) * total;
      int* seen = all_seen.data() + std::size_t(worker) * total;
      for (int i = 0; i < rows; ++i) {
        const std::size_t at = std::size_t(v) * rows + i;
        int count = 0;
        for (int j = 0; j <= before + i; ++j) {
          const bool key_absent = j < before
                                      ? cache.absent[std::size_t(v) * before + j] != 0
                                      : input.absent[std::size_t(v) * rows + j - before] != 0;
          if (key_absent != (input.absent[at] != 0)) continue;
          const T* key = &keys[(std::size_t(v) * total + j) * key_row + group * dim];
          scores[count] = dot(&qkv[at * width + h * dim], key, dim) / dim;
          seen[count++] = j;
        }
        plain::weighted_mean(
            std::span(scores, count), v_dim, &result[(at * heads + h) * v_dim], [&](int j) {
              return &values[(std::size_t(v) * total + seen[j]) * value_row + group * v_dim];
            });
      }
    });
  }
  // Rows of patches to predict are computed again by the next call.
  const int kept = total - input.num_outputs;
  cache.keys[time_layer].clear();
  cache.values[time_layer].clear();
  for (int v = 0; v < input.num_variates; ++v) {
    const auto key = keys.begin() + v * total * key_row;
    const auto value = values.begin() + v * total * value_row;
    cache.keys[time_layer].insert(cache.keys[time_layer].end(), key, key + kept * key_row);
    cache.values[time_layer].insert(cache.values[time_layer].end(), value,
                                    value + kept * value_row);
  }
  return result;
}

// Across the variates of one patch that have the same id; no rotation, no causality.
template <typename T>
std::vector<T> Toto2Reference<T>::variate_attention(const std::vector<T>& qkv,
                                                    const Toto2ReferenceInput<T>& input) const {
  const int heads = config_.num_heads, groups = config_.num_groups, rows = input.num_rows;
  const int dim = config_.qk_dim, v_dim = config_.v_dim, width = config_.qkv_rows();
  std::vector<T> result(std::size_t(input.num_variates) * rows * heads * v_dim);
  for (int i = 0; i < rows; ++i) {
    if (input.check) input.check();
    for (int v = 0; v < input.num_variates; ++v) {
      const std::size_t at = std::size_t(v) * rows + i;
      for (int h = 0; h < heads; ++h) {
        const int group = h / (heads / groups);
        std::vector<double> scores;
        std::vector<const T*> values;
        for (int u = 0; u < input.num_variates; ++u) {
          const std::size_t other = std::size_t(u) * rows + i;
          if (input.ids[other] != input.ids[at]) continue;
          const T* keys = &qkv[other * width] + std::size_t(heads) * dim;
          scores.push_back(dot(&qkv[at * width + h * dim], keys + group * dim, dim) / dim);
          values.push_back(keys + std::size_t(groups) * dim + group * v_dim);
        }
        plain::weighted_mean(std::span(scores), v_dim, &result[(at * heads + h) * v_dim],
                             [&](int j) { return values[j]; });
      }
    }
  }
  return result;
}

template <typename T>
std::vector<T> Toto2Reference<T>::forward(const Toto2ReferenceInput<T>& input,
                                          Toto2ReferenceCache<T>& cache, ThreadPool& pool) const {
  const int d = config_.d_model, rows = input.num_rows, variates = input.num_variates;
  const auto& check = input.check;
  const double root_d = std::sqrt(double(d));
  cache.keys.resize(layers_.size());
  cache.values.resize(layers_.size());
  std::vector<T> hidden =
      apply(patch_proj_, std::vector<T>(input.rows.begin(), input.rows.end()), false, pool, check);
  const auto normed = [&](const std::vector<T>& weight) {
    std::vector<T> result = hidden;
    normalise_rows(result.data(), result.size(), d, config_.norm_eps, weight);
    return result;
  };
  const auto add = [&hidden](const std::vector<T>& branch, double tau) {
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      hidden[i] = static_cast<T>((tau * branch[i] + hidden[i]) / std::sqrt(1 + tau * tau));
    }
  };
  int time_layer = 0;
  for (const PlainLayer& layer : layers_) {  // model.py: SelfAttentionTransformerLayer
    std::vector<T> qkv = apply(layer.in_proj, normed(layer.norm1), root_d, pool, check);
    prepare_heads(layer, qkv);
    const std::vector<T> mixed = layer.across_variates
                                     ? variate_attention(qkv, input)
                                     : time_attention(time_layer++, qkv, input, cache, pool);
    add(apply(layer.out_proj, mixed, std::sqrt(double(layer.out_proj.in)), pool, check),
        layer.attn_tau);
    const std::vector<T> up = apply(layer.fc1, normed(layer.norm2), root_d, pool, check);
    std::vector<T> gated(up.size() / 2);
    for (std::size_t i = 0; i < gated.size(); ++i) {
      const std::size_t at = i / config_.d_ff * 2 * config_.d_ff + i % config_.d_ff;
      gated[i] = static_cast<T>(up[at] * silu(up[at + config_.d_ff]));
    }
    add(apply(layer.fc2, gated, std::sqrt(double(config_.d_ff)), pool, check), layer.mlp_tau);
  }
  hidden = normed(out_norm_);

  std::vector<T> read;  // the row before a patch predicts it
  std::vector<std::uint8_t> absent;
  const int before = cache.length, kept = rows - input.num_outputs;
  for (int v = 0; v < variates; ++v) {
    const auto end = hidden.begin() + std::ptrdiff_t(v + 1) * rows * d;
    read.insert(read.end(), end - std::ptrdiff_t(input.num_outputs + 1) * d, end - d);
    const auto old = cache.absent.begin() + std::ptrdiff_t(v) * before;
    absent.insert(absent.end(), old, old + before);
    const auto fresh = input.absent.begin() + std::ptrdiff_t(v) * rows;
    absent.insert(absent.end(), fresh, fresh + kept);
  }
  cache.absent = std::move(absent);
  cache.length += kept;
  return apply(head_, read, true, pool, check);
}

template class Toto2Reference<float>;
template class Toto2Reference<double>;

}  // namespace toto
