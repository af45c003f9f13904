// Checks which combinations of mode, dtype and cache are supported, and fills in defaults.
#include "base/error.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "toto/toto.h"

namespace toto {

EngineOptions resolve_options(EngineOptions options) {
  if (options.plan_cache_size < 1) {
    fail(ErrorCode::invalid_argument, "the plan cache size is {}, expected at least 1",
         options.plan_cache_size);
  }
  if (options.mode != Mode::reference) {
    if (options.dtype == DType::f64) {
      fail(ErrorCode::invalid_argument,
           "dtype f64 is not available in mode {}; float64 runs in --mode reference only",
           name_of(options.mode));
    }
    if (!options.use_kv_cache) {
      fail(ErrorCode::invalid_argument,
           "running without the KV cache reproduces the reference's uncached path; it needs --mode "
           "reference");
    }
  } else if (options.dtype != DType::f32 && options.dtype != DType::f64) {
    fail(ErrorCode::invalid_argument, "mode reference takes dtype f32 or f64, not {}",
         name_of(options.dtype));
  }
  options.isa = kernels_for(options.isa).isa;
  const int cores = usable_cores();
  if (options.threads == 0) options.threads = cores;
  if (options.threads < 0 || options.threads > 4 * cores) {
    fail(ErrorCode::invalid_argument,
         "threads is {}, expected 1 to {} (four times the {} usable cores)", options.threads,
         4 * cores, cores);
  }
  return options;
}

}  // namespace toto
