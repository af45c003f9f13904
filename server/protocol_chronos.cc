#include "protocol_chronos.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tables/forecast_file.h"
#include "tables/timestamps.h"

namespace toto::server {
namespace {

using io::Json;

// The parts of an input that its answer repeats.
struct ChronosInput {
  std::string item_id = {};
  bool has_id = false;
  bool nested = false;  // the target was a list of lists, and so is every answer
  std::size_t num_targets = 1;
};

// {"name": [...], ...}, each of `length` values.
std::map<std::string, std::vector<float>> read_covariates(const Json* value,
                                                          const std::string& where,
                                                          std::size_t length) {
  std::map<std::string, std::vector<float>> covariates;
  if (value == nullptr) return covariates;
  const Fields check(*value, where);
  for (const Json::Member& member : value->object) {
    check_name(member.first, "a name in " + where);
    std::vector<float> values = values_of(member.second, check.where(member.first));
    if (values.size() != length) {
      fail(ErrorCode::invalid_argument, "{} has {} values, expected {}", check.where(member.first),
           values.size(), length);
    }
    covariates[member.first] = std::move(values);
  }
  return covariates;
}

// The answer has no times, but a start that is none is a mistake of the client.
void check_time(const Json& value, const std::string& where) {
  tables::TimeColumn clock;
  tables::Ticks time = 0;
  const std::string complaint = clock.read(text_of(value, where), time);
  if (!complaint.empty()) fail(ErrorCode::invalid_argument, "{}: {}", where, complaint);
}

void append(std::vector<float>& to, const std::vector<float>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

// Fills `series`: targets first, then past covariates, then those with a known future.
ChronosInput read_input(const Json& value, const std::string& where, int horizon, Series& series) {
  Fields fields(value, where);
  ChronosInput input;
  input.item_id = id_of(fields.take("item_id"), fields.where("item_id"));
  input.has_id = !input.item_id.empty();
  const Json& target = fields.need("target");
  const std::vector<Json>& items = list_of(target, fields.where("target"));
  std::size_t length = items.size();
  input.nested = !items.empty() && items.front().kind == Json::Kind::array;
  if (input.nested) {
    input.num_targets = items.size();
    length = items.front().array.size();
    for (const Json& row : items) {
      const std::vector<float> values = values_of(row, fields.where("target"));
      if (values.size() != length) {
        fail(ErrorCode::invalid_argument, "{} has rows of {} and {} values, expected one length",
             fields.where("target"), length, values.size());
      }
      append(series.values, values);
    }
  } else {
    series.values = values_of(target, fields.where("target"));
  }
  if (const Json* start = fields.take("start")) check_time(*start, fields.where("start"));
  auto past =
      read_covariates(fields.take("past_covariates"), fields.where("past_covariates"), length);
  const auto future =
      read_covariates(fields.take("future_covariates"), fields.where("future_covariates"),
                      static_cast<std::size_t>(horizon));
  fields.finish();
  for (const auto& [name, values] : future) {
    if (!past.contains(name)) {
      fail(ErrorCode::invalid_argument,
           "{} has {} and past_covariates has not, expected its history too",
           fields.where("future_covariates"), quoted(name));
    }
  }
  for (const auto& [name, values] : past) {
    if (!future.contains(name)) append(series.values, values);
  }
  for (const auto& [name, values] : future) {
    append(series.values, past[name]);
    append(series.future_exogenous, values);
  }
  series.id = input.item_id;
  series.num_exogenous = static_cast<int>(future.size());
  series.num_variates = static_cast<int>(input.num_targets + past.size());
  if (series.num_variates == 1) drop_leading_missing(series.values);
  return input;
}

void write_rows(io::JsonWriter& json, const ChronosInput& input, const float* rows,
                std::size_t horizon) {
  if (!input.nested) return write_values(json, rows, horizon);
  json.begin_array();
  for (std::size_t i = 0; i < input.num_targets; ++i) {
    write_values(json, rows + i * horizon, horizon);
  }
  json.end_array();
}

}  // namespace

PreparedRequest prepare_chronos(const Json& body, const RequestLimits& limits) {
  Fields fields(body, "");
  PreparedRequest prepared;
  ForecastOptions& options = prepared.options;
  options.quantiles = {0.1, 0.5, 0.9};
  options.seed = limits.seed;
  const std::vector<Json>& items = list_of(fields.need("inputs"), "inputs");
  if (const Json* value = fields.take("parameters")) {
    Fields parameters(*value, "parameters");
    take_horizon(parameters, "prediction_length", limits, options);
    take_quantiles(parameters, "quantile_levels", options);
    take_samples(parameters, "num_samples", limits, options);
    take_seed(parameters, options);
    for (const char* name : {"freq", "batch_size", "cross_learning"}) parameters.ignore(name);
    parameters.finish();
  }
  fields.finish();
  if (items.size() > limits.max_series) {
    fail(ErrorCode::invalid_argument, "inputs has {} series, expected at most {}", items.size(),
         limits.max_series);
  }
  std::vector<ChronosInput> inputs;
  std::vector<SeriesShape> shapes;
  inputs.reserve(items.size());
  shapes.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    inputs.push_back(read_input(items[i], fmt::format("inputs[{}]", i), options.horizon,
                                prepared.series.emplace_back()));
    shapes.push_back(shape_of(prepared.series.back()));
  }
  prepared.bytes_too_large_here = check_size(limits, shapes, options);
  prepared.write_answer = [inputs = std::move(inputs),
                           levels = options.quantiles](const ForecastAnswer& answer) {
    io::JsonWriter json(io::JsonLayout::compact);
    json.begin_object().key("predictions").begin_array();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Forecast& forecast = answer.forecasts[i];
      const auto horizon = static_cast<std::size_t>(forecast.horizon);
      const std::size_t stride = static_cast<std::size_t>(forecast.num_variates) * horizon;
      json.begin_object().key("mean");
      write_rows(json, inputs[i], forecast.mean.data(), horizon);
      for (std::size_t q = 0; q < levels.size(); ++q) {
        json.key(tables::quantile_name(levels[q]));
        write_rows(json, inputs[i], forecast.quantiles.data() + q * stride, horizon);
      }
      if (inputs[i].has_id) json.field("item_id", inputs[i].item_id);
      json.end_object();
    }
    json.end_array().end_object();
    return json_response(json);
  };
  return prepared;
}

}  // namespace toto::server
