// How every command computes: the settings that all of them share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "settings/setting.h"
#include "toto/toto.h"

namespace toto::settings {

inline constexpr std::string_view kBundledModel = "toto-mini";

// As they were given; the switches `disable_compile` and `compile` have not been applied to the
// mode. The defaults here and in EngineOptions are the only ones.
struct EngineSettings {
  std::string model{kBundledModel};
  EngineOptions engine = {};
  std::uint64_t seed = ForecastOptions().seed;
  std::string cache_dir = {};  // empty: chosen by the command
  bool no_cache = false;
  bool log_plans = false;
  bool disable_compile = false;
  bool compile = true;
  // Accepted without effect.
  std::string backend = "native";
  bool capture_scalar_outputs = false;
};

using EngineField = Field<EngineSettings>;
std::span<const EngineField> engine_fields();

// Error(invalid_argument) also for one that this CPU does not have.
Isa parse_available_isa(std::string_view name);

}  // namespace toto::settings
