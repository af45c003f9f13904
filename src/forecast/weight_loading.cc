#include "forecast/weight_loading.h"

#include <utility>

#include "base/error.h"
#include "cache/cache_folder.h"
#include "cache/model_identity.h"
#include "io/sha256.h"
#include "kernels/kernels.h"

namespace toto {
namespace {

// The cache key: everything the packed bytes depend on. Not the instruction set: all pack the same
// bits.
std::string digest_of(const Checkpoint& checkpoint, DType dtype, const std::string& identity) {
  const std::string text =
      fmt::format("toto {}\npacking {} panel {} group {}\ndtype {}\nconfig {}\n{}", version(),
                  checkpoint.architecture().packing_version(), kPanel, kScaleGroup, name_of(dtype),
                  checkpoint.architecture().config_json(), identity);
  io::Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex_digest();
}

// Packs from the checkpoint while another thread hashes its files.
LoadedWeights pack_weights(const Checkpoint& checkpoint, const EngineOptions& options,
                           ThreadPool& pool) {
  LoadedWeights loaded;
  std::future<std::string> hash = start_hashing(checkpoint);
  loaded.weights =
      checkpoint.architecture().pack(checkpoint, options.dtype, kernels_for(options.isa), pool);
  loaded.sha256 = hash.get();
  return loaded;
}

}  // namespace

std::future<std::string> start_hashing(const Checkpoint& checkpoint) {
  return std::async(std::launch::async | std::launch::deferred,
                    [&checkpoint] { return checkpoint.files().sha256(); });
}

LoadedWeights load_weights(const Checkpoint& checkpoint, const EngineOptions& options,
                           ThreadPool& pool) {
  const CacheOptions& wanted = options.cache;
  if (wanted.folder.empty() || checkpoint.files().total_bytes() < wanted.min_model_bytes) {
    return pack_weights(checkpoint, options, pool);
  }
  const cache::ModelIdentity identity = cache::identify(checkpoint.files());
  std::unique_ptr<PackedWeights> declared =
      checkpoint.architecture().declare(checkpoint, options.dtype);
  cache::WeightCache cache(
      wanted.folder, wanted.max_bytes,
      cache::entry_file(wanted.folder, checkpoint.folder(), name_of(options.dtype)),
      {.digest = digest_of(checkpoint, options.dtype, identity.text),
       .sizes = declared->array_sizes()},
      options.on_plan);

  LoadedWeights loaded;
  loaded.kept = cache.find(pool);
  if (loaded.kept) {
    declared->map(loaded.kept->sections);
    loaded.weights = std::move(declared);
    loaded.sha256 = loaded.kept->weights_sha256;
    return loaded;
  }
  loaded = pack_weights(checkpoint, options, pool);
  if (!identity.settled) {
    cache.skip("the model's files changed too recently for their times to show another change");
  } else if (cache::identify(checkpoint.files()).text != identity.text) {
    cache.skip("the model's files changed while they were read");
  } else {
    cache.keep(loaded.sha256, loaded.weights->arrays());
  }
  loaded.warnings = cache.warnings();
  return loaded;
}

}  // namespace toto
