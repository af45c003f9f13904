// The numbers of a Toto 1.0 checkpoint: config.json, checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace toto {

enum class ScalerKind { std_mean, causal_std_mean, causal_patch_std_mean };
enum class HeadKind { student_t, mixture_of_student_t };

struct Config {
  int patch_size = 0;
  int embed_dim = 0;
  int num_layers = 0;
  int num_heads = 0;
  int mlp_hidden_dim = 0;
  int spacewise_every_n_layers = -1;  // -1: none
  bool spacewise_first = true;
  ScalerKind scaler = ScalerKind::causal_patch_std_mean;
  HeadKind head = HeadKind::mixture_of_student_t;
  int num_components = 1;  // 1 for a single Student-T
  bool stabilize_with_global = true;
  double scale_factor_exponent = 10.0;

  int head_dim() const { return embed_dim / num_heads; }
  // df, loc, scale, and for a mixture also logits.
  int params_per_component() const { return head == HeadKind::mixture_of_student_t ? 4 : 3; }
  // What the head says about one step of the patch: [parameter][component].
  int params_per_step() const { return params_per_component() * num_components; }
  bool is_spacewise(int layer) const;  // transformer.py: Transformer._get_layer_types
  std::int64_t num_parameters(bool with_labels) const;
};

inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;  // of a config.json

// Refuses what is missing, of the wrong type or out of range: Error(corrupt_file), or
// Error(unsupported) for a well-formed config this engine cannot run. `what` names the file.
// Unknown keys are added to `warnings`.
Config parse_config(std::string_view text, std::string_view what,
                    std::vector<std::string>& warnings);

// The same numbers as a config.json the reference loads.
std::string config_json(const Config& config);

}  // namespace toto
