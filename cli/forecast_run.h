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

// How the input's series travel: alone, each with the known variates beside it, or all as one.
class ForecastBatch {
 public:
  // All three must outlive this. Error(corrupt_file) if nothing is left to forecast, or if series
  // that are to look at each other have different times.
  ForecastBatch(const ForecastRequest& request, const io::InputData& input,
                const io::KnownFuture& known);

  std::size_t size() const { return request_.multivariate ? 1 : targets_.size(); }
  // Variates of all series together, known ones counted as often as they travel.
  std::size_t num_variates() const { return size() * known_positions_.size() + targets_.size(); }
  Series make(std::size_t index) const;
  std::vector<ForecastPart> parts() const;

 private:
  Series joined(const io::InputData& data, std::size_t first) const;

  const ForecastRequest& request_;
  const io::InputData& input_;
  const io::KnownFuture& known_;
  std::vector<std::size_t> targets_, known_positions_;
};

// Error(out_of_memory) before anything is computed if the answer would not fit,
// Error(cancelled) after an interrupt.
ForecastRun run_forecast(const ForecastRequest& request, const ForecastBatch& batch,
                         const Engine& engine);

}  // namespace toto::cli
