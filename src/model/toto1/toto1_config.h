// The checked config.json of a Toto 1.0 checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace toto {

enum class Toto1Scaler { std_mean, causal_std_mean, causal_patch_std_mean };
enum class Toto1Head { student_t, mixture_of_student_t };

struct Toto1Config {
  int patch_size = 0;
  int embed_dim = 0;
  int num_layers = 0;
  int num_heads = 0;
  int mlp_hidden_dim = 0;
  int spacewise_every_n_layers = -1;  // -1: none
  bool spacewise_first = true;
  Toto1Scaler scaler = Toto1Scaler::causal_patch_std_mean;
  Toto1Head head = Toto1Head::mixture_of_student_t;
  int num_components = 1;  // 1 for a single Student-T
  bool stabilize_with_global = true;
  double scale_factor_exponent = 10.0;

  int head_dim() const { return embed_dim / num_heads; }
  // df, loc, scale, and for a mixture also logits.
  int params_per_component() const { return head == Toto1Head::mixture_of_student_t ? 4 : 3; }
  // Outputs of the head per step of the patch: [parameter][component].
  int params_per_step() const { return params_per_component() * num_components; }
  bool is_spacewise(int layer) const;  // transformer.py: Transformer._get_layer_types
  std::int64_t num_parameters(bool with_labels) const;
};

// Errors as for parse_architecture().
Toto1Config parse_toto1_config(const io::Json& root, std::string_view what,
                               std::vector<std::string>& warnings);

// The config as a config.json that the reference implementation loads.
std::string toto1_config_json(const Toto1Config& config);

}  // namespace toto
