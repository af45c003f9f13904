// Seeded random checkpoints: real shapes for benches and tests where real weights are not at hand.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/safetensors.h"
#include "model/architecture.h"

namespace toto {

// Asked and told while the weights are written, about once a megabyte.
struct MakeModelHooks {
  std::function<bool()> cancelled = {};  // true ends the call with Error(cancelled)
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};  // parameters
};

// Writes config.json and model.safetensors into `folder` (created if need be), marked as untrained.
// The same seed gives the same bytes.
// A model that is there already stays as it is until the new one is complete.
void make_model(const Architecture& architecture, std::uint64_t seed, io::TensorType type,
                const std::string& folder, const MakeModelHooks& hooks = {});

}  // namespace toto
