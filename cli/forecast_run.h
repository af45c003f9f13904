// From the series of a file to forecasts of all of them, in chunks that bound the memory.
#pragma once

#include <cstddef>
#include <vector>

#include "forecast_request.h"
#include "io/series_file.h"
#include "toto/toto.h"

namespace toto::cli {

// One entry of the answer: a variate of a forecast, and the input series it continues.
struct ForecastPart {
  std::size_t forecast = 0;
  int variate = 0;
  std::size_t series = 0;  // position in InputData::series
};

struct ForecastRun {
  std::vector<Forecast> forecasts;
  std::vector<ForecastPart> parts;  // in the order of the file; variates with a known future are
                                    // inputs, not answers, and are left out
  Timings timings;                  // `total` counts loading too
};

// Error(out_of_memory) before anything is computed if the answer would not fit,
// Error(cancelled) after an interrupt.
ForecastRun run_forecast(const ForecastRequest& request, const io::InputData& input,
                         const io::KnownFuture& known, const Engine& engine);

}  // namespace toto::cli
