#include "protocol_nixtla.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.h"
#include "tables/forecast_file.h"

namespace toto::server {
namespace {

using io::Json;

// A level L is the band between the quantiles (100 - L) / 200 and (100 + L) / 200.
struct NixtlaBand {
  std::string name;               // "80"
  std::size_t low = 0, high = 0;  // indices into the options' quantiles
};

// The part that all three requests share.
struct NixtlaRequest {
  std::vector<std::vector<float>> y = {};                    // [series]
  std::vector<std::vector<std::vector<float>>> x = {};       // [series][feature][time]
  std::vector<std::vector<std::vector<float>>> future = {};  // [series][feature][step]
  std::size_t num_known = 0;  // features, the first ones, whose future is known
  std::vector<NixtlaBand> bands = {};
  ForecastOptions options = {};
  bool multivariate = false;
};

// The lengths of the series; their sum must be `total`.
std::vector<std::size_t> read_sizes(const Json& value, std::size_t total,
                                    const RequestLimits& limits) {
  std::vector<std::size_t> sizes;
  std::size_t sum = 0;
  for (const Json& item : list_of(value, "series.sizes")) {
    const std::int64_t size = whole_number(item, "series.sizes", 1, std::int64_t{1} << 40);
    sizes.push_back(static_cast<std::size_t>(size));
    sum += sizes.back();
  }
  if (sum != total) {
    fail(ErrorCode::invalid_argument,
         "series.sizes add up to {}, expected the {} values of series.y", sum, total);
  }
  if (sizes.empty() || sizes.size() > limits.max_series) {
    fail(ErrorCode::invalid_argument, "series.sizes has {} series, expected 1 to {}", sizes.size(),
         limits.max_series);
  }
  return sizes;
}

// Splits a column of all series into one per series.
std::vector<std::vector<float>> cut(const std::vector<float>& column,
                                    std::span<const std::size_t> sizes) {
  std::vector<std::vector<float>> parts;
  auto from = column.begin();
  for (const std::size_t size : sizes) {
    parts.emplace_back(from, from + static_cast<std::ptrdiff_t>(size));
    from += static_cast<std::ptrdiff_t>(size);
  }
  return parts;
}

// Features [feature][time of all series] as [series][feature][time].
std::vector<std::vector<std::vector<float>>> read_features(const Json& value,
                                                           const std::string& where,
                                                           std::span<const std::size_t> sizes) {
  std::size_t total = 0;
  for (const std::size_t size : sizes) total += size;
  std::vector<std::vector<std::vector<float>>> features(sizes.size());
  for (const Json& item : list_of(value, where)) {
    const std::vector<float> column = values_of(item, where);
    if (column.size() != total) {
      fail(ErrorCode::invalid_argument, "{} has a feature of {} values, expected {}", where,
           column.size(), total);
    }
    std::vector<std::vector<float>> parts = cut(column, sizes);
    for (std::size_t i = 0; i < sizes.size(); ++i) features[i].push_back(std::move(parts[i]));
  }
  return features;
}

void read_levels(const Json& value, NixtlaRequest& request) {
  const std::vector<Json> single = {value};
  const std::vector<Json>& levels = value.is_number() ? single : list_of(value, "level");
  std::vector<double>& quantiles = request.options.quantiles;
  constexpr std::size_t kMostLevels = 100;
  if (levels.size() > kMostLevels) {
    fail(ErrorCode::invalid_argument, "level has {} entries, expected at most {}", levels.size(),
         kMostLevels);
  }
  for (const Json& item : levels) {
    const double level = number_of(item, "level");
    if (!(level >= 0 && level < 100)) {
      fail(ErrorCode::invalid_argument, "level is {}, expected 0 or more and less than 100", level);
    }
    const std::string name = fmt::format("{}", level);
    const auto known = std::find_if(request.bands.begin(), request.bands.end(),
                                    [&](const NixtlaBand& band) { return band.name == name; });
    if (known != request.bands.end()) continue;
    // Divided once, so that 80 is 0.1 and 0.9 to the bit.
    const auto place = [&](double quantile) {
      quantiles.push_back(quantile);
      return quantiles.size() - 1;
    };
    const std::size_t low = place((100 - level) / 200);
    request.bands.push_back({name, low, place((100 + level) / 200)});
  }
}

NixtlaRequest read_common(Fields& fields, const RequestLimits& limits) {
  NixtlaRequest request;
  request.options.quantiles.clear();
  request.options.seed = limits.seed;
  // Fields that only concern training and other models.
  for (const char* name :
       {"model", "freq", "clean_ex_first", "finetune_depth", "finetune_loss", "finetuned_model_id",
        "feature_contributions", "refit", "model_parameters"}) {
    fields.ignore(name);
  }
  if (const Json* steps = fields.take("finetune_steps")) {
    if (whole_number(*steps, "finetune_steps", 0, 1'000'000) > 0) {
      fail(ErrorCode::unsupported, "finetune_steps is {}, expected 0: this server does not train",
           steps->integer);
    }
  }
  if (const Json* together = fields.take("multivariate")) {
    request.multivariate = flag_of(*together, "multivariate");
  }
  if (const Json* level = fields.take("level")) read_levels(*level, request);

  Fields series(fields.need("series"), "series");
  series.ignore("start_datetime");  // the client dates the answer itself
  const std::vector<float> y = values_of(series.need("y"), "series.y");
  const std::vector<std::size_t> sizes = read_sizes(series.need("sizes"), y.size(), limits);
  request.y = cut(y, sizes);
  request.x.resize(sizes.size());
  request.future.resize(sizes.size());
  if (const Json* x = series.take("X")) request.x = read_features(*x, "series.X", sizes);
  take_horizon(fields, "h", limits, request.options);
  if (const Json* future = series.take("X_future")) {
    const std::vector<std::size_t> steps(sizes.size(),
                                         static_cast<std::size_t>(request.options.horizon));
    request.future = read_features(*future, "series.X_future", steps);
    request.num_known = request.future.front().size();
  }
  const Json* categorical = series.take("categorical_exog");
  if (categorical != nullptr && !list_of(*categorical, "series.categorical_exog").empty()) {
    fail(ErrorCode::unsupported,
         "series.categorical_exog is given, expected numbers only: encode categories as numbers");
  }
  series.finish();
  if (request.num_known > request.x.front().size()) {
    fail(ErrorCode::invalid_argument,
         "series.X_future has {} features and series.X has {}, expected the history of each",
         request.num_known, request.x.front().size());
  }
  if (request.multivariate) {
    const bool same = std::all_of(sizes.begin(), sizes.end(),
                                  [&](std::size_t size) { return size == sizes.front(); });
    if (!same || !request.x.front().empty()) {
      fail(ErrorCode::unsupported,
           "multivariate needs series of one length and no exogenous features");
    }
  }
  return request;
}

// Series `index` up to `end`; the values of known features after it are their future.
Series make_series(const NixtlaRequest& request, std::size_t index, std::size_t end) {
  const auto until = static_cast<std::ptrdiff_t>(end);
  const std::vector<float>& y = request.y[index];
  Series series;
  series.values.assign(y.begin(), y.begin() + until);
  const auto& x = request.x[index];
  if (x.empty()) {
    drop_leading_missing(series.values);
    return series;
  }
  series.num_variates = 1 + static_cast<int>(x.size());
  series.num_exogenous = static_cast<int>(request.num_known);
  const auto add = [&](const std::vector<float>& feature) {
    series.values.insert(series.values.end(), feature.begin(), feature.begin() + until);
  };
  // Known features are first in the request and last in a series.
  for (std::size_t f = request.num_known; f < x.size(); ++f) add(x[f]);
  for (std::size_t f = 0; f < request.num_known; ++f) add(x[f]);
  const auto horizon = static_cast<std::ptrdiff_t>(request.options.horizon);
  for (std::size_t f = 0; f < request.num_known; ++f) {
    const auto& values = end == y.size() ? request.future[index][f] : x[f];
    const auto from = values.begin() + (end == y.size() ? 0 : until);
    series.future_exogenous.insert(series.future_exogenous.end(), from, from + horizon);
  }
  return series;
}

// The source of a part of the answer: a forecast, a variate of it and its first steps.
struct AnswerPart {
  std::size_t forecast = 0, variate = 0, steps = 0;
};

// One array with the steps of all parts. `values` is [row][variate][step].
void write_rows(io::JsonWriter& json, const std::vector<AnswerPart>& parts,
                const ForecastAnswer& answer, const std::vector<float> Forecast::* values,
                std::size_t row) {
  json.begin_array();
  for (const AnswerPart& part : parts) {
    const Forecast& forecast = answer.forecasts[part.forecast];
    const auto horizon = static_cast<std::size_t>(forecast.horizon);
    const auto variates = static_cast<std::size_t>(forecast.num_variates);
    const float* from = (forecast.*values).data() + (row * variates + part.variate) * horizon;
    for (std::size_t i = 0; i < part.steps; ++i) json.value(from[i]);
  }
  json.end_array();
}

void write_answer(io::JsonWriter& json, const std::vector<AnswerPart>& parts,
                  const std::vector<NixtlaBand>& bands, const ForecastAnswer& answer,
                  std::size_t num_tokens) {
  json.key("mean");
  write_rows(json, parts, answer, &Forecast::mean, 0);
  json.key("intervals");
  if (bands.empty()) {
    json.null();
  } else {
    json.begin_object();
    for (const NixtlaBand& band : bands) {
      json.key("lo-" + band.name);
      write_rows(json, parts, answer, &Forecast::quantiles, band.low);
      json.key("hi-" + band.name);
      write_rows(json, parts, answer, &Forecast::quantiles, band.high);
    }
    json.end_object();
  }
  std::size_t num_answers = 0;
  for (const AnswerPart& part : parts) num_answers += part.steps;
  json.key("weights_x").null().key("feature_contributions").null();
  json.field("input_tokens", static_cast<std::uint64_t>(num_tokens))
      .field("output_tokens", static_cast<std::uint64_t>(num_answers))
      .field("finetune_tokens", 0);
}

void write_numbers(io::JsonWriter& json, std::string_view name,
                   const std::vector<std::size_t>& numbers) {
  json.key(name).begin_array();
  for (const std::size_t number : numbers) json.value(static_cast<std::uint64_t>(number));
  json.end_array();
}

std::size_t num_values(const NixtlaRequest& request) {
  std::size_t total = 0;
  for (const std::vector<float>& y : request.y) total += y.size();
  return total;
}

// A forecast within the history of series `index`: `steps` steps from `end` on.
struct WindowCut {
  std::size_t index = 0, end = 0, steps = 0;
};

// Of series `index` cut at `end`.
SeriesShape shape_of(const NixtlaRequest& request, std::size_t index, std::size_t end) {
  return {.num_variates = 1 + request.x[index].size(),
          .length = end,
          .num_exogenous = request.num_known};
}

// Forecasts made along the history.
struct HistoryWindows {
  std::vector<AnswerPart> parts = {};
  std::vector<std::size_t> idxs = {};   // of each answer, among all values of the request
  std::vector<std::size_t> sizes = {};  // answers of each series
};

// Each window copies the history before it: together they are many times the request's size.
HistoryWindows make_windows(PreparedRequest& prepared, const NixtlaRequest& request,
                            const std::vector<WindowCut>& cuts, const RequestLimits& limits) {
  std::vector<SeriesShape> shapes;
  shapes.reserve(cuts.size());
  for (const WindowCut& cut : cuts) shapes.push_back(shape_of(request, cut.index, cut.end));
  prepared.bytes_too_large_here = check_size(limits, shapes, prepared.options);
  if (prepared.bytes_too_large_here > 0) return {};
  std::vector<std::size_t> offsets;  // of each series among all values
  std::size_t offset = 0;
  for (const std::vector<float>& y : request.y) {
    offsets.push_back(offset);
    offset += y.size();
  }
  HistoryWindows windows;
  windows.sizes.resize(request.y.size());
  for (const WindowCut& cut : cuts) {
    windows.parts.push_back({prepared.series.size(), 0, cut.steps});
    prepared.series.push_back(make_series(request, cut.index, cut.end));
    for (std::size_t i = 0; i < cut.steps; ++i) {
      windows.idxs.push_back(offsets[cut.index] + cut.end + i);
    }
    windows.sizes[cut.index] += cut.steps;
  }
  return windows;
}

// Whether each value of the history lies outside the band that was forecast for it.
void write_anomalies(io::JsonWriter& json, const HistoryWindows& windows, const NixtlaBand& band,
                     const std::vector<float>& actual, const ForecastAnswer& answer) {
  json.key("anomaly").begin_array();
  std::size_t next = 0;
  for (const AnswerPart& part : windows.parts) {
    const Forecast& forecast = answer.forecasts[part.forecast];
    const auto row = static_cast<std::size_t>(forecast.num_variates) *
                     static_cast<std::size_t>(forecast.horizon);
    const float* low = forecast.quantiles.data() + band.low * row;
    const float* high = forecast.quantiles.data() + band.high * row;
    for (std::size_t i = 0; i < part.steps; ++i) {
      const float y = actual[windows.idxs[next++]];
      json.value(y < low[i] || y > high[i]);
    }
  }
  json.end_array();
}

// Writes the fields all three answers share, then those that `more` adds.
template <typename More>
auto answer_writer(const NixtlaRequest& request, HistoryWindows windows, More more) {
  return [made = std::move(windows), bands = request.bands, tokens = num_values(request),
          more = std::move(more)](const ForecastAnswer& answer) {
    io::JsonWriter json(io::JsonLayout::compact);
    json.begin_object();
    write_answer(json, made.parts, bands, answer, tokens);
    more(json, made, answer);
    json.end_object();
    return json_response(json);
  };
}

void refuse_multivariate(const NixtlaRequest& request) {
  if (request.multivariate) {
    fail(ErrorCode::unsupported,
         "multivariate is true, expected false: only /v2/forecast supports it");
  }
}

// The steps that a model forecasts exactly in one pass; one patch if it has no limit.
int history_window(const ModelFacts& facts) { return facts.block > 0 ? facts.block : facts.patch; }

// Consecutive windows over a series, except its beginning. The last one is shorter, and no feature
// has a known future beyond it: features are therefore known only up to each window.
HistoryWindows cover_history(PreparedRequest& prepared, NixtlaRequest& request,
                             const RequestLimits& limits) {
  const int window = history_window(limits.facts);
  prepared.options.horizon = request.options.horizon = window;
  request.num_known = 0;
  std::vector<WindowCut> cuts;
  const auto horizon = static_cast<std::size_t>(prepared.options.horizon);
  for (std::size_t index = 0; index < request.y.size(); ++index) {
    const std::vector<float>& y = request.y[index];
    const auto known = std::find_if(y.begin(), y.end(), [](float v) { return !std::isnan(v); });
    const auto leading = static_cast<std::size_t>(known - y.begin());
    const std::size_t length = y.size() - leading;
    if (length < 2) {
      fail(ErrorCode::invalid_argument, "series {} has {} values, expected at least 2", index,
           length);
    }
    const std::size_t first =
        leading + std::min(static_cast<std::size_t>(window), (length + 1) / 2);
    for (std::size_t end = first; end < y.size(); end += horizon) {
      cuts.push_back({index, end, std::min(horizon, y.size() - end)});
    }
    if (cuts.size() > limits.max_series) {
      fail(ErrorCode::invalid_argument, "the history has more than {} windows; send less of it",
           limits.max_series);
    }
  }
  return make_windows(prepared, request, cuts, limits);
}

}  // namespace

PreparedRequest prepare_nixtla_forecast(const Json& body, const RequestLimits& limits) {
  Fields fields(body, "");
  NixtlaRequest request = read_common(fields, limits);
  fields.finish();
  PreparedRequest prepared{.options = request.options};
  std::vector<SeriesShape> shapes;
  if (request.multivariate) {
    shapes.push_back({.num_variates = request.y.size(), .length = request.y.front().size()});
  } else {
    for (std::size_t i = 0; i < request.y.size(); ++i) {
      shapes.push_back(shape_of(request, i, request.y[i].size()));
    }
  }
  prepared.bytes_too_large_here = check_size(limits, shapes, prepared.options);
  if (prepared.bytes_too_large_here > 0) return prepared;
  std::vector<AnswerPart> parts;
  const auto horizon = static_cast<std::size_t>(request.options.horizon);
  if (request.multivariate) {
    Series& series = prepared.series.emplace_back();
    series.num_variates = static_cast<int>(request.y.size());
    for (std::size_t i = 0; i < request.y.size(); ++i) {
      series.values.insert(series.values.end(), request.y[i].begin(), request.y[i].end());
      parts.push_back({0, i, horizon});
    }
  } else {
    for (std::size_t i = 0; i < request.y.size(); ++i) {
      prepared.series.push_back(make_series(request, i, request.y[i].size()));
      parts.push_back({i, 0, horizon});
    }
  }
  prepared.write_answer =
      answer_writer(request, {.parts = std::move(parts)},
                    [](io::JsonWriter&, const HistoryWindows&, const ForecastAnswer&) {});
  return prepared;
}

PreparedRequest prepare_nixtla_cross_validation(const Json& body, const RequestLimits& limits) {
  Fields fields(body, "");
  NixtlaRequest request = read_common(fields, limits);
  const Json* windows_field = fields.take("n_windows");
  const Json* step_field = fields.take("step_size");
  const Json* hist_exog = fields.take("hist_exog");
  const Json* full = fields.take("full_history");
  fields.finish();
  refuse_multivariate(request);
  PreparedRequest prepared{.options = request.options};
  HistoryWindows windows;
  if (full != nullptr && flag_of(*full, "full_history")) {
    windows = cover_history(prepared, request, limits);
  } else {
    const auto max_windows = static_cast<std::int64_t>(limits.max_series);
    const auto horizon = static_cast<std::size_t>(prepared.options.horizon);
    const auto count = static_cast<std::size_t>(
        windows_field == nullptr ? 1 : whole_number(*windows_field, "n_windows", 1, max_windows));
    const auto step = static_cast<std::size_t>(
        step_field == nullptr ? prepared.options.horizon
                              : whole_number(*step_field, "step_size", 1, limits.max_horizon));
    // Features beyond those listed have a future, which the history holds.
    const std::size_t num_features = request.x.front().size();
    const std::size_t num_past = hist_exog == nullptr ? 0 : list_of(*hist_exog, "hist_exog").size();
    if (num_past > num_features) {
      fail(ErrorCode::invalid_argument, "hist_exog has {} entries, expected at most the {} of X",
           num_past, num_features);
    }
    request.num_known = num_features - num_past;
    std::vector<WindowCut> cuts;
    for (std::size_t index = 0; index < request.y.size(); ++index) {
      const std::size_t length = request.y[index].size();
      const std::size_t held_out = horizon + step * (count - 1);
      if (length <= held_out) {
        fail(ErrorCode::invalid_argument,
             "series {} has {} values and {} windows hold out {}; expected more values than that",
             index, length, count, held_out);
      }
      for (std::size_t w = 0; w < count; ++w) {
        cuts.push_back({index, length - held_out + w * step, horizon});
      }
      if (cuts.size() > limits.max_series) {
        fail(ErrorCode::invalid_argument, "there are more than {} windows in all",
             limits.max_series);
      }
    }
    windows = make_windows(prepared, request, cuts, limits);
  }
  if (prepared.bytes_too_large_here > 0) return prepared;
  prepared.write_answer =
      answer_writer(request, std::move(windows),
                    [](io::JsonWriter& json, const HistoryWindows& made, const ForecastAnswer&) {
                      write_numbers(json, "sizes", made.sizes);
                      write_numbers(json, "idxs", made.idxs);
                    });
  return prepared;
}

PreparedRequest prepare_nixtla_anomaly_detection(const Json& body, const RequestLimits& limits) {
  Fields fields(body, "");
  NixtlaRequest request = read_common(fields, limits);
  fields.finish();
  refuse_multivariate(request);
  if (request.bands.empty()) {
    Json usual;
    usual.kind = Json::Kind::integer;
    usual.integer = 99;
    usual.real = 99;
    read_levels(usual, request);
  }
  PreparedRequest prepared{.options = request.options};
  HistoryWindows windows = cover_history(prepared, request, limits);
  if (prepared.bytes_too_large_here > 0) return prepared;
  std::vector<float> actual;
  for (const std::vector<float>& y : request.y) actual.insert(actual.end(), y.begin(), y.end());
  prepared.write_answer = answer_writer(
      request, std::move(windows),
      [band = request.bands.front(), actual = std::move(actual)](
          io::JsonWriter& json, const HistoryWindows& made, const ForecastAnswer& answer) {
        write_numbers(json, "sizes", made.sizes);
        write_anomalies(json, made, band, actual, answer);
      });
  return prepared;
}

std::string nixtla_model_params(const ModelFacts& facts) {
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object().key("detail").begin_object();
  json.field("input_size", ForecastOptions().max_context).field("horizon", history_window(facts));
  json.end_object().end_object();
  return json.take();
}

}  // namespace toto::server
