// The optimised network's weights: mapped ready-made from the cache folder, or packed from the
// checkpoint and kept there for the next start.
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
  std::optional<cache::MappedWeights> mapped;  // outlives `weights`, which point into it
  std::unique_ptr<PackedWeights> weights;
  std::string sha256;  // of the checkpoint's files
  std::vector<std::string> warnings;
};
LoadedWeights load_weights(const Checkpoint& checkpoint, const EngineOptions& options,
                           ThreadPool& pool);

// Hashing reads the files once more; while weights are packed it costs no time. Where no thread is
// available it is done when asked for. The checkpoint must outlive the answer.
std::future<std::string> start_hashing(const Checkpoint& checkpoint);

}  // namespace toto
