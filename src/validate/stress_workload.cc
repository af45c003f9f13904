#include "validate/stress_workload.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "validate/mode_checks.h"

namespace toto::validate {
namespace {

constexpr int kMaxPoints = 1024;  // of all series together; a request with more is heavy

bool is_heavy(const StressRequest& request) {
  std::size_t points = 0;
  for (const Series& series : request.batch) points += series.values.size();
  return points > kMaxPoints;
}

}  // namespace

std::vector<StressRequest> mixed_requests(const StressOptions& options, const ModelInfo& model) {
  const int patch = model.facts.patch;
  std::vector<StressRequest> requests;
  const auto add = [&](std::string what, std::vector<Series> batch, ForecastOptions forecast) {
    forecast.max_context = options.max_context;
    forecast.seed = options.seed;
    forecast.cancelled = options.cancelled;
    StressRequest request{.what = std::move(what), .batch = std::move(batch), .options = forecast};
    request.heavy = is_heavy(request);
    requests.push_back(std::move(request));
  };
  const auto series = [&](int variates, int length) {
    return make_series(fmt::format("{} x {}", variates, length), variates, length, options.seed);
  };

  // A set: with short patches some of these are equal.
  std::set<int> contexts = {1, 2, patch - 1, patch, patch + 1, 100, 512, 1024, 4096, 8192};
  contexts.insert(options.max_context);
  std::erase_if(contexts, [&](int n) { return n < 1 || n > options.max_context; });
  for (const int context : contexts) {
    add(fmt::format("{} points", context), {series(1, context)}, {.horizon = patch});
  }
  const int width = std::min(256, options.max_context);
  for (const int variates : std::set<int>{2, 3, 8, options.max_variates}) {
    if (variates > options.max_variates) continue;
    add(fmt::format("{} variates", variates), {series(variates, width)}, {.horizon = patch});
  }
  constexpr int kBatch = 16;
  std::vector<Series> batch;
  batch.reserve(kBatch);
  for (int i = 0; i < kBatch; ++i) {
    batch.push_back(series(1 + i % 3, std::min(1 + 37 * i, options.max_context)));
  }
  add(fmt::format("a batch of {}", kBatch), batch, {.horizon = 1});
  batch.resize(3);
  add("a sampled batch of 3", std::move(batch),
      {.horizon = model.facts.first_block() + 2, .num_samples = 8, .keep_samples = true});
  return requests;
}

StressRequest long_request(const StressOptions& options, const ModelInfo& model) {
  return {.what = "three sampled patches",
          .batch = {make_series("long", 1, 2 * model.facts.patch, options.seed)},
          .options = {.horizon = 3 * model.facts.patch,
                      .num_samples = 4,
                      .seed = options.seed,
                      .keep_samples = true}};
}

}  // namespace toto::validate
