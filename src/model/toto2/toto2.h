// Toto 2.0: declarations for the table of architectures.
#pragma once

#include "model/architecture.h"

namespace toto {

std::unique_ptr<Architecture> parse_toto2(const io::Json& config, std::string_view what,
                                          std::vector<std::string>& warnings);
extern const std::span<const std::string_view> kToto2Keys;
extern const std::span<const ModelPreset> kToto2Presets;

}  // namespace toto
