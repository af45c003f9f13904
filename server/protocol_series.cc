#include "protocol_series.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "io/series_file.h"

namespace toto::server {
namespace {

using io::Json;

// Of the answer's text: a time, a value, quotes and commas.
constexpr std::size_t kBytesPerPoint = 48;

// It would break the sentence that names the file.
bool is_control(char c) { return static_cast<unsigned char>(c) < ' '; }

std::vector<std::string> texts_of(const Json& value, const std::string& where) {
  std::vector<std::string> texts;
  for (const Json& item : list_of(value, where)) texts.push_back(text_of(item, where));
  return texts;
}

// What "columns" may name: every price of bars, not the close alone that is read by default.
std::vector<std::string> columns_of(const io::InputData& data, std::string_view csv) {
  if (data.format != io::InputFormat::csv_ohlcv) return data.columns;
  io::MemorySource source(csv);
  std::vector<std::string> names = io::header_names(io::TextInput(source, data.name));
  std::erase(names, data.time_name);
  std::erase_if(names,
                [](const std::string& name) { return io::equal_ignoring_case(name, "symbol"); });
  return names;
}

void write_texts(io::JsonWriter& json, std::string_view name,
                 const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_series(io::JsonWriter& json, const io::InputSeries& series) {
  const io::TimeAxis& axis = *series.axis;
  json.begin_object().field("id", series.id);
  // A step number has no frequency that a forecast could be asked for with.
  if (axis.frequency.unit != io::Frequency::Unit::unknown && !axis.style.steps) {
    json.field("freq", io::name_of(axis.frequency, false));
  }
  if (!axis.times.empty()) {
    json.key("timestamps").begin_array();
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      json.value(io::format_time(series.time(i), axis.style));
    }
    json.end_array();
  }
  json.key("values");
  write_values(json, series.values.data(), series.values.size());
  json.end_object();
}

}  // namespace

std::string series_json(const Json& body, const Limits& limits) {
  Fields fields(body, "");
  const std::string csv = text_of(fields.need("csv"), "csv");
  std::string name = "csv";
  if (const Json* value = fields.take("name")) name = text_of(*value, "name");
  if (!io::name_complaint(name).empty() || std::any_of(name.begin(), name.end(), is_control)) {
    fail(ErrorCode::invalid_argument, "name is {}, expected the name of a file", io::quoted(name));
  }
  io::ReadOptions options;
  if (const Json* value = fields.take("columns")) options.columns = texts_of(*value, "columns");
  if (const Json* value = fields.take("freq")) options.frequency = text_of(*value, "freq");
  fields.finish();

  io::MemorySource source(csv);
  const io::InputData data = io::read_series(source, name, options);
  std::size_t points = 0;
  for (const io::InputSeries& series : data.series) points += series.values.size();
  if (data.series.size() > limits.max_series || points * kBytesPerPoint > limits.max_answer_bytes) {
    fail(ErrorCode::invalid_argument,
         "{}: {} series with {} values are more than one answer holds, expected at most {} series "
         "and {} values; split the file",
         name, data.series.size(), points, limits.max_series,
         limits.max_answer_bytes / kBytesPerPoint);
  }
  io::JsonWriter json(io::JsonLayout::compact);
  json.begin_object().field("format", io::name_of(data.format));
  json.field("description", data.description);
  write_texts(json, "columns", columns_of(data, csv));
  write_texts(json, "warnings", data.warnings);
  json.key("series").begin_array();
  for (const io::InputSeries& series : data.series) write_series(json, series);
  json.end_array().end_object();
  return json.take();
}

}  // namespace toto::server
