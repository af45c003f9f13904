// What a forecast is asked for. Flags of `toto forecast`, `eval`, `bench` and `compare-modes`, the
// fields of /v1 requests and the keywords of Python's Engine.forecast are read by these rows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "settings/setting.h"
#include "tables/series_file.h"
#include "toto/toto.h"

namespace toto::settings {

// The defaults are those of ForecastOptions and ReadOptions.
struct ForecastSettings {
  ForecastOptions options = {};
  tables::ReadOptions read = {};  // of files alone
  bool multivariate = false;      // the series are variates of one
  // `point` of the options holds a default; this is what was asked for, as it was spelled.
  std::string point_name = {};
};

using ForecastField = Field<ForecastSettings>;
std::vector<ForecastField> forecast_rows();
// These rows, with their defaults: forecast_table.cc, which a test build replaces to add one.
std::span<const ForecastField> forecast_fields();

// Error(invalid_argument) if the number of paths was given together with samples or with
// Decode::mean, which simulates none. `prefix` is how options are written: "--", or nothing.
void check_paths(const ForecastOptions& options, bool paths_given, bool samples_given,
                 std::string_view prefix);

}  // namespace toto::settings
