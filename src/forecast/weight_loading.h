// Loads the weights of an optimised network: reads packed weights from the cache folder, or packs
// the checkpoint and keeps the result there for the next start.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/threads.h"
#include "cache/weight_cache.h"
#include "model/architecture.h"
#include "model/checkpoint.h"

namespace toto {

struct LoadedWeights {
  std::optional<cache::KeptWeights> kept;  // outlives `weights`, which point into it
  std::unique_ptr<PackedWeights> weights;
  std::string sha256;  // of the checkpoint's files
  std::vector<std::string> warnings;
};
LoadedWeights load_weights(const Checkpoint& checkpoint, const EngineOptions& options,
                           ThreadPool& pool);

// Starts hashing the weight files on another thread, in parallel with packing. If no thread is
// available, get() computes the hash. The checkpoint must outlive the result.
std::future<std::string> start_hashing(const Checkpoint& checkpoint);

}  // namespace toto
