#include "protocol_series.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tables/series_file.h"

namespace toto::server {
namespace {

using io::Json;

// In the answer: a time, a value, quotes and commas.
constexpr std::size_t kBytesPerPoint = 48;

std::vector<std::string> texts_of(const Json& value, const std::string& where) {
  std::vector<std::string> texts;
  for (const Json& item : list_of(value, where)) texts.push_back(name_of(item, where));
  return texts;
}

// The valid names for "columns": for bars every price, not only the default close.
std::vector<std::string> columns_of(const tables::InputData& data, std::string_view csv) {
  if (data.format != tables::InputFormat::csv_ohlcv) return data.columns;
  io::MemorySource source(csv);
  std::vector<std::string> names = tables::header_names(io::TextInput(source, data.name));
  std::erase(names, data.time_name);
  std::erase_if(names, [](const std::string& name) { return equal_ignoring_case(name, "symbol"); });
  return names;
}

// The client knows the file.
std::vector<std::string> without_file(std::vector<std::string> warnings, const std::string& name) {
  for (std::string& warning : warnings) {
    if (warning.starts_with(name + ": ")) warning.erase(0, name.size() + 2);
  }
  return warnings;
}

void write_series(io::JsonWriter& json, const tables::InputSeries& series) {
  const tables::TimeAxis& axis = *series.axis;
  json.begin_object().field("id", series.id);
  // Step numbers have no frequency to send back with a forecast request.
  if (axis.frequency.unit != tables::Frequency::Unit::unknown && !axis.style.steps) {
    json.field("freq", tables::name_of(axis.frequency, false));
  }
  if (!axis.times.empty()) {
    json.key("timestamps").begin_array();
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      json.value(tables::format_time(series.time(i), axis.style));
    }
    json.end_array();
  }
  json.key("values");
  write_values(json, series.values.data(), series.values.size());
  json.end_object();
}

}  // namespace

std::string series_json(const Json& body, const RequestLimits& limits) {
  Fields fields(body, "");
  const std::string csv = text_of(fields.need("csv"), "csv");
  std::string name = "csv";
  if (const Json* value = fields.take("name")) name = text_of(*value, "name");
  if (!tables::name_complaint(name).empty()) {
    fail(ErrorCode::invalid_argument, "name is {}, expected the name of a file", quoted(name));
  }
  tables::ReadOptions options;
  if (const Json* value = fields.take("columns")) options.columns = texts_of(*value, "columns");
  if (const Json* value = fields.take("freq")) options.frequency = text_of(*value, "freq");
  fields.finish();

  io::MemorySource source(csv);
  const tables::InputData data = tables::read_series(source, name, options);
  std::size_t points = 0;
  for (const tables::InputSeries& series : data.series) points += series.values.size();
  if (data.series.size() > limits.max_series || points * kBytesPerPoint > limits.max_answer_bytes) {
    fail(ErrorCode::invalid_argument,
         "{}: {} series with {} values are more than one answer holds, expected at most {} series "
         "and {} values; split the file",
         name, data.series.size(), points, limits.max_series,
         limits.max_answer_bytes / kBytesPerPoint);
  }
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object().field("format", tables::name_of(data.format));
  json.field("description", data.description);
  write_texts(json, "columns", columns_of(data, csv));
  write_texts(json, "warnings", without_file(data.warnings, name));
  json.key("series").begin_array();
  for (const tables::InputSeries& series : data.series) write_series(json, series);
  json.end_array().end_object();
  return json.take();
}

}  // namespace toto::server
