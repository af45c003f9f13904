#include "settings/forecast_settings.h"

#include <limits>

#include "base/error.h"

namespace toto::settings {
namespace {

using ForecastRows = Rows<ForecastSettings>;
using io::Json;

constexpr unsigned kRequest = kFlag | kHttp | kPython;
constexpr double kMostPoints = std::numeric_limits<int>::max();

void set_levels(ForecastSettings& settings, const Json& levels) {
  settings.options.quantiles.clear();
  for (const Json& level : levels.array) settings.options.quantiles.push_back(level.real);
}

Json get_levels(const ForecastSettings& settings) {
  Json levels = io::json_names();
  for (const double level : settings.options.quantiles) {
    levels.array.push_back(io::json_number(level));
  }
  return levels;
}

void set_columns(ForecastSettings& settings, const Json& names) {
  settings.read.columns.clear();
  for (const Json& name : names.array) settings.read.columns.push_back(name.string);
}

Json get_columns(const ForecastSettings& settings) {
  Json names = io::json_names();
  for (const std::string& name : settings.read.columns) names.array.push_back(io::json_text(name));
  return settings.read.columns.empty() ? Json() : names;
}

}  // namespace

std::vector<ForecastField> forecast_rows() {
  static const std::string horizon_help = fmt::format("steps to forecast, 1 to {}", kMaxHorizon);
  static const std::string format_help = "input format: " + tables::input_format_names();
  std::vector<ForecastField> rows;
  rows.push_back(ForecastRows::number<[](auto& s) -> auto& { return s.options.horizon; }>(
                     "horizon", 1, kMaxHorizon)
                     .words("N", horizon_help)
                     .at(kRequest));
  rows.push_back(ForecastRows::number<[](auto& s) -> auto& { return s.options.max_context; }>(
                     "context", 1, kMostPoints)
                     .words("N", "points of history used at most")
                     .at(kRequest));
  rows.push_back({{.name = "columns",
                   .type = Type::names,
                   .doors = kFlag,
                   .nullable = true,
                   .placeholder = "A,B",
                   .help = "columns to forecast",
                   .otherwise = "all; of OHLCV bars close, or with --multivariate all prices"},
                  set_columns,
                  get_columns});
  rows.push_back(ForecastRows::toggle<&ForecastSettings::multivariate>("multivariate")
                     .words({}, "the series are variates of one series")
                     .at(kFlag | kPython));
  rows.push_back({{.name = "quantiles",
                   .type = Type::levels,
                   .doors = kRequest,
                   .placeholder = "Q,Q",
                   .help = "levels strictly between 0 and 1"},
                  set_levels,
                  get_levels});
  rows.push_back(ForecastRows::number<[](auto& s) -> auto& { return s.options.num_samples; }>(
                     "samples", 1, kMaxSamples,
                     [](const ForecastSettings& s) {
                       return s.options.num_samples > 0 ? io::json_number(s.options.num_samples)
                                                        : Json();
                     })
                     .words("N", "take everything from N sampled paths")
                     .at(kRequest | kFile)
                     .from({"TOTO_NUM_SAMPLES"})
                     .or_else("exact as far as the model can, then --paths"));
  rows.push_back(
      ForecastRows::number<[](auto& s) -> auto& { return s.options.num_paths; }>("paths", 1,
                                                                                 kMaxSamples)
          .words("N", "beyond the exact steps average the distributions of N simulated paths")
          .at(kRequest));
  rows.push_back(
      ForecastRows::named<[](auto& s) -> auto& { return s.options.decode; }, parse_decode>("decode")
          .words("D", "what is fed back beyond the first patch: sample or mean")
          .at(kRequest));
  rows.push_back(
      {{.name = "point",
        .type = Type::text,
        .doors = kRequest | kFile,
        .nullable = true,
        .placeholder = "SPEC",
        .help = "also report mean, median, quantile_Q, trimmed_mean_P, ...",
        .variables = {"TOTO_AGGREGATION_SPEC"},
        .otherwise = "none"},
       [](ForecastSettings& s, const Json& value) {
         s.options.point = parse_point(value.string);
         s.point_name = value.string;
       },
       [](const ForecastSettings& s) { return io::json_text(name_of(s.options.point)); }});
  rows.push_back(
      ForecastRows::named<[](auto& s) -> auto& { return s.options.missing; }, parse_missing>(
          "missing")
          .words("RULE", "what replaces missing values: ffill, linear or mask")
          .at(kRequest));
  rows.push_back({{.name = "scale",
                   .type = Type::factor,
                   .doors = kRequest,
                   .placeholder = "F",
                   .help = "multiply the values by F for the model and divide the answers by it; "
                           "auto: a power of two for series that vary too little for the model"},
                  [](ForecastSettings& s, const Json& value) {
                    s.options.scale = value.is_number() ? value.real : 0;
                  },
                  [](const ForecastSettings& s) {
                    return s.options.scale == 0 ? io::json_text("auto")
                                                : io::json_number(s.options.scale);
                  }});
  rows.push_back(ForecastRows::named<[](auto& s) -> auto& { return s.read.format; },
                                     tables::parse_input_format>("format")
                     .words("F", format_help)
                     .at(kFlag));
  rows.push_back({{.name = "freq",
                   .type = Type::text,
                   .doors = kFlag,
                   .nullable = true,
                   .placeholder = "F",
                   .help = "step of the series: 15min, h, D, B, W, M, ...",
                   .otherwise = "detected"},
                  [](ForecastSettings& s, const Json& value) {
                    tables::parse_frequency(value.string,
                                            "the step");  // the reader parses it again
                    s.read.frequency = value.string;
                  },
                  [](const ForecastSettings& s) {
                    return s.read.frequency.empty() ? Json() : io::json_text(s.read.frequency);
                  }});
  rows.push_back(ForecastRows::number<[](auto& s) -> auto& { return s.options.block; }>("block", 0,
                                                                                        kMaxHorizon)
                     .words("N", "Toto 2.0: steps forecast per pass, whole patches; 0: all")
                     .at(kFlag));
  rows.push_back({{.name = "raw",
                   .type = Type::toggle,
                   .doors = kFlag,
                   .help = "Toto 2.0: as the network alone forecasts, without the wrapper's cap, "
                           "first statistics and filled gaps"},
                  [](ForecastSettings& s, const Json& value) {
                    if (!value.boolean) return;
                    s.options.min_observed = 0;
                    s.options.cap = 0;
                    s.options.missing = Missing::mask;
                  },
                  [](const ForecastSettings& s) { return io::json_toggle(s.options.cap == 0); }});
  rows.push_back(ForecastRows::toggle<[](auto& s) -> auto& { return s.options.strict_quantiles; }>(
                     "strict_quantiles")
                     .words({}, "Toto 2.0: refuse quantiles beyond the model's own levels")
                     .at(kFlag));
  // The command line has it among the settings of the engine.
  rows.push_back(ForecastRows::number<[](auto& s) -> auto& { return s.options.seed; }>(
                     "seed", 0, 0x1p64,
                     [](const ForecastSettings& s) {
                       return io::json_text(fmt::format("{}", s.options.seed));
                     })
                     .words("S", "random seed")
                     .at(kHttp | kPython));
  rows.push_back(
      ForecastRows::toggle<[](auto& s) -> auto& { return s.options.independent_streams; }>(
          "independent_streams")
          .words({}, "separate random numbers for each series id")
          .at(kRequest));
  rows.push_back({{.name = "emit",
                   .type = Type::text,
                   .doors = kFlag | kHttp,
                   .nullable = true,
                   .placeholder = "WHAT",
                   .help = "samples: add the sampled paths to the JSON",
                   .choices = {"samples"}},
                  [](ForecastSettings& s, const Json&) { s.options.keep_samples = true; },
                  [](const ForecastSettings& s) {
                    return s.options.keep_samples ? io::json_text("samples") : Json();
                  }});
  return rows;
}

std::string forecast_key(const ForecastOptions& options) {
  ForecastSettings settings;
  settings.options = options;
  std::string key;
  for (const ForecastField& row : forecast_fields()) {
    const std::string value =
        io::JsonWriter(io::JsonLayout::compact).value(row.get(settings)).take();
    key += fmt::format("{} {}\n", row.name, value);
  }
  return key;
}

void check_paths(const ForecastOptions& options, bool paths_given, bool samples_given,
                 std::string_view prefix) {
  if (!paths_given) return;
  if (samples_given) {
    fail(ErrorCode::invalid_argument,
         "{0}paths is {1} and {0}samples is {2}, expected one of them: samples takes everything "
         "from drawn values, paths averages distributions beyond the exact steps",
         prefix, options.num_paths, options.num_samples);
  }
  if (options.decode == Decode::mean) {
    fail(ErrorCode::invalid_argument,
         "{0}paths is {1} but {0}decode mean follows one path; leave one of them out", prefix,
         options.num_paths);
  }
}

}  // namespace toto::settings
