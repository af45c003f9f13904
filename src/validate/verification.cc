#include "validate/verification.h"

#include <algorithm>

#include "base/error.h"
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

// The checks depend on the model's patch size and cost. An unusable model or unusable options end
// the run here.
void add_model_jobs(const VerifyOptions& options, VerifyReport& report, Jobs& jobs) {
  const EngineOptions engine = engine_for(options.engine, Mode::reference);
  const ModelInfo model = options.load(options.model, engine)->model();
  report.describe(model);
  report.warnings = model.warnings;
  add_production_jobs(options, model, report, jobs);
  add_invariance_jobs(options, model, report, jobs);
}

// The setting of the run, the same for all modes.
void describe(const VerifyOptions& options, VerifyReport& report) {
  EngineOptions engine = resolve_options(engine_for(options.engine, Mode::reference));
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

VerifyReport verify(const VerifyOptions& options) {
  validate_options(options);
  VerifyReport report;
  describe(options, report);
  Jobs jobs;
  add_golden_jobs(options, report, jobs);
  if (!options.golden_only) {
    jobs.push_back([&] { add_model_jobs(options, report, jobs); });
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
