#include "model/toto1/toto1_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "model/plain_math.h"

namespace toto {
namespace {

// rope.py and rotary_embedding_torch.py: frequencies and scales are float32 buffers for any dtype
// of the model, so they are rounded to float first.
struct PlainRotary {
  explicit PlainRotary(int head_dim) {
    for (int i = 0; i < head_dim; i += 2) {
      const float exponent = static_cast<float>(i) / static_cast<float>(head_dim);
      const float power = static_cast<float>(std::pow(10000.0, static_cast<double>(exponent)));
      frequencies.push_back(1.0f / power);
      scales.push_back((static_cast<float>(i) + static_cast<float>(0.4 * head_dim)) /
                       static_cast<float>(1.4 * head_dim));
    }
  }

  // Rotates one head's vector for position t; the xPos power is relative to `centre`. Frequencies
  // are interleaved in pairs, scales are concatenated [s, s]; keys take the inverse scale.
  template <typename T>
  void apply(T* x, double t, double centre, bool is_key) const {
    constexpr double kScaleBase = 512;
    const int half = static_cast<int>(frequencies.size());
    const double power = (t - centre) / kScaleBase * (is_key ? -1 : 1);
    for (int i = 0; i < half; ++i) {
      const double angle = t * frequencies[i];
      const double c = std::cos(angle), s = std::sin(angle);
      const double even = x[2 * i], odd = x[2 * i + 1];
      x[2 * i] = static_cast<T>((even * c - odd * s) * std::pow(scales[(2 * i) % half], power));
      x[2 * i + 1] =
          static_cast<T>((odd * c + even * s) * std::pow(scales[(2 * i + 1) % half], power));
    }
  }

