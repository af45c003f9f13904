// By itself, so that a test build can link a table with one more row in its place.
#include "settings/forecast_settings.h"

namespace toto::settings {

std::span<const ForecastField> forecast_fields() {
  static const std::vector<ForecastField> fields = table(forecast_rows());
  return fields;
}

}  // namespace toto::settings
