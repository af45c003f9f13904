// Writes forecasts as JSON, JSON lines, CSV, or a table for the terminal. Output is streamed:
// forecasts are not copied, and memory holds neither all of them nor the whole text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "toto/toto.h"

namespace toto::tables {

// The engine that produced a result; part of every report.
struct EngineBlock {
  std::string version = {};
  std::string model = {};
  bool trained = true;
  std::string weights_sha256 = {};
  std::string config_sha256 = {};  // of config.json
  std::string mode = {};
  std::string dtype = {};
  std::string isa = {};
  int threads = 0;
  std::uint64_t seed = 0;
  std::int64_t replans = 0;
  bool has_paths = true;  // false: the mean is the median, and samples are draws of each step
};
EngineBlock describe(const Engine& engine, std::string model, std::uint64_t seed);
void write_engine(io::JsonWriter& json, const EngineBlock& engine);  // the object, without its key

// One series or one variate of a series: views of data that the caller keeps alive.
struct ForecastEntry {
  std::string_view id = {};
  int context_length = 0;
  int exact_steps = 0;
  int num_paths = 0;                                   // 0: none were simulated
  double scale = 1;                                    // Forecast::scale of the variate
  std::span<const std::string> timestamps = {};        // [step]
  std::span<const float> mean = {};                    // [step]
  std::span<const float> median = {};                  // [step]
  std::span<const float> point = {};                   // [step], or empty: not written
  std::vector<std::span<const float>> quantiles = {};  // [level][step]
  std::span<const float> samples = {};                 // [sample][step], or empty: not written
};
// Variate `variate` of a forecast, with its samples if it has any; `point` stays empty.
ForecastEntry make_entry(const Forecast& forecast, int variate, std::string_view id,
                         std::span<const std::string> timestamps);

// Common to all series of an answer.
struct ForecastHeader {
  EngineBlock engine = {};
  int horizon = 0;
  std::vector<double> quantiles = {};  // the levels, in the order of ForecastEntry::quantiles
  std::vector<std::string> warnings = {};
  // For the terminal table: the text before each id ("AAPL" in "AAPL close: ..."), and the name of
  // the point column; empty: no such column.
  std::string heading = {};
  std::string point_name = {};
};

// The shortest text that reads back as the level: "0.1".
std::string quantile_name(double level);

using TextSink = std::function<void(std::string_view)>;

// Writes an answer series by series; an entry may be released once it is added. Not thread-safe.
class ForecastWriter {
 public:
  ForecastWriter() = default;
  ForecastWriter(const ForecastWriter&) = delete;
  ForecastWriter& operator=(const ForecastWriter&) = delete;
  virtual ~ForecastWriter() = default;
  virtual void add(const ForecastEntry& entry) = 0;
  virtual void finish(const Timings& timings) = 0;  // milliseconds; nothing is added afterwards
};

// By the extension of `path`: .json, .jsonl or .csv; otherwise Error(invalid_argument). Call it
// before any work is done.
enum class OutputFormat { json, jsonl, csv };
OutputFormat output_format(std::string_view path);

// JSON is one object. JSON lines have one line per series: its entry of the JSON form followed by
// the engine block. CSV is `unique_id,ds,mean,0.1,...`; a missing value is an empty cell.
std::unique_ptr<ForecastWriter> make_file_writer(OutputFormat format, ForecastHeader header,
                                                 TextSink sink);

// A table for the terminal: the time, the mean, the point forecast if there is one, and up to three
// quantiles with aligned decimal points and six digits of the largest value; files have all digits.
// Long horizons and long lists of series are cut, with a note. Control characters in ids are
// removed.
std::unique_ptr<ForecastWriter> make_table_writer(ForecastHeader header, TextSink sink);

}  // namespace toto::tables
