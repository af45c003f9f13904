#include "request_fields.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"
#include "io/csv.h"
#include "settings/forecast_settings.h"
#include "tables/series_table.h"

namespace toto::server {

using io::Json;

Fields::Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (object.kind != Json::Kind::object) {
    fail(ErrorCode::invalid_argument, "{} is {}, expected an object",
         where_.empty() ? "the body" : where_, io::described(object));
  }
}

std::string Fields::where(std::string_view name) const {
  return where_.empty() ? std::string(name) : fmt::format("{}.{}", where_, name);
}

const Json* Fields::take(std::string_view name) {
  known_.push_back(name);
  const Json* found = object_.find(name);
  return found == nullptr || found->kind == Json::Kind::null ? nullptr : found;
}

bool Fields::has(std::string_view name) const {
  const Json* found = object_.find(name);
  return found != nullptr && found->kind != Json::Kind::null;
}

const Json& Fields::need(std::string_view name) {
  if (const Json* found = take(name)) return *found;
  fail(ErrorCode::invalid_argument, "{} is missing", where(name));
}

void Fields::finish() const {
  for (const Json::Member& member : object_.object) {
    if (std::find(known_.begin(), known_.end(), member.first) != known_.end()) continue;
    fail(ErrorCode::invalid_argument, "there is no field {}{}", quoted(where(member.first)),
         did_you_mean(member.first, known_));
  }
}

std::string text_of(const Json& value, const std::string& where) {
  if (value.kind == Json::Kind::string) return value.string;
  fail(ErrorCode::invalid_argument, "{} is {}, expected text", where, io::described(value));
}

void check_name(std::string_view name, const std::string& where) {
  const std::string complaint = tables::name_complaint(name);
  if (!complaint.empty()) fail(ErrorCode::invalid_argument, "{} {}", where, complaint);
}

std::string name_of(const Json& value, const std::string& where) {
  std::string name = text_of(value, where);
  check_name(name, where);
  return name;
}

std::string id_of(const Json* value, const std::string& where) {
  const bool none =
      value == nullptr || (value->kind == Json::Kind::string && value->string.empty());
  return none ? std::string() : name_of(*value, where);
}

bool flag_of(const Json& value, const std::string& where) {
  if (value.kind == Json::Kind::boolean) return value.boolean;
  fail(ErrorCode::invalid_argument, "{} is {}, expected true or false", where,
       io::described(value));
}

std::int64_t whole_number(const Json& value, const std::string& where, std::int64_t low,
                          std::int64_t high) {
  if (value.kind == Json::Kind::integer && value.integer >= low && value.integer <= high) {
    return value.integer;
  }
  fail(ErrorCode::invalid_argument, "{} is {}, expected a whole number from {} to {}", where,
       io::described(value), low, high);
}

double number_of(const Json& value, const std::string& where) {
  if (value.is_number()) return value.real;
  fail(ErrorCode::invalid_argument, "{} is {}, expected a number", where, io::described(value));
}

const std::vector<Json>& list_of(const Json& value, const std::string& where) {
  if (value.kind == Json::Kind::array) return value.array;
  fail(ErrorCode::invalid_argument, "{} is {}, expected a list", where, io::described(value));
}

bool read_value(const Json& item, float& value) {
  value = std::numeric_limits<float>::quiet_NaN();
  return item.kind == Json::Kind::null || (item.is_number() && io::to_float(item.real, value));
}

std::vector<float> values_of(const Json& value, const std::string& where) {
  const std::vector<Json>& items = list_of(value, where);
  std::vector<float> values;
  values.reserve(items.size());
  for (const Json& item : items) {
    float number = 0;
    if (!read_value(item, number)) {
      fail(ErrorCode::invalid_argument, "{}[{}] is {}, expected a number within float32, or null",
           where, values.size(), io::described(item));
    }
    values.push_back(number);
  }
  return values;
}

namespace {

// The row of an option, read under the name that the protocol has for it.
void take_row(Fields& fields, std::string_view name, const settings::ForecastField& row,
              const RequestLimits& limits, settings::ForecastSettings& target) {
  const Json* value = fields.take(name);
  if (value == nullptr) return;
  settings::Given given{.value = *value, .origin = fields.where(name), .typed = true};
  if (row.name == "horizon") given.high = limits.max_horizon;
  if (row.name == "samples" || row.name == "paths") given.high = limits.max_samples;
  read(row, given, target);
}

void take_option(Fields& fields, std::string_view name, std::string_view option,
                 const RequestLimits& limits, ForecastOptions& options) {
  settings::ForecastSettings target{.options = std::move(options)};
  take_row(fields, name, *settings::find(settings::forecast_fields(), option), limits, target);
  options = std::move(target.options);
}

}  // namespace

std::vector<double> levels_of(const Json& value, const std::string& where) {
  settings::ForecastSettings target;
  read(*settings::find(settings::forecast_fields(), "quantiles"),
       {.value = value, .origin = where, .typed = true}, target);
  return target.options.quantiles;
}

void take_horizon(Fields& fields, std::string_view name, const RequestLimits& limits,
                  ForecastOptions& options) {
  take_option(fields, name, "horizon", limits, options);
}

void take_quantiles(Fields& fields, std::string_view name, ForecastOptions& options) {
  take_option(fields, name, "quantiles", {}, options);
}

void take_samples(Fields& fields, std::string_view name, const RequestLimits& limits,
                  ForecastOptions& options) {
  take_option(fields, name, "samples", limits, options);
}

void take_seed(Fields& fields, ForecastOptions& options) {
  take_option(fields, "seed", "seed", {}, options);
}

void take_options(Fields& fields, const RequestLimits& limits, ForecastOptions& options) {
  settings::ForecastSettings target{.options = std::move(options)};
  for (const settings::ForecastField& row : settings::forecast_fields()) {
    if ((row.doors & settings::kHttp) != 0) take_row(fields, row.name, row, limits, target);
  }
  options = std::move(target.options);
  settings::check_paths(options, fields.has("paths"), fields.has("samples"), "");
}

HttpResponse json_response(io::JsonWriter& json) { return {.body = json.take()}; }

void write_values(io::JsonWriter& json, const float* values, std::size_t count) {
  json.begin_array();
  for (std::size_t i = 0; i < count; ++i) json.value(values[i]);
  json.end_array();
}

}  // namespace toto::server
