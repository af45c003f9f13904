// Runs an engine over the production workload and keeps what it did; verify_production.cc judges.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "validate/verify_parts.h"

namespace toto::validate {

enum class Subject {
  forward_pass,
  autoregressive,
  context_16,
  context_32,
  context_48,
  context_64,
  shapes,
};

// One series whose trace is compared.
struct Case {
  Subject subject;
  std::string what;  // in words, for a sentence
  Series series;
  int horizon = 0;
};

inline constexpr int kAutoregressiveSteps = 8;  // patches decoded after the first
inline constexpr int kDeterminismRuns = 20;

std::vector<Case> production_cases(const ModelInfo& model, std::uint64_t seed);

// What one engine did with the cases.
struct Measured {
  std::string complaint;  // why it could not be loaded or ran into an error beyond one case
  struct Answer {
    Trace trace;
    std::string complaint;  // why there is no trace
  };
  std::vector<Answer> answers;          // as the cases
  std::vector<std::string> bad_shapes;  // forecasts that failed or were malformed, in words
  int num_shapes = 0;
  double milliseconds = 0;  // the fastest of some forecasts
  int differing_runs = 0;   // of kDeterminismRuns - 1, by their bits
  std::size_t compared_values = 0;
  std::optional<double> peak_megabytes;  // resident memory above what there was before loading
  double weights_megabytes = 0;          // of the parameters in the engine's dtype
  std::string kv_cache_name;
  std::int64_t replans = 0;
};

enum class Extent { traces, everything };

// Adds the jobs that fill `measured`. What the engine fails at goes into it; with `required`, for
// the yardsticks, an engine that cannot be loaded ends the run.
struct MeasurePlan {
  const VerifyOptions* options;
  EngineOptions engine;
  std::shared_ptr<const std::vector<Case>> cases;
  Extent extent = Extent::everything;
  bool required = false;
};
void add_measure_jobs(const MeasurePlan& plan, const std::shared_ptr<Measured>& measured,
                      Jobs& jobs);

}  // namespace toto::validate
