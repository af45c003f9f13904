// Internals of verify(). Each part adds its jobs; verify() runs them one after another.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "validate/mode_checks.h"
#include "validate/verification.h"

namespace toto::validate {

// A running job may add others at the end: a deque does not move the running one.
using Jobs = std::deque<std::function<void()>>;

void add_golden_jobs(const VerifyOptions& options, VerifyReport& report, Jobs& jobs);
// Both depend on the patch and the size of the model.
void add_production_jobs(const VerifyOptions& options, const ModelInfo& model, VerifyReport& report,
                         Jobs& jobs);
void add_invariance_jobs(const VerifyOptions& options, const ModelInfo& model, VerifyReport& report,
                         Jobs& jobs);

// The engine options of a verify run for one mode, with the dtype as given.
EngineOptions engine_options(const VerifyOptions& options, Mode mode);

}  // namespace toto::validate