  std::vector<double> frequencies;  // [head_dim / 2]
  std::vector<double> scales;       // [head_dim / 2]
};

}  // namespace

template <typename T>
typename Toto1Reference<T>::Linear Toto1Reference<T>::read_linear(const Checkpoint& checkpoint,
                                                                  const std::string& name) const {
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
  const std::vector<float> bias = checkpoint.read(name + ".bias");
  linear.bias.assign(bias.begin(), bias.end());
  return linear;
}

template <typename T>
Toto1Reference<T>::Toto1Reference(const Toto1Config& config, const Checkpoint& checkpoint)
    : config_(config), has_labels_(checkpoint.has("target_variate_label")) {
  const auto vector = [&checkpoint](const std::string& name) {
    const std::vector<float> values = checkpoint.read(name);
    return std::vector<T>(values.begin(), values.end());
  };
  if (has_labels_) {
    target_label_ = vector("target_variate_label");
    exogenous_label_ = vector("exogenous_variate_label");
    for (std::vector<T>* label : {&target_label_, &exogenous_label_}) {  // fusion.py: F.normalize
      const double norm = std::sqrt(plain::dot(label->data(), label->data(), config_.embed_dim));
      for (T& x : *label) x = static_cast<T>(x / std::max(norm, 1e-12));
    }
  }
  embed_ = read_linear(checkpoint, "patch_embed.projection");
  for (int i = 0; i < config_.num_layers; ++i) {
    const std::string name = fmt::format("transformer.layers.{}", i);
    layers_.push_back({.norm1 = vector(name + ".norm1.scale"),
                       .norm2 = vector(name + ".norm2.scale"),
                       .qkv = read_linear(checkpoint, name + ".attention.wQKV"),
                       .out = read_linear(checkpoint, name + ".attention.wO"),
                       .mlp_up = read_linear(checkpoint, name + ".mlp.0"),
                       .mlp_down = read_linear(checkpoint, name + ".mlp.2"),
                       .spacewise = config_.is_spacewise(i)});
  }
  unembed_ = read_linear(checkpoint, "unembed");
  for (const char* name : {"df", "loc_proj", "scale_proj", "mixture_weights"}) {
    if (static_cast<int>(heads_.size()) == config_.params_per_component()) break;
    heads_.push_back(read_linear(checkpoint, fmt::format("output_distribution.{}", name)));
  }
}

// `check` runs every plain::kRowsBetweenChecks rows.
template <typename T>
std::vector<T> Toto1Reference<T>::apply(const Linear& linear, const std::vector<T>& rows,
                                        ThreadPool& pool,
                                        const std::function<void()>& check) const {
  const int num_rows = static_cast<int>(rows.size() / linear.in);
  std::vector<T> result(std::size_t(num_rows) * linear.out);
  for (int first = 0; first < num_rows; first += plain::kRowsBetweenChecks) {
    if (check) check();
    const int last = std::min(num_rows, first + plain::kRowsBetweenChecks);
    pool.run(linear.out, [&](int n, int) {
      const T* weight = linear.weight.data() + std::size_t(n) * linear.in;
      for (int r = first; r < last; ++r) {
        const double sum = plain::dot(rows.data() + std::size_t(r) * linear.in, weight, linear.in);
        result[std::size_t(r) * linear.out + n] = static_cast<T>(sum + linear.bias[n]);
      }
    });
  }
  return result;
}

template <typename T>  // util.py: RMSNorm.forward
std::vector<T> Toto1Reference<T>::normalise(const std::vector<T>& rows,
                                            const std::vector<T>& scale) const {
  const int e = config_.embed_dim;
  std::vector<T> result(rows.size());
  for (std::size_t first = 0; first < rows.size(); first += e) {
    const double root = std::sqrt(plain::dot(&rows[first], &rows[first], e) / e + 1e-8);
    for (int i = 0; i < e; ++i)
      result[first + i] = static_cast<T>(rows[first + i] / root * scale[i]);
  }
  return result;
}

// attention.py: BaseMultiheadAttention.get_qkv lays a row out as (qkv, head_dim, head).
template <typename T>
std::vector<T> Toto1Reference<T>::time_attention(int index, const std::vector<T>& qkv,
                                                 int num_variates, int length,
                                                 Toto1ReferenceCache<T>* cache, ThreadPool& pool,
                                                 const std::function<void()>& check) const {
  const int e = config_.embed_dim, heads = config_.num_heads, hd = config_.head_dim();
  const PlainRotary rotary(hd);
  const int offset = cache != nullptr ? cache->length : 0;
  const int total = offset + length;
  const double centre = std::floor((total - 1) / 2.0);  // rope.py: get_scale, over this call only

  // Old positions from the cache, then the new ones, as [variate][position][head][head_dim].
  const std::size_t per_variate = std::size_t(total) * e;
  std::vector<T> keys(num_variates * per_variate), values(num_variates * per_variate);
  std::vector<T> queries(std::size_t(num_variates) * length * e);
  for (int v = 0; v < num_variates; ++v) {
    if (offset > 0) {
      const std::size_t old = std::size_t(offset) * e;
      std::copy_n(cache->keys[index].begin() + v * old, old, keys.begin() + v * per_variate);
      std::copy_n(cache->values[index].begin() + v * old, old, values.begin() + v * per_variate);
    }
    for (int i = 0; i < length; ++i) {
      const T* row = &qkv[(std::size_t(v) * length + i) * 3 * e];
      T* query = &queries[(std::size_t(v) * length + i) * e];
      T* key = &keys[v * per_variate + std::size_t(offset + i) * e];
      T* value = &values[v * per_variate + std::size_t(offset + i) * e];
      for (int h = 0; h < heads; ++h) {
        for (int d = 0; d < hd; ++d) {
          query[h * hd + d] = row[d * heads + h];
          key[h * hd + d] = row[e + d * heads + h];
          value[h * hd + d] = row[2 * e + d * heads + h];
        }
        rotary.apply(query + h * hd, offset + i, centre, false);
        rotary.apply(key + h * hd, offset + i, centre, true);
      }
    }
  }

  std::vector<T> result(queries.size());
  std::vector<double> all_scores(std::size_t(pool.num_threads()) * total);  // a task must not throw
  for (int v = 0; v < num_variates; ++v) {
    if (check) check();
    pool.run(heads, [&](int h, int worker) {
      for (int i = 0; i < length; ++i) {
        const std::size_t at = (std::size_t(v) * length + i) * e + h * hd;
        const std::span<double> scores(all_scores.data() + std::size_t(worker) * total,
                                       offset + i + 1);  // causal: itself and everything before
        const auto vector_of = [&](const std::vector<T>& all, int position) {
          return &all[v * per_variate + std::size_t(position) * e + h * hd];
        };
        for (int j = 0; j <= offset + i; ++j) {
          scores[j] = plain::dot(&queries[at], vector_of(keys, j), hd) / std::sqrt(double(hd));
        }
        plain::weighted_mean(scores, hd, &result[at], [&](int j) { return vector_of(values, j); });
      }
    });
  }
  if (cache != nullptr) {
    cache->keys[index] = std::move(keys);
    cache->values[index] = std::move(values);
  }
  return result;
}

// Across the variates of one patch that share an id; no rotary, no causality.
template <typename T>
std::vector<T> Toto1Reference<T>::space_attention(const std::vector<T>& qkv, int num_variates,
                                                  int length, std::span<const std::int64_t> ids,
                                                  const std::function<void()>& check) const {
  const int e = config_.embed_dim, heads = config_.num_heads, hd = config_.head_dim();
  std::vector<T> result(std::size_t(num_variates) * length * e);
  std::vector<T> query(hd), keys(std::size_t(num_variates) * hd), values(keys.size());
  for (int i = 0; i < length; ++i) {
    if (check) check();
    for (int h = 0; h < heads; ++h) {
      for (int v = 0; v < num_variates; ++v) {
        const std::size_t row = std::size_t(v) * length + i;
        std::vector<double> scores;
        std::vector<int> others;
        for (int d = 0; d < hd; ++d) query[d] = qkv[row * 3 * e + d * heads + h];
        for (int u = 0; u < num_variates; ++u) {
          if (ids[std::size_t(u) * length + i] != ids[row]) continue;
          const T* other = &qkv[(std::size_t(u) * length + i) * 3 * e];
          for (int d = 0; d < hd; ++d) {
            keys[u * hd + d] = other[e + d * heads + h];
            values[u * hd + d] = other[2 * e + d * heads + h];
          }
          scores.push_back(plain::dot(query.data(), &keys[u * hd], hd) / std::sqrt(double(hd)));
          others.push_back(u);
        }
        plain::weighted_mean(scores, hd, &result[row * e + h * hd],
                             [&](int j) { return &values[others[j] * hd]; });
      }
    }
  }
  return result;
}

template <typename T>
std::vector<T> Toto1Reference<T>::forward(const Toto1ReferenceInput<T>& input,
                                          Toto1ReferenceCache<T>* cache, ThreadPool& pool) const {
  const int e = config_.embed_dim, num_variates = input.num_variates;
  if (cache != nullptr && cache->keys.empty()) {
    cache->keys.resize(layers_.size());
    cache->values.resize(layers_.size());
  }
  const std::vector<T> embedded =
      apply(embed_, std::vector<T>(input.scaled.begin(), input.scaled.end()), pool, input.check);

  // fusion.py: the variate label comes before the first patch, with the first patch's id.
  const int added = has_labels_ && (cache == nullptr || cache->length == 0) ? 1 : 0;
  const int length = input.num_patches + added;
  std::vector<T> hidden;
  std::vector<std::int64_t> ids;
  for (int v = 0; v < num_variates; ++v) {
    const auto first_id = input.ids.begin() + std::ptrdiff_t(v) * input.num_patches;
    if (added == 1) {
      const bool exogenous = v >= num_variates - input.num_exogenous;
      const std::vector<T>& label = exogenous ? exogenous_label_ : target_label_;
      hidden.insert(hidden.end(), label.begin(), label.end());
      ids.push_back(*first_id);
    }
    const auto first = embedded.begin() + std::ptrdiff_t(v) * input.num_patches * e;
    hidden.insert(hidden.end(), first, first + std::ptrdiff_t(input.num_patches) * e);
    ids.insert(ids.end(), first_id, first_id + input.num_patches);
  }

  const auto add = [&hidden](const std::vector<T>& more) {
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] += more[i];
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {  // transformer.py: TransformerLayer.forward
    const PlainLayer& layer = layers_[i];
    const std::vector<T> qkv = apply(layer.qkv, normalise(hidden, layer.norm1), pool, input.check);
    const std::vector<T> mixed = layer.spacewise
                                     ? space_attention(qkv, num_variates, length, ids, input.check)
                                     : time_attention(static_cast<int>(i), qkv, num_variates,
                                                      length, cache, pool, input.check);
    add(apply(layer.out, mixed, pool, input.check));

    const int h = config_.mlp_hidden_dim;
    const std::vector<T> up =
        apply(layer.mlp_up, normalise(hidden, layer.norm2), pool, input.check);
    std::vector<T> gated(up.size() / 2);
    for (std::size_t r = 0; r < up.size() / (2 * h); ++r) {  // feed_forward.py: SwiGLU
      for (int j = 0; j < h; ++j) {
        const double gate = up[r * 2 * h + j];
        gated[r * h + j] = static_cast<T>(gate / (1 + std::exp(-gate)) * up[r * 2 * h + h + j]);
      }
    }
    add(apply(layer.mlp_down, gated, pool, input.check));
  }
  if (cache != nullptr) cache->length += length;

  // backbone.py: unembed, then the head on every step of the patch. Only the last patch is used.
  std::vector<T> last;
  for (int v = 0; v < num_variates; ++v) {
    const auto end = hidden.begin() + std::ptrdiff_t(v + 1) * length * e;
    last.insert(last.end(), end - e, end);
  }
  const std::vector<T> steps =
      apply(unembed_, last, pool, input.check);  // [variate][step][embed_dim]
  const int k = config_.num_components, params = config_.params_per_component();
  std::vector<T> result(steps.size() / e * params * k);
  for (int p = 0; p < params; ++p) {
    const std::vector<T> one = apply(heads_[p], steps, pool, input.check);
    for (std::size_t s = 0; s < one.size() / k; ++s) {
      std::copy_n(one.begin() + s * k, k, result.begin() + (s * params + p) * k);
    }
  }
  return result;
}

template class Toto1Reference<float>;
template class Toto1Reference<double>;

}  // namespace toto
