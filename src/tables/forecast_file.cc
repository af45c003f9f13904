#include "tables/forecast_file.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/csv.h"

namespace toto::tables {
namespace {

// Buffers text up to 64 kB, so that calls of the sink, perhaps writes to disk, are rare.
class ChunkedText {
 public:
  explicit ChunkedText(TextSink sink) : sink_(std::move(sink)) {}
  void add(std::string_view text) {
    pending_ += text;
    if (pending_.size() >= kChunkBytes) flush();
  }
  void flush() {
    if (!pending_.empty()) sink_(pending_);
    pending_.clear();
  }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 16;
  TextSink sink_;
  std::string pending_;
};

void write_values(io::JsonWriter& json, std::string_view name, std::span<const float> values) {
  json.key(name).begin_array();
  for (const float value : values) json.value(value);
  json.end_array();
}

// The fields of one series in reading order; drained after each field that may be large.
void write_entry_fields(io::JsonWriter& json, ChunkedText& out, const ForecastEntry& entry,
                        std::span<const double> levels) {
  json.field("id", entry.id).field("context_length", entry.context_length);
  json.field("exact_steps", entry.exact_steps).key("paths");
  entry.num_paths > 0 ? json.value(entry.num_paths) : json.null();
  json.field("scale", entry.scale);
  if (!entry.timestamps.empty()) json.field("start", entry.timestamps.front());
  json.key("timestamps").begin_array();
  for (const std::string& time : entry.timestamps) json.value(time);
  json.end_array();
  out.add(json.drain());
  write_values(json, "mean", entry.mean);
  write_values(json, "median", entry.median);
  if (!entry.point.empty()) write_values(json, "point", entry.point);
  out.add(json.drain());
  json.key("quantiles").begin_object();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    write_values(json, quantile_name(levels[i]), entry.quantiles[i]);
    out.add(json.drain());
  }
  json.end_object();
  if (entry.samples.empty()) return;
  json.key("samples").begin_array();
  const std::size_t horizon = entry.mean.size();
  for (std::size_t first = 0; first < entry.samples.size(); first += horizon) {
    json.begin_array();
    for (const float value : entry.samples.subspan(first, horizon)) json.value(value);
    json.end_array();
    out.add(json.drain());
  }
  json.end_array();
}

// Rounds a time in milliseconds to microseconds, to keep noise digits out of the file.
double to_microseconds(double milliseconds) { return std::round(milliseconds * 1000) / 1000; }

// The shortest text that reads back as the same float; nothing for NaN.
void append_number(std::string& text, float value) {
  if (!std::isfinite(value)) return;
  std::array<char, 32> buffer;  // the longest float has 15 characters
  text.append(buffer.data(), std::to_chars(buffer.begin(), buffer.end(), value).ptr);
}

// One object: the engine block first, then the series, then the timings.
class JsonForecastWriter final : public ForecastWriter {
 public:
  JsonForecastWriter(const ForecastHeader& header, TextSink sink)
      : quantiles_(header.quantiles), warnings_(header.warnings), out_(std::move(sink)) {
    json_.begin_object().key("engine");
    write_engine(json_, header.engine);
    json_.field("horizon", header.horizon).key("series").begin_array();
  }
  void add(const ForecastEntry& entry) override {
    json_.begin_object();
    write_entry_fields(json_, out_, entry, quantiles_);
    json_.end_object();
  }
  void finish(const Timings& timings) override {
    json_.end_array().key("timings_ms").begin_object();
    json_.field("load", to_microseconds(timings.load))
        .field("prefill", to_microseconds(timings.prefill))
        .field("decode", to_microseconds(timings.decode))
        .field("total", to_microseconds(timings.total));
    write_texts(json_.end_object(), "warnings", warnings_);
    json_.end_object();
    out_.add(json_.take());
    out_.flush();
  }

 private:
  std::vector<double> quantiles_;
  std::vector<std::string> warnings_;
  ChunkedText out_;
  io::JsonWriter json_;
};

// One compact line per series, each with its own engine block.
class JsonLinesForecastWriter final : public ForecastWriter {
 public:
  JsonLinesForecastWriter(ForecastHeader header, TextSink sink)
      : header_(std::move(header)), out_(std::move(sink)) {}
  void add(const ForecastEntry& entry) override {
    json_.begin_object();
    write_entry_fields(json_, out_, entry, header_.quantiles);
    json_.key("engine");
    write_engine(json_, header_.engine);
    json_.end_object();
    out_.add(json_.take());
  }
  void finish(const Timings&) override { out_.flush(); }

