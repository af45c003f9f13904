#include "model/toto2/toto2_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "model/config_reader.h"

namespace toto {
namespace {

using io::Json;

// The reference's configuration.py: __post_init__ fills what is absent or null.
bool is_given(const Json& root, const char* key) {
  const Json* value = root.find(key);
  return value != nullptr && value->kind != Json::Kind::null;
}

int integer_or(const ConfigReader& reader, const Json& root, const char* key, int otherwise,
               int high) {
  return is_given(root, key) ? reader.integer(key, 1, high) : otherwise;
}

bool boolean_or(const ConfigReader& reader, const Json& root, const char* key, bool otherwise) {
  return is_given(root, key) ? reader.boolean(key, otherwise) : otherwise;
}

// Both parts of the tau rule: what a branch adds relative to the embedding.
struct BranchShares {
  explicit BranchShares(const Toto2Config& config)
      : mlp(config.residual_mult *
            std::sqrt(2 / (1 + config.residual_attn_ratio * config.residual_attn_ratio))),
        attn(config.residual_attn_ratio * mlp) {}
  double mlp, attn;
};

void check_heads(const Toto2Config& config, std::string_view what) {
  if (config.d_model % config.num_heads != 0) {
    fail(ErrorCode::corrupt_file, "{}: d_model {} is not divisible by num_heads {}", what,
         config.d_model, config.num_heads);
  }
  if (config.num_heads % config.num_groups != 0) {
    fail(ErrorCode::corrupt_file, "{}: num_heads {} is not divisible by num_groups {}", what,
         config.num_heads, config.num_groups);
  }
  if (config.qk_dim % 4 != 0) {
    fail(ErrorCode::corrupt_file,
         "{}: qk_dim is {}, expected a multiple of 4: pairs in the first half of a head are "
         "rotated",
         what, config.qk_dim);
  }
}

void check_layers(const Toto2Config& config, std::string_view what) {
  if (config.num_layers % config.layer_group_size != 0) {
    fail(ErrorCode::corrupt_file, "{}: num_layers {} is not divisible by layer_group_size {}", what,
         config.num_layers, config.layer_group_size);
  }
  if (config.num_variate_layers_per_group > config.layer_group_size) {
    fail(ErrorCode::corrupt_file,
         "{}: num_variate_layers_per_group is {}, expected at most layer_group_size ({})", what,
         config.num_variate_layers_per_group, config.layer_group_size);
  }
}

}  // namespace

bool Toto2Config::is_variate_layer(int layer) const {
  const int place = layer % layer_group_size;
  return variate_layer_first ? place < num_variate_layers_per_group
                             : place >= layer_group_size - num_variate_layers_per_group;
}

// Computed before anything is allocated, to refuse absurd configs.
std::int64_t Toto2Config::num_parameters() const {
  const std::int64_t d = d_model, f = d_ff, w = mlp_width(), in = input_width(), out = outputs();
  const std::int64_t values = std::int64_t{v_dim} * num_heads, rows = qkv_rows();
  const auto mlp = [w](std::int64_t from, std::int64_t to) {
    return (from * w + w) + (w * to + to) + (from * to + to);
  };
  std::int64_t layer = rows * d + d * values + 3 * f * d + 2;  // two taus
  if (attn_bias) layer += rows + d;
  if (mlp_bias) layer += 2 * f + d;
  if (per_dim_scale) layer += qk_dim;
  if (qk_norm && qk_norm_include_weight) layer += 2 * qk_dim;
  if (norm_include_weight) layer += 2 * d;
  return mlp(in, d) + num_layers * layer + (norm_include_weight ? d : 0) + mlp(d, out);
}

float Toto2Config::attn_tau(int layer) const {
  const BranchShares share(*this);
  const double before = layer * (share.attn * share.attn + share.mlp * share.mlp);
  return static_cast<float>(share.attn / std::sqrt(num_layers + before));
}

float Toto2Config::mlp_tau(int layer) const {
  const BranchShares share(*this);
  const double before = (layer + 1) * share.attn * share.attn + layer * share.mlp * share.mlp;
  return static_cast<float>(share.mlp / std::sqrt(num_layers + before));
}

Toto2Config parse_toto2_config(const Json& root, std::string_view what,
                               std::vector<std::string>& warnings) {
  const ConfigReader reader(root, what);
  Toto2Config config;
  config.patch_size = reader.integer("patch_size", 1, kMaxDim / kToto2NumLevels);
  config.d_model = reader.integer("d_model", 1, kMaxDim);
  config.num_heads = reader.integer("num_heads", 1, kMaxDim);
  config.num_layers = reader.integer("num_layers", 1, kMaxLayers);
  config.layer_group_size = reader.integer("layer_group_size", 1, kMaxLayers);
  config.num_variate_layers_per_group =
      reader.integer("num_variate_layers_per_group", 0, kMaxLayers);
  reader.required("variate_layer_first");
  config.variate_layer_first = reader.boolean("variate_layer_first", false);
  if (reader.real("dropout_p", 0, 0, 1) != 0) {
    fail(ErrorCode::unsupported, "{}: dropout_p is not 0, which the reference refuses too", what);
  }
  if (const int patches = integer_or(reader, root, "num_output_patches", 1, kMaxDim);
      patches != 1) {
    fail(ErrorCode::unsupported,
         "{}: num_output_patches is {}, expected 1: the reference reads only one of them", what,
         patches);
  }
  config.norm_eps = reader.real("norm_eps", 5e-5, 1e-30, 1);
  config.attn_bias = reader.boolean("attn_bias", false);
  config.mlp_bias = reader.boolean("mlp_bias", false);
  reader.boolean("pre_norm", true);  // the reference does not read it
  // Two thirds of four times the width, rounded up to a multiple of 8.
  const int usual_ff = (8 * config.d_model / 3 + 7) / 8 * 8;
  config.d_ff = integer_or(reader, root, "d_ff", usual_ff, 4 * kMaxDim);
  config.num_groups = integer_or(reader, root, "num_groups", config.num_heads, kMaxDim);
  config.qk_dim = integer_or(reader, root, "qk_dim", config.d_model / config.num_heads, kMaxDim);
  config.v_dim = integer_or(reader, root, "v_dim", config.qk_dim, kMaxDim);
  integer_or(reader, root, "heads_per_group", 1, kMaxDim);  // follows from the two above
  config.residual_mult = reader.real("residual_mult", 1, 0, 1e6);
  reader.required("residual_attn_ratio");
  config.residual_attn_ratio = reader.real("residual_attn_ratio", 1, 0, 1e6);
  config.qk_norm = reader.boolean("qk_norm", true);
  config.norm_include_weight = reader.boolean("norm_include_weight", false);
  config.qk_norm_include_weight =
      boolean_or(reader, root, "qk_norm_include_weight", config.norm_include_weight);
  config.per_dim_scale = reader.boolean("per_dim_scale", false);
  config.use_xpos = reader.boolean("use_xpos", false);
  check_layers(config, what);
  check_heads(config, what);
  // Bounds products of sizes, so that the number of parameters fits into 64 bits.
  const std::int64_t widest =
      std::int64_t{config.num_heads} * std::max(config.qk_dim, config.v_dim);
  if (widest > 4 * kMaxDim) {
    fail(ErrorCode::unsupported, "{}: {} heads of {} are {} wide; at most {} are supported", what,
         config.num_heads, std::max(config.qk_dim, config.v_dim), widest, 4 * kMaxDim);
  }
  if (config.num_parameters() > kMaxParameters) {
    fail(ErrorCode::unsupported, "{}: the model would have {} parameters; at most {} are supported",
         what, config.num_parameters(), kMaxParameters);
  }
  constexpr std::array<std::string_view, 25> kKnown = {"patch_size",
                                                       "d_model",
                                                       "num_heads",
                                                       "num_layers",
                                                       "layer_group_size",
                                                       "num_variate_layers_per_group",
                                                       "variate_layer_first",
                                                       "dropout_p",
                                                       "norm_eps",
                                                       "attn_bias",
                                                       "mlp_bias",
                                                       "num_output_patches",
                                                       "pre_norm",
                                                       "d_ff",
                                                       "qk_dim",
                                                       "v_dim",
                                                       "num_groups",
                                                       "heads_per_group",
                                                       "residual_mult",
                                                       "residual_attn_ratio",
                                                       "qk_norm",
                                                       "norm_include_weight",
                                                       "qk_norm_include_weight",
                                                       "per_dim_scale",
                                                       "use_xpos"};
  reader.warn_of_unknown(kKnown, warnings);
  return config;
}

std::string toto2_config_json(const Toto2Config& config) {
  io::JsonWriter writer;
  writer.begin_object()
      .field("patch_size", config.patch_size)
      .field("d_model", config.d_model)
      .field("num_heads", config.num_heads)
      .field("num_layers", config.num_layers)
      .field("layer_group_size", config.layer_group_size)
      .field("num_variate_layers_per_group", config.num_variate_layers_per_group)
      .field("variate_layer_first", config.variate_layer_first)
      .field("dropout_p", 0.0)
      .field("norm_eps", config.norm_eps)
      .field("attn_bias", config.attn_bias)
      .field("mlp_bias", config.mlp_bias)
      .field("num_output_patches", 1)
      .field("pre_norm", true)
      .field("d_ff", config.d_ff)
      .field("qk_dim", config.qk_dim)
      .field("v_dim", config.v_dim)
      .field("num_groups", config.num_groups)
      .field("heads_per_group", config.num_heads / config.num_groups)
      .field("residual_mult", config.residual_mult)
      .field("residual_attn_ratio", config.residual_attn_ratio)
      .field("qk_norm", config.qk_norm)
      .field("norm_include_weight", config.norm_include_weight)
      .field("qk_norm_include_weight", config.qk_norm_include_weight)
      .field("per_dim_scale", config.per_dim_scale)
      .field("use_xpos", config.use_xpos)
      .end_object();
  return writer.take();
}

}  // namespace toto
