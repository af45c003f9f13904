#include "validate/verify.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/random.h"
#include "validate/verify_parts.h"
#include "validate/zero_weights.h"

namespace toto::validate {
namespace {

void validate_options(const VerifyOptions& options) {
  if (options.modes.empty()) {
    fail(ErrorCode::invalid_argument, "no mode to verify; name one, or all");
  }
  for (const Mode mode : options.modes) {
    if (std::count(options.modes.begin(), options.modes.end(), mode) > 1) {
      fail(ErrorCode::invalid_argument, "mode {} is named twice; name each once", name_of(mode));
    }
  }
  if (options.golden_only && options.goldens.empty()) {
    fail(ErrorCode::invalid_argument,
         "only goldens are to be checked, but none is named; name at least one golden folder");
  }
}

// The checks depend on the model's patch size and cost. What is wrong with the model, or with the
// options whatever the mode, shows here and ends the run.
void meet_model(const VerifyOptions& options, Report& report, Jobs& jobs) {
  EngineOptions engine = engine_options(options, Mode::reference);
  engine.dtype = DType::f32;
  const ModelInfo model = options.load(options.model, engine)->model();
  report.describe(model);
  report.warnings = model.warnings;
  add_production_jobs(options, model, report, jobs);
  add_invariance_jobs(options, model, report, jobs);
}

// How it is run, whatever the mode.
void describe(const VerifyOptions& options, Report& report) {
  EngineOptions engine = engine_options(options, Mode::reference);
  engine.dtype = DType::f32;
  engine = resolve_options(engine);
  engine.dtype = options.engine.dtype;
  report.describe(engine, options.seed);
}

}  // namespace

EngineOptions engine_options(const VerifyOptions& options, Mode mode) {
  EngineOptions engine = options.engine;
  engine.mode = mode;
  engine.use_kv_cache = true;
  return engine;
}

double storage_share(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 0.02;
    case DType::int8:
      return 0.05;
    default:
      return 0;
  }
}

bool holds(double figure, double bound) {
  return std::isfinite(figure) && std::isfinite(bound) && figure <= bound;
}

Check measured_check(std::string name, double figure, double bound, std::string detail) {
  return {.name = std::move(name),
          .passed = holds(figure, bound),
          .figure = figure,
          .bound = bound,
          .detail = std::move(detail)};
}

Check failed_check(std::string name, std::string detail) {
  return {.name = std::move(name), .passed = false, .detail = std::move(detail)};
}

std::string about(Mode mode, std::string_view sentence) {
  return fmt::format("{}: {}", name_of(mode), sentence);
}

Series make_series(std::string id, int num_variates, int length, std::uint64_t seed) {
  Series series{.id = std::move(id), .num_variates = num_variates};
  series.values.reserve(std::size_t(num_variates) * length);
  for (int v = 0; v < num_variates; ++v) {
    const auto uniform = [&](std::uint32_t step, int word) {  // in (0, 1)
      const RandomWords words = random_words({.seed = seed,
                                              .stream = stream_of(series.id),
                                              .variate = std::uint32_t(v),
                                              .step = step});
      return (words[word] + 0.5) * 0x1p-32;
    };
    const double period = 6 + 40 * uniform(0, 1);
    const double level = 20 * uniform(0, 2) - 10;
    double walk = 0;
    for (int t = 0; t < length; ++t) {
      walk += uniform(t, 3) - 0.5;
      const double season = 2 * std::sin(2 * std::numbers::pi * t / period);
      series.values.push_back(static_cast<float>(level + season + walk + 0.3 * uniform(t, 0)));
    }
  }
  return series;
}

Report verify(const VerifyOptions& options) {
  validate_options(options);
  Report report;
  describe(options, report);
  Jobs jobs;
  add_golden_jobs(options, report, jobs);
  if (!options.golden_only) {
    jobs.push_back([&] { meet_model(options, report, jobs); });
  }
  for (std::size_t done = 0; done < jobs.size(); ++done) {
    if (options.cancelled && options.cancelled()) {
      fail(ErrorCode::cancelled, "the verification was cancelled");
    }
    jobs[done]();
    if (options.progress)
      options.progress(static_cast<int>(done + 1), static_cast<int>(jobs.size()));
  }
  const std::string& folder = options.golden_only ? options.golden_model : options.model;
  if (!folder.empty()) {
    for (std::string& warning : zero_warnings(folder))
      report.warnings.push_back(std::move(warning));
  }
  return report;
}

}  // namespace toto::validate