 private:
  ForecastHeader header_;
  ChunkedText out_;
  io::JsonWriter json_{io::JsonLayout::compact};
};

// A long table that `toto forecast` and Nixtla's tools read back.
class CsvForecastWriter final : public ForecastWriter {
 public:
  CsvForecastWriter(const ForecastHeader& header, TextSink sink) : out_(std::move(sink)) {
    std::string names = "unique_id,ds,mean";
    for (const double level : header.quantiles) names += "," + quantile_name(level);
    out_.add(names += '\n');
  }
  void add(const ForecastEntry& entry) override {
    const std::string id = io::csv_field(entry.id);
    std::string row;
    for (std::size_t step = 0; step < entry.mean.size(); ++step) {
      row = id;
      row += ',';
      row += entry.timestamps[step];
      row += ',';
      append_number(row, entry.mean[step]);
      for (const std::span<const float> quantile : entry.quantiles) {
        row += ',';
        append_number(row, quantile[step]);
      }
      out_.add(row += '\n');
    }
  }
  void finish(const Timings&) override { out_.flush(); }

 private:
  ChunkedText out_;
};

}  // namespace

EngineBlock describe(const Engine& engine, std::string model, std::uint64_t seed) {
  const EngineOptions& options = engine.options();
  return {.version = std::string(version()),
          .model = std::move(model),
          .trained = engine.model().trained,
          .weights_sha256 = engine.model().weights_sha256,
          .config_sha256 = engine.model().config_sha256,
          .mode = std::string(name_of(options.mode)),
          .dtype = std::string(name_of(options.dtype)),
          .isa = std::string(name_of(options.isa)),
          .threads = options.threads,
          .seed = seed,
          .replans = engine.replans(),
          .has_paths = engine.model().facts.can_sample};
}

void write_engine(io::JsonWriter& json, const EngineBlock& engine) {
  json.begin_object()
      .field("version", engine.version)
      .field("model", engine.model)
      .field("trained", engine.trained)
      .field("weights_sha256", engine.weights_sha256)
      .field("config_sha256", engine.config_sha256)
      .field("mode", engine.mode)
      .field("dtype", engine.dtype)
      .field("isa", engine.isa)
      .field("threads", engine.threads)
      .field("seed", engine.seed)
      .field("replans", engine.replans);
  if (!engine.has_paths) json.field("mean_is", "median").field("samples_are", "marginal");
  json.end_object();
}

ForecastEntry make_entry(const Forecast& forecast, int variate, std::string_view id,
                         std::span<const std::string> timestamps) {
  const auto horizon = static_cast<std::size_t>(forecast.horizon);
  const auto num_variates = static_cast<std::size_t>(forecast.num_variates);
  const auto row = static_cast<std::size_t>(variate);
  const auto steps = [&](const std::vector<float>& values, std::size_t index) {
    return std::span(values).subspan(index * horizon, horizon);
  };
  ForecastEntry entry{.id = id,
                      .context_length = forecast.context_length,
                      .exact_steps = forecast.exact_steps,
                      .num_paths = forecast.num_paths,
                      .scale = forecast.scale.empty() ? 1 : forecast.scale[row],
                      .timestamps = timestamps,
                      .mean = steps(forecast.mean, row),
                      .median = steps(forecast.median, row)};
  const std::size_t num_levels = forecast.quantiles.size() / (num_variates * horizon);
  for (std::size_t level = 0; level < num_levels; ++level) {
    entry.quantiles.push_back(steps(forecast.quantiles, level * num_variates + row));
  }
  const std::size_t share = forecast.samples.size() / num_variates;
  entry.samples = std::span(forecast.samples).subspan(row * share, share);
  return entry;
}

std::string quantile_name(double level) {
  std::array<char, 32> buffer;
  return {buffer.data(), std::to_chars(buffer.begin(), buffer.end(), level).ptr};
}

OutputFormat output_format(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const std::size_t dot = name.rfind('.');
  const std::string_view extension = dot == std::string_view::npos ? "" : name.substr(dot);
  if (equal_ignoring_case(extension, ".json")) return OutputFormat::json;
  if (equal_ignoring_case(extension, ".jsonl")) return OutputFormat::jsonl;
  if (equal_ignoring_case(extension, ".csv")) return OutputFormat::csv;
  fail(ErrorCode::invalid_argument, "the output {} ends in {}, expected .json, .jsonl or .csv",
       quoted(path), extension.empty() ? "no extension" : quoted(extension));
}

std::unique_ptr<ForecastWriter> make_file_writer(OutputFormat format, ForecastHeader header,
                                                 TextSink sink) {
  switch (format) {
    case OutputFormat::jsonl:
      return std::make_unique<JsonLinesForecastWriter>(std::move(header), std::move(sink));
    case OutputFormat::csv:
      return std::make_unique<CsvForecastWriter>(header, std::move(sink));
    case OutputFormat::json:
      break;
  }
  return std::make_unique<JsonForecastWriter>(header, std::move(sink));
}

}  // namespace toto::tables
