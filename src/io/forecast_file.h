// Forecasts out: JSON, JSON lines, CSV, and a table for people. Everything is streamed: the
// forecasts are never copied, and no output stands in memory as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "toto/toto.h"

namespace toto::io {

// Which engine made this: part of every report.
struct EngineBlock {
  std::string version = {};
  std::string model = {};
  bool trained = true;
  std::string weights_sha256 = {};
  std::string mode = {};
  std::string dtype = {};
  std::string isa = {};
  int threads = 0;
  std::uint64_t seed = 0;
  std::int64_t replans = 0;
};
void write_engine(JsonWriter& json, const EngineBlock& engine);  // the object, without its key

// One series, or one variate of one: views into what the caller keeps alive.
struct ForecastEntry {
  std::string_view id = {};
  int context_length = 0;
  std::span<const std::string> timestamps = {};        // [step]
  std::span<const float> mean = {};                    // [step]
  std::span<const float> median = {};                  // [step]
  std::span<const float> point = {};                   // [step], or empty: left out
  std::vector<std::span<const float>> quantiles = {};  // [level][step]
  std::span<const float> samples = {};                 // [sample][step], or empty: left out
};
// Variate `variate` of a forecast, with its samples if it has any; `point` stays empty.
ForecastEntry make_entry(const Forecast& forecast, int variate, std::string_view id,
                         std::span<const std::string> timestamps);

struct ForecastDocument {
  EngineBlock engine = {};
  int horizon = 0;
  std::vector<double> quantiles = {};  // the levels, in the order of ForecastEntry::quantiles
  std::vector<ForecastEntry> series = {};
  Timings timings = {};  // milliseconds
  // Of the table alone: what stands before each id ("AAPL" for "AAPL close: ..."), and the name of
  // the point column, without which there is none.
  std::string heading = {};
  std::string point_name = {};
};

// The shortest text that reads back as the level: "0.1".
std::string quantile_name(double level);

using TextSink = std::function<void(std::string_view)>;

void write_forecast_json(const ForecastDocument& document, const TextSink& sink);
// A line for each series: the entry of the JSON form, and the engine block behind it.
void write_forecast_jsonl(const ForecastDocument& document, const TextSink& sink);
// `unique_id,ds,mean,0.1,...`; a missing value is an empty cell.
void write_forecast_csv(const ForecastDocument& document, const TextSink& sink);
// Aligned columns: the time, the mean, the point forecast if there is one, and up to three
// quantiles, their decimal points below each other: six digits of the largest value, which is what
// a reader can use; a file has them all. Long horizons and long lists of series are cut short, with
// a note. Control characters in ids do not reach the terminal.
void write_forecast_table(const ForecastDocument& document, const TextSink& sink);

// By the extension of `path`: .json, .jsonl or .csv; else Error(invalid_argument), which a caller
// can have before any work is done.
enum class OutputFormat { json, jsonl, csv };
OutputFormat output_format(std::string_view path);
// The whole file or, after any failure, the one that was there before.
void write_forecast_file(const std::string& path, const ForecastDocument& document);

}  // namespace toto::io
