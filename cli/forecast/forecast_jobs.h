// From the series of a file to the requests of the engine: each alone, each with the known
// variates, or all as one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/forecast/forecast_request.h"
#include "tables/series_file.h"
#include "toto/toto.h"

namespace toto::cli {

// An input series that is forecast: a variate of a job. Without a chart its history is dropped and
// only its last time is kept.
struct ForecastPart {
  tables::InputSeries series;
  std::string column;  // the one it was read from
};

// A request of the engine, and the input series that its answers continue. Variates with a known
// future are inputs, not answers; they come last and are not parts.
struct ForecastJob {
  Series series;
  std::vector<ForecastPart> parts;  // [variate]
};

// A series alone.
ForecastJob make_job(const ForecastRequest& request, tables::InputSeries series,
                     const std::string& column);

// The jobs of a file that must be read as a whole.
class ForecastBatch {
 public:
  // All three must outlive this. Error(corrupt_file) if nothing is left to forecast, or if series
  // that are to look at each other have different times.
  ForecastBatch(const ForecastRequest& request, const tables::InputData& input,
                const tables::KnownFuture& known);

  std::size_t size() const { return request_.multivariate ? 1 : targets_.size(); }
  std::size_t num_parts() const { return targets_.size(); }
  // Variates of all jobs together, known ones counted once per job.
  std::size_t num_variates() const { return size() * known_positions_.size() + targets_.size(); }
  ForecastJob make(std::size_t index) const;

 private:
  ForecastPart part(std::size_t position) const;
  Series joined(const tables::InputData& data, std::size_t first) const;

  const ForecastRequest& request_;
  const tables::InputData& input_;
  const tables::KnownFuture& known_;
  std::vector<std::size_t> targets_, known_positions_;
};

}  // namespace toto::cli
