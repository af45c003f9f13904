#include "forecast_cost.h"

#include <algorithm>

namespace toto::server {

double forecast_cost(double num_variates, double length, const ForecastOptions& options,
                     const ModelFacts& facts) {
  // At this distance looking back costs as much as everything else done for a value.
  constexpr double kLookBack = 1 << 14;
  const double context = std::min(length, static_cast<double>(options.max_context));
  const double values = context + std::max(planned_paths(options, facts), 1) * options.horizon;
  return num_variates * values * (1 + (context + options.horizon + num_variates) / kLookBack);
}

}  // namespace toto::server
