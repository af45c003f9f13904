#include "prepared_request.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "memory_budget.h"

namespace toto::server {

SeriesShape shape_of(const Series& series) {
  return {.num_variates = static_cast<std::size_t>(series.num_variates),
          .length = series.length(),
          .num_exogenous = static_cast<std::size_t>(series.num_exogenous)};
}

std::size_t check_size(const RequestLimits& limits, std::span<const SeriesShape> shapes,
                       const ForecastOptions& options) {
  if (shapes.empty()) fail(ErrorCode::invalid_argument, "there is no series to forecast");
  if (shapes.size() > limits.max_series) {
    fail(ErrorCode::invalid_argument, "the request has {} series, expected at most {}",
         shapes.size(), limits.max_series);
  }
  if (options.horizon > limits.max_horizon) {
    fail(ErrorCode::invalid_argument, "horizon is {}, expected 1 to {}", options.horizon,
         limits.max_horizon);
  }
  double num_variates = 0, num_values = 0, widest = 0;
  for (const SeriesShape& shape : shapes) {
    const auto variates = static_cast<double>(shape.num_variates);
    num_variates += variates;
    num_values += variates * static_cast<double>(shape.length) +
                  static_cast<double>(shape.num_exogenous) * options.horizon;
    widest = std::max(widest, variates);
  }
  const double bytes = answer_bytes(num_variates, options, limits.facts);
  if (bytes > static_cast<double>(limits.max_answer_bytes)) {
    fail(ErrorCode::invalid_argument,
         "the answer would have {:.0f} MB, expected at most {:.0f}; ask for fewer series, samples "
         "or quantiles, or a shorter horizon",
         bytes / 1e6, static_cast<double>(limits.max_answer_bytes) / 1e6);
  }
  // All series are copied; paths are drawn for one series at a time, or for a few small ones.
  const double needed = sizeof(float) * (num_values + widest * options.horizon) +
                        path_bytes(widest, options, limits.facts);
  if (needed > static_cast<double>(limits.max_memory)) {
    fail(
        ErrorCode::invalid_argument,
        "the series as the model reads them and their paths would take {:.0f} MB, expected at "
        "most {:.0f}; ask for fewer variates, windows, paths or samples or a shorter horizon, or start "
        "the server with a larger --max-memory",
        needed / 1e6, static_cast<double>(limits.max_memory) / 1e6);
  }
  const auto series_bytes = static_cast<std::size_t>(sizeof(float) * num_values);
  if (series_bytes > limits.max_series_bytes_here) return series_bytes;
  if (limits.memory != nullptr && !limits.memory->take(static_cast<std::size_t>(needed + bytes))) {
    fail(ErrorCode::overloaded,
         "the requests that are being answered leave no room for {:.0f} MB; try again",
         (needed + bytes) / 1e6);
  }
  return 0;
}

void drop_leading_missing(std::vector<float>& values) {
  const auto first =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isnan(value); });
  if (first != values.end()) values.erase(values.begin(), first);
}

}  // namespace toto::server
