// The checked config.json of a Toto 2.0 checkpoint.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace toto {

// The quantiles that the head predicts.
inline constexpr std::array kToto2Levels = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
inline constexpr int kToto2NumLevels = kToto2Levels.size();

struct Toto2Config {
  int patch_size = 0;
  int d_model = 0;
  int d_ff = 0;  // width of the feed-forward network
  int num_layers = 0;
  int layer_group_size = 0;
  int num_variate_layers_per_group = 0;
  bool variate_layer_first = false;
  int num_heads = 0;
  int num_groups = 0;  // heads of keys and values
  int qk_dim = 0;      // of one head's query and key
  int v_dim = 0;       // of one head's value
  double norm_eps = 0;
  double residual_mult = 1;
  double residual_attn_ratio = 1;
  bool attn_bias = false;
  bool mlp_bias = false;
  bool qk_norm = true;
  bool norm_include_weight = false;
  bool qk_norm_include_weight = false;
  bool per_dim_scale = false;
  bool use_xpos = false;

  int input_width() const { return 2 * patch_size; }  // values, then flags
  int mlp_width() const { return 4 * d_model; }       // of the residual MLPs around the layers
  int outputs() const { return patch_size * kToto2NumLevels; }  // of the head: [step][level]
  int qkv_rows() const { return qk_dim * num_heads + (qk_dim + v_dim) * num_groups; }
  int rotary_dims() const { return qk_dim / 2; }  // only the first half of a head is rotated
  // Attention across variates instead of along time.
  bool is_variate_layer(int layer) const;
  std::int64_t num_parameters() const;
  // The weight of a residual branch, used if the checkpoint has no taus: float32 buffers.
  float attn_tau(int layer) const;
  float mlp_tau(int layer) const;
};

// Errors as for parse_architecture().
Toto2Config parse_toto2_config(const io::Json& root, std::string_view what,
                               std::vector<std::string>& warnings);

// The config as a config.json that the reference implementation loads.
std::string toto2_config_json(const Toto2Config& config);

}  // namespace toto
