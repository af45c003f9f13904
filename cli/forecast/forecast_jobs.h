// From the series of a file to what the engine is asked: alone, each with the known variates beside
// it, or all as one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/forecast/forecast_request.h"
#include "tables/series_file.h"
#include "toto/toto.h"

namespace toto::cli {

// An input series that is forecast: a variate of what travels. Unless a chart is asked for, its
// history is left out and of its times only the last one is kept.
struct ForecastPart {
  tables::InputSeries series;
  std::string column;  // the one it was read from
};

// What the engine is asked, and which input series its answers continue. Variates with a known
// future are inputs, not answers; they travel last and are no parts.
struct ForecastJob {
  Series series;
  std::vector<ForecastPart> parts;  // [variate]
};

// A series that travels alone.
ForecastJob make_job(const ForecastRequest& request, tables::InputSeries series,
                     const std::string& column);

// The jobs of a file that must be looked at as a whole.
class ForecastBatch {
 public:
  // All three must outlive this. Error(corrupt_file) if nothing is left to forecast, or if series
  // that are to look at each other have different times.
  ForecastBatch(const ForecastRequest& request, const tables::InputData& input,
                const tables::KnownFuture& known);

  std::size_t size() const { return request_.multivariate ? 1 : targets_.size(); }
  std::size_t num_parts() const { return targets_.size(); }
  // Variates of all jobs together, known ones counted as often as they travel.
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
