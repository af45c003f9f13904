// What a stress run asks of every engine.
#pragma once

#include <string>
#include <vector>

#include "validate/stress_runs.h"

namespace toto::validate {

struct Request {
  std::string what;  // in words, for a sentence
  std::vector<Series> batch;
  ForecastOptions options;
  bool heavy = false;  // takes seconds in `reference` mode
};

// From one point to `max_context`, from one variate to `max_variates`, alone and in batches of
// unequal lengths, exact and sampled. The first is light; all are seeded.
std::vector<Request> mixed_requests(const StressOptions& options, const ModelInfo& model);

// Several patches of sampled paths, so that there are steps to be cancelled between.
Request long_request(const StressOptions& options, const ModelInfo& model);

}  // namespace toto::validate
