// The requests that a stress run sends to every engine.
#pragma once

#include <string>
#include <vector>

#include "validate/stress_runs.h"

namespace toto::validate {

struct StressRequest {
  std::string what;  // description for messages
  std::vector<Series> batch;
  ForecastOptions options;
  bool heavy = false;  // takes seconds in `reference` mode
};

// From one point to `max_context`, from one variate to `max_variates`, single series and batches of
// different lengths, exact and sampled. The first request is not heavy; all are seeded.
std::vector<StressRequest> mixed_requests(const StressOptions& options, const ModelInfo& model);

// Several patches of sampled paths: it has steps at which it can be cancelled.
StressRequest long_request(const StressOptions& options, const ModelInfo& model);

}  // namespace toto::validate
