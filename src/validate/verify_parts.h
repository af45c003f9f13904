// What the parts of verify share. Each part adds its jobs; verify runs them one after the other.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "validate/verify.h"

namespace toto::validate {

// A job may add others behind the last one; a deque leaves the running one where it is.
using Jobs = std::deque<std::function<void()>>;

void add_golden_jobs(const VerifyOptions& options, Report& report, Jobs& jobs);
// Both need to know the model they are for.
void add_production_jobs(const VerifyOptions& options, const ModelInfo& model, Report& report,
                         Jobs& jobs);
void add_invariance_jobs(const VerifyOptions& options, const ModelInfo& model, Report& report,
                         Jobs& jobs);

// The options of a verify run for one engine.
EngineOptions engine_options(const VerifyOptions& options, Mode mode);

// What storing the weights in fewer bits may move an output by on top of rounding, as a share of
// its mean size; 0 for float32.
double storage_share(DType dtype);

// A figure that holds its bound; NaN and infinities hold nothing.
bool holds(double figure, double bound);
Check measured_check(std::string name, double figure, double bound, std::string detail);
Check failed_check(std::string name, std::string detail);

// Calls `body`; what the engine refuses or fails at comes back as a sentence instead of ending the
// run. Empty: it went well. Cancelling and running out of memory do end it.
template <typename Body>
std::string complaint_of(Body&& body) {
  try {
    std::forward<Body>(body)();
    return {};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled || error.code() == ErrorCode::out_of_memory) throw;
    return error.what();
  }
}

// Where a token costs a tenth of a second in `reference` mode, checks use fewer of them.
inline bool is_large(const ModelInfo& model) { return model.num_parameters > 20'000'000; }

// Seeded data that looks like metrics or prices: a random walk, a season, a level. [variate][time]
Series make_series(std::string id, int num_variates, int length, std::uint64_t seed);

// "default: ...", the prefix of every sentence about one mode.
std::string about(Mode mode, std::string_view sentence);

}  // namespace toto::validate
