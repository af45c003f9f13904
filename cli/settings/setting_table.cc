#include "cli/settings/setting_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/nearest.h"
#include "base/text.h"

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
    // Of `toto serve` alone.
    {"serve-host", "--host", {"TOTO_SERVE_HOST"}, "address it listens on", "127.0.0.1"},
    {"serve-port", "--port", {"TOTO_SERVE_PORT"}, "0: any free one", "8080"},
    {"serve-api-key", "--api-key", {"TOTO_SERVE_API_KEY"}, "what clients must send", "none", true},
    {"serve-api-key-file",
     "--api-key-file",
     {"TOTO_SERVE_API_KEY_FILE"},
     "the same, from a file",
     "none"},
    {"serve-tls-cert", "--tls-cert", {"TOTO_SERVE_TLS_CERT"}, "certificate chain, PEM", "none"},
    {"serve-tls-key", "--tls-key", {"TOTO_SERVE_TLS_KEY"}, "its private key, PEM", "none"},
    {"serve-cors", "--cors", {"TOTO_SERVE_CORS"}, "origin whose pages may ask", "none"},
    {"serve-queue", "--queue", {"TOTO_SERVE_QUEUE"}, "requests that may wait", "256"},
    {"serve-deadline", "--deadline", {"TOTO_SERVE_DEADLINE"}, "seconds a request may take", "60"},
    {"serve-max-body",
     "--max-body",
     {"TOTO_SERVE_MAX_BODY"},
     "bytes of a request, also decompressed",
     "256M"},
    {"serve-max-series", "--max-series", {"TOTO_SERVE_MAX_SERIES"}, "of a request", "100000"},
    {"serve-max-horizon", "--max-horizon", {"TOTO_SERVE_MAX_HORIZON"}, "of a request", "100000"},
    {"serve-max-samples", "--max-samples", {"TOTO_SERVE_MAX_SAMPLES"}, "of a request", "1000000"},
    {"serve-max-memory",
     "--max-memory",
     {"TOTO_SERVE_MAX_MEMORY"},
     "bytes of series and paths of a request",
     "256M"},
    {"serve-max-connections",
     "--max-connections",
     {"TOTO_SERVE_MAX_CONNECTIONS"},
     "at a time",
     "1024"},
    {"serve-max-sessions",
     "--max-sessions",
     {"TOTO_SERVE_MAX_SESSIONS"},
     "streaming sessions kept",
     "64"},
    {"serve-shadow-rate",
     "--shadow-rate",
     {"TOTO_SERVE_SHADOW_RATE"},
     "share of forecasts compared with reference mode",
     "0.01"},
    {"serve-shadow-bound",
     "--shadow-bound",
     {"TOTO_SERVE_SHADOW_BOUND"},
     "relative deviation that raises the alarm",
     "1e-5"},
    {"serve-auto-rollback",
     "--auto-rollback",
     {"TOTO_SERVE_AUTO_ROLLBACK"},
     "then also switch to reference mode",
     "0"},
    {"serve-log", "--log", {"TOTO_SERVE_LOG"}, "JSON line for each request", "none"},
    {"serve-trust-proxy",
     "--trust-proxy",
     {"TOTO_SERVE_TRUST_PROXY"},
     "log the last address of X-Forwarded-For",
     "0"},
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

std::vector<std::string_view> all_variables() {
  std::vector<std::string_view> names;
  for (const SettingSpec& spec : kSettings) {
    for (const std::string_view variable : spec.variables) {
      if (!variable.empty()) names.push_back(variable);
    }
  }
  return names;
}

std::vector<std::string> remarks_on_variables() {
  const std::vector<std::string_view> known = all_variables();
  std::vector<std::string> remarks;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    // An empty variable is not set.
    if (equals == std::string_view::npos || equals + 1 == text.size()) continue;
    const std::string_view name = text.substr(0, equals);
    if (!name.starts_with("TOTO_")) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    remarks.push_back(fmt::format("the variable {} is set, but no setting has this name{}",
                                  quoted(name), did_you_mean(name, known)));
  }
  std::sort(remarks.begin(), remarks.end());
  return remarks;
}

}  // namespace toto::cli
