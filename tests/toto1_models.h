// Configs of Toto 1.0 for tests to change, and random models of them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/random_model.h"
#include "model/toto1/toto1.h"
#include "model/toto1/toto1_config.h"

namespace toto {

// Random models of a Toto 1.0 shape.
inline void make_model(const Toto1Config& config, std::uint64_t seed, io::TensorType type,
                       const std::string& folder, const MakeModelHooks& hooks = {}) {
  std::vector<std::string> warnings;
  const auto architecture = parse_architecture(toto1_config_json(config), "config", warnings);
  make_model(*architecture, seed, type, folder, hooks);
}

inline Toto1Config parse_config(std::string_view text, std::string_view what,
                                std::vector<std::string>& warnings) {
  parse_architecture(text, what, warnings);  // refuses what is not an object at all
  std::vector<std::string> same;
  return parse_toto1_config(io::parse_json(text, what), what, same);
}

inline Toto1Config preset_config(std::string_view name) {
  for (const ModelPreset& preset : kToto1Presets) {
    std::vector<std::string> warnings;
    if (preset.name == name) return parse_config(preset.config_json, name, warnings);
  }
  throw std::runtime_error("no such preset");
}
inline Toto1Config base_config() { return preset_config("base"); }
inline Toto1Config mini_config() { return preset_config("mini"); }

}  // namespace toto
