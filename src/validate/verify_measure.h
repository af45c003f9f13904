// Runs an engine over the production workload and records the results for verify_production.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "validate/verify_parts.h"

namespace toto::validate {

enum class ProductionSubject {
  forward_pass,
  autoregressive,
  context_16,
  context_32,
  context_48,
  context_64,
  shapes,
};

// One series whose trace is compared.
struct ProductionCase {
  ProductionSubject subject;
  std::string what;  // description for messages
  Series series;
  int horizon = 0;
};

inline constexpr int kAutoregressiveSteps = 8;  // patches decoded after the first
inline constexpr int kDeterminismRuns = 20;

std::vector<ProductionCase> production_cases(const ModelInfo& model, std::uint64_t seed);

struct TracedCase {
  Trace trace;
  std::string complaint;  // why there is no trace
};

// The results of one engine.
struct ProductionRun {
  std::string complaint;                // error of the whole run; empty if it succeeded
  std::vector<TracedCase> answers;      // [case]
  std::vector<std::string> bad_shapes;  // sentences about failed or malformed forecasts
  int num_shapes = 0;
  double milliseconds = 0;  // of the fastest of 5 forecasts
  int differing_runs = 0;   // of kDeterminismRuns - 1, by their bits
  std::size_t compared_values = 0;
  std::optional<double> peak_megabytes;  // resident memory above the level before loading
  double weights_megabytes = 0;          // of the parameters in the engine's dtype
  std::string kv_cache_name;
  std::int64_t replans = 0;
};

enum class MeasureExtent { traces, everything };

struct MeasurePlan {
  const VerifyOptions* options;
  EngineOptions engine;
  std::shared_ptr<const std::vector<ProductionCase>> cases;
  MeasureExtent extent = MeasureExtent::everything;
  bool required = false;  // others are compared with it: a failure to load ends the run
};
// Adds the jobs that fill `measured`, errors of the engine included.
void add_measure_jobs(const MeasurePlan& plan, const std::shared_ptr<ProductionRun>& measured,
                      Jobs& jobs);

}  // namespace toto::validate
