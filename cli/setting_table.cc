#include "setting_table.h"

#include <algorithm>

namespace toto::cli {
namespace {

constexpr SettingSpec kSettings[] = {
    {"model", "--model", {"TOTO_MODEL_ID"}, "folder, bundled model or owner/name"},
    {"mode", "--mode", {"TOTO_COMPILE_MODE", "TORCH_COMPILE_MODE"}, "how forecasts are computed"},
    {"disable-compile", "", {"TOTO_DISABLE_COMPILE"}, "the rollback to reference mode"},
    {"compile", "", {"TOTO_COMPILE"}, "0: optimised modes off"},
    {"backend", "", {"TOTO_COMPILE_BACKEND"}, "accepted: the kernels are always our own"},
    {"dtype", "--dtype", {"TOTO_DTYPE"}, "what weights are stored as"},
    {"threads", "--threads", {"TOTO_THREADS"}, ""},
    {"isa", "--isa", {"TOTO_ISA"}, "instruction set"},
    {"seed", "--seed", {"TOTO_SEED"}, "of the random numbers"},
    {"plan-cache-size",
     "--plan-cache-size",
     {"TORCHDYNAMO_CACHE_SIZE_LIMIT", "TORCHDYNAMO_RECOMPILE_LIMIT"},
     "plans kept in reduce-overhead and max-autotune"},
    {"capture-scalar-outputs",
     "",
     {"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS"},
     "accepted, no effect: no scalar is read back here"},
    {"samples", "--samples", {"TOTO_NUM_SAMPLES"}, "paths drawn"},
    {"point", "--point", {"TOTO_AGGREGATION_SPEC"}, "the point forecast"},
    {"cache-dir", "--cache-dir", {"TOTO_CACHE_DIR"}, "packed weights, tuned schedules, forecasts"},
    {"no-cache", "--no-cache", {}, "leave the cache folder aside"},
    {"no-kv-cache", "--no-kv-cache", {}, "the reference's uncached path"},
    {"logs", "", {"TOTO_LOGS"}, "what is logged"},
};

}  // namespace

std::span<const SettingSpec> all_settings() { return kSettings; }

const SettingSpec* find_spec(std::string_view name) {
  const auto same_key = [&](std::string_view key) {
    return std::equal(key.begin(), key.end(), name.begin(), name.end(),
                      [](char a, char b) { return a == b || (a == '-' && b == '_'); });
  };
  for (const SettingSpec& spec : kSettings) {
    const auto& variables = spec.variables;
    if (name.empty()) break;
    if (same_key(spec.key) || name == spec.flag ||
        std::find(variables.begin(), variables.end(), name) != variables.end()) {
      return &spec;
    }
  }
  return nullptr;
}

}  // namespace toto::cli
