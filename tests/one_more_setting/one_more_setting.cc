// The table of forecast settings with one row more: `steps`, another name of the horizon. Linked
// instead of src/settings/forecast_table.cc, which stays in the library unused.
#include "settings/forecast_settings.h"

namespace toto::settings {

std::span<const ForecastField> forecast_fields() {
  static const std::vector<ForecastField> fields = [] {
    std::vector<ForecastField> rows = forecast_rows();
    rows.push_back(
        Rows<ForecastSettings>::number<[](auto& s) -> auto& { return s.options.horizon; }>(
            "steps", 1, kMaxHorizon)
            .words("N", "another name of the horizon")
            .at(kFlag | kFile | kHttp | kPython)
            .from({"TOTO_STEPS"}));
    return table(std::move(rows));
  }();
  return fields;
}

}  // namespace toto::settings
