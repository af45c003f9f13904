// Seeded random checkpoints with real shapes, for benchmarks and tests without real weights.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/safetensors.h"
#include "model/architecture.h"

namespace toto {

// Called while the weights are written, about once per megabyte.
struct MakeModelHooks {
  std::function<bool()> cancelled = {};  // true ends the call with Error(cancelled)
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};  // parameters
};

// Writes config.json and model.safetensors into `folder` (created if necessary), marked as
// untrained. The same seed gives the same bytes. An existing model is replaced only when the new
// one is complete.
void make_model(const Architecture& architecture, std::uint64_t seed, io::TensorType type,
                const std::string& folder, const MakeModelHooks& hooks = {});

}  // namespace toto
