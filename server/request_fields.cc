#include "request_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"
#include "io/csv.h"

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

std::vector<double> levels_of(const Json& value, const std::string& where) {
  std::vector<double> levels;
  const auto add = [&](double level) {
    if (!(level > 0 && level < 1)) {
      fail(ErrorCode::invalid_argument, "{} holds {}, expected levels strictly between 0 and 1",
           where, level);
    }
    levels.push_back(level);
  };
  constexpr std::size_t kMostLevels = 1000;
  if (value.kind == Json::Kind::string) {
    std::string_view rest = value.string;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view part = trimmed(rest.substr(0, comma));
      double level = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), level);
      if (error != std::errc() || end != part.data() + part.size()) {
        fail(ErrorCode::invalid_argument, "{} holds {}, expected levels such as \"0.1,0.5,0.9\"",
             where, quoted(part));
      }
      add(level);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  } else {
    for (const Json& item : list_of(value, where)) add(number_of(item, where));
  }
  if (levels.size() > kMostLevels) {
    fail(ErrorCode::invalid_argument, "{} has {} levels, expected at most {}", where, levels.size(),
         kMostLevels);
  }
  return levels;
}

namespace {

// Prefixes the library parser's error with the field's name.
template <typename Parse>
auto parse_field(const Json& value, const std::string& where, const Parse& parse) {
  const std::string text = text_of(value, where);
  try {
    return parse(text);
  } catch (const Error& error) {
    fail(ErrorCode::invalid_argument, "{}: {}", where, error.what());
  }
}

}  // namespace

void take_horizon(Fields& fields, std::string_view name, const RequestLimits& limits,
                  ForecastOptions& options) {
  const Json* value = fields.take(name);
  if (value == nullptr) return;
  options.horizon =
      static_cast<int>(whole_number(*value, fields.where(name), 1, limits.max_horizon));
}

void take_quantiles(Fields& fields, std::string_view name, ForecastOptions& options) {
  if (const Json* value = fields.take(name)) {
    options.quantiles = levels_of(*value, fields.where(name));
  }
}

void take_samples(Fields& fields, std::string_view name, const RequestLimits& limits,
                  ForecastOptions& options) {
  const Json* value = fields.take(name);
  if (value == nullptr) return;
  options.num_samples =
      static_cast<int>(whole_number(*value, fields.where(name), 1, limits.max_samples));
}

void take_seed(Fields& fields, ForecastOptions& options) {
  if (const Json* value = fields.take("seed")) {
    options.seed = static_cast<std::uint64_t>(
        whole_number(*value, fields.where("seed"), 0, std::numeric_limits<std::int64_t>::max()));
  }
}

void take_options(Fields& fields, const RequestLimits& limits, ForecastOptions& options) {
  take_horizon(fields, "horizon", limits, options);
  if (const Json* value = fields.take("context")) {
    options.max_context = static_cast<int>(
        whole_number(*value, fields.where("context"), 1, std::numeric_limits<int>::max()));
  }
  take_quantiles(fields, "quantiles", options);
  take_samples(fields, "samples", limits, options);
  if (const Json* value = fields.take("decode")) {
    options.decode = parse_field(*value, fields.where("decode"), parse_decode);
  }
  if (const Json* value = fields.take("missing")) {
    options.missing = parse_field(*value, fields.where("missing"), parse_missing);
  }
  if (const Json* value = fields.take("point")) {
    options.point = parse_field(*value, fields.where("point"), parse_point);
  }
  take_seed(fields, options);
  if (const Json* value = fields.take("independent_streams")) {
    options.independent_streams = flag_of(*value, fields.where("independent_streams"));
  }
  if (const Json* value = fields.take("emit")) {
    if (text_of(*value, fields.where("emit")) != "samples") {
      fail(ErrorCode::invalid_argument, "{} is {}, expected \"samples\"", fields.where("emit"),
           io::described(*value));
    }
    options.keep_samples = true;
  }
}

HttpResponse json_response(io::JsonWriter& json) { return {.body = json.take()}; }

void write_values(io::JsonWriter& json, const float* values, std::size_t count) {
  json.begin_array();
  for (std::size_t i = 0; i < count; ++i) json.value(values[i]);
  json.end_array();
}

}  // namespace toto::server
