// What every protocol turns a request into: series and options for the engine, and a way to write
// the answer. JSON and tensors end here.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "message.h"
#include "scheduler.h"
#include "toto/toto.h"

namespace toto::server {

// What a request may ask for, checked before memory is taken, and what it gets if it does not ask.
struct Limits {
  std::size_t max_series = 100'000;  // of a request
  int max_horizon = kMaxHorizon;
  int max_samples = kMaxSamples;
  std::size_t max_answer_bytes = std::size_t{256} << 20;  // of numbers, before they become text
  std::size_t max_body = std::size_t{256} << 20;          // decompressed
  std::size_t max_memory = std::size_t{256} << 20;        // of series and paths
  std::size_t max_here = std::numeric_limits<std::size_t>::max();  // of series: see TooLargeHere
  MemoryShare* memory = nullptr;  // what they and the answer are charged to, if anybody counts
  int patch_size = 64;            // of the model: what it forecasts in one go
  std::uint64_t seed = 0;
};

// Thrown instead of making series of more bytes than the thread at hand may be held up by: whoever
// plans must do so on another one. A body says nothing about it, windows are many times its size.
struct TooLargeHere {
  std::size_t bytes = 0;
};

struct Plan {
  std::vector<Series> series = {};
  ForecastOptions options = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::function<Response(const Answer&)> answer = {};
};

// All errors below are invalid_argument and begin with `where`: the name of the field.

// The members of an object, each used once: what is left over was misspelled.
class Fields {
 public:
  Fields(const io::Json& object, std::string where);
  const io::Json* take(std::string_view name);  // nullptr if absent or null
  const io::Json& need(std::string_view name);
  std::string where(std::string_view name) const;
  void ignore(std::string_view name) { take(name); }
  void finish() const;  // complains about the first field nobody took

 private:
  const io::Json& object_;
  std::string where_;
  std::vector<std::string_view> known_;
};

std::string text_of(const io::Json& value, const std::string& where);
bool flag_of(const io::Json& value, const std::string& where);
std::int64_t whole_number(const io::Json& value, const std::string& where, std::int64_t low,
                          std::int64_t high);
double number_of(const io::Json& value, const std::string& where);
const std::vector<io::Json>& list_of(const io::Json& value, const std::string& where);
// Rounded to float32; null is missing (NaN). False if it is neither that nor a number within it.
bool read_value(const io::Json& item, float& value);
std::vector<float> values_of(const io::Json& value, const std::string& where);
std::vector<double> levels_of(const io::Json& value,
                              const std::string& where);  // list or "0.1,0.9"

// An option, if `fields` has one of this name: protocols call them differently.
void take_horizon(Fields& fields, std::string_view name, const Limits& limits,
                  ForecastOptions& options);
void take_quantiles(Fields& fields, std::string_view name, ForecastOptions& options);
void take_samples(Fields& fields, std::string_view name, const Limits& limits,
                  ForecastOptions& options);
void take_seed(Fields& fields, ForecastOptions& options);
// The options of the command line, as far as `fields` has them: horizon, context, quantiles,
// samples, decode, point, missing, seed, independent_streams, emit.
void take_options(Fields& fields, const Limits& limits, ForecastOptions& options);

// What a series will take, known before it is made.
struct SeriesShape {
  std::size_t num_variates = 1, length = 0, num_exogenous = 0;
};
SeriesShape shape_of(const Series& series);

// Error unless series of these shapes, the paths drawn for them and the answer fit the limits, and
// the memory that all requests share: then they are charged to it. Error(overloaded) if others have
// it.
void check_size(const Limits& limits, std::span<const SeriesShape> shapes,
                const ForecastOptions& options);

// As the command line does: what is missing before the first value is not there.
void drop_leading_missing(std::vector<float>& values);

Response json_response(io::JsonWriter& json);
void write_values(io::JsonWriter& json, const float* values, std::size_t count);

}  // namespace toto::server
