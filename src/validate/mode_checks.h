// What verify, compare-modes and stress share when they run one mode after another: the limits of
// production, the options of each engine, and the conversion of engine errors into failed checks.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "validate/held_out.h"
#include "validate/judged_report.h"
#include "validate/runner.h"

namespace toto::validate {

// Limits of a mode under load. From half of a limit on there is a warning.
inline constexpr double kMaxMaeChange = 0.05;  // of the MAE of `reference`
inline constexpr double kMaxReplans = 10;      // after warm-up, in a run of one mode
inline constexpr double kMinSpeed = 0.8;       // of `reference`
inline constexpr double kWarnShare = 0.5;

// How much storing the weights in fewer bits may change an output in addition to rounding, as a
// share of its mean size; 0 for float32.
double storage_share(DType dtype);

// Where a token costs a tenth of a second in `reference` mode, checks use fewer of them.
inline bool is_large(const ModelInfo& model) { return model.num_parameters > 20'000'000; }

// The options of the engine for one mode, with the cache of keys and values. `reference` has
// float32 weights.
EngineOptions engine_for(EngineOptions engine, Mode mode);

// Error(invalid_argument) for f64, which only `reference` has.
void require_optimised_dtype(DType dtype);

// Calls `body` and returns the engine's error message, or an empty string. Cancelling and running
// out of memory are not caught.
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

// The same for one mode of several. Errors of `reference` are not caught: without it there is
// nothing to compare the other modes with.
template <typename Body>
std::string complaint_of_mode(Mode mode, Body&& body) {
  if (mode != Mode::reference) return complaint_of(std::forward<Body>(body));
  std::forward<Body>(body)();
  return {};
}

// Seeded data that looks like metrics or prices: a random walk, a season, a level. [variate][time]
Series make_series(std::string id, int num_variates, int length, std::uint64_t seed);

// Forecasts one window and takes the time. Error(internal) unless the answer is one forecast of the
// window's steps.
struct TimedForecast {
  Forecast forecast;
  double milliseconds = 0;
};
TimedForecast forecast_window(Runner& runner, const Window& window, const ForecastOptions& options);

}  // namespace toto::validate
