// The fields of a JSON request, read with their types and ranges checked, and values written back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "prepared_request.h"
#include "toto/toto.h"

namespace toto::server {

// All errors below are invalid_argument and begin with `where`, the name of the field.

// The members of an object. Each is taken once; finish() reports those left over as misspelled.
class Fields {
 public:
  Fields(const io::Json& object, std::string where);
  const io::Json* take(std::string_view name);  // nullptr if absent or null
  const io::Json& need(std::string_view name);
  bool has(std::string_view name) const;  // whether it is there and not null
  std::string where(std::string_view name) const;
  void ignore(std::string_view name) { take(name); }
  void finish() const;  // Error for the first field not taken

 private:
  const io::Json& object_;
  std::string where_;
  std::vector<std::string_view> known_;
};

std::string text_of(const io::Json& value, const std::string& where);
// A name that answers, pages and logs repeat: 1 to 4,096 bytes of UTF-8, not blank, no controls.
std::string name_of(const io::Json& value, const std::string& where);
void check_name(std::string_view name, const std::string& where);
std::string id_of(const io::Json* value, const std::string& where);  // or empty: none
bool flag_of(const io::Json& value, const std::string& where);
std::int64_t whole_number(const io::Json& value, const std::string& where, std::int64_t low,
                          std::int64_t high);
double number_of(const io::Json& value, const std::string& where);
const std::vector<io::Json>& list_of(const io::Json& value, const std::string& where);
// Rounds to float32; null is missing (NaN). False for anything else, or beyond float32.
bool read_value(const io::Json& item, float& value);
std::vector<float> values_of(const io::Json& value, const std::string& where);
std::vector<double> levels_of(const io::Json& value,
                              const std::string& where);  // list or "0.1,0.9"

// Sets an option if `fields` has it; protocols use different names.
void take_horizon(Fields& fields, std::string_view name, const RequestLimits& limits,
                  ForecastOptions& options);
void take_quantiles(Fields& fields, std::string_view name, ForecastOptions& options);
void take_samples(Fields& fields, std::string_view name, const RequestLimits& limits,
                  ForecastOptions& options);
void take_seed(Fields& fields, ForecastOptions& options);
// Every option of the table that HTTP has (settings/forecast_settings.cc), by its own name.
void take_options(Fields& fields, const RequestLimits& limits, ForecastOptions& options);

HttpResponse json_response(io::JsonWriter& json);
void write_values(io::JsonWriter& json, const float* values, std::size_t count);

}  // namespace toto::server
