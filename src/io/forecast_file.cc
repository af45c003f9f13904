#include "io/forecast_file.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/csv.h"

namespace toto::io {
namespace {

// Gathers text until there is enough of it that a call of the sink, perhaps a write to disk, is
// cheap.
class ChunkedText {
 public:
  explicit ChunkedText(const TextSink& sink) : sink_(sink) {}
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
  const TextSink& sink_;
  std::string pending_;
};

void write_values(JsonWriter& json, std::string_view name, std::span<const float> values) {
  json.key(name).begin_array();
  for (const float value : values) json.value(value);
  json.end_array();
}

// Fields of one series, in the order people read them, drained after each one that may be large.
void write_entry_fields(JsonWriter& json, ChunkedText& out, const ForecastEntry& entry,
                        std::span<const double> levels) {
  json.field("id", entry.id).field("context_length", entry.context_length);
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

double to_microseconds(double milliseconds) { return std::round(milliseconds * 1000) / 1000; }

void append_number(std::string& text, float value) {
  if (!std::isfinite(value)) return;
  std::array<char, 32> buffer;  // the longest float has 15 characters
  text.append(buffer.data(), std::to_chars(buffer.begin(), buffer.end(), value).ptr);
}

}  // namespace

void write_engine(JsonWriter& json, const EngineBlock& engine) {
  json.begin_object()
      .field("version", engine.version)
      .field("model", engine.model)
      .field("trained", engine.trained)
      .field("weights_sha256", engine.weights_sha256)
      .field("mode", engine.mode)
      .field("dtype", engine.dtype)
      .field("isa", engine.isa)
      .field("threads", engine.threads)
      .field("seed", engine.seed)
      .field("replans", engine.replans)
      .end_object();
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

void write_forecast_json(const ForecastDocument& document, const TextSink& sink) {
  JsonWriter json;
  ChunkedText out(sink);
  json.begin_object().key("engine");
  write_engine(json, document.engine);
  json.field("horizon", document.horizon).key("series").begin_array();
  for (const ForecastEntry& entry : document.series) {
    json.begin_object();
    write_entry_fields(json, out, entry, document.quantiles);
    json.end_object();
  }
  json.end_array().key("timings_ms").begin_object();
  json.field("load", to_microseconds(document.timings.load))
      .field("prefill", to_microseconds(document.timings.prefill))
      .field("decode", to_microseconds(document.timings.decode))
      .field("total", to_microseconds(document.timings.total));
  json.end_object().end_object();
  out.add(json.take());
  out.flush();
}

void write_forecast_jsonl(const ForecastDocument& document, const TextSink& sink) {
  ChunkedText out(sink);
  JsonWriter json(JsonLayout::compact);
  for (const ForecastEntry& entry : document.series) {
    json.begin_object();
    write_entry_fields(json, out, entry, document.quantiles);
    json.key("engine");
    write_engine(json, document.engine);
    json.end_object();
    out.add(json.take());
  }
  out.flush();
}

void write_forecast_csv(const ForecastDocument& document, const TextSink& sink) {
  ChunkedText out(sink);
  std::string row = "unique_id,ds,mean";
  for (const double level : document.quantiles) row += "," + quantile_name(level);
  out.add(row += '\n');
  for (const ForecastEntry& entry : document.series) {
    const std::string id = csv_field(entry.id);
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
      out.add(row += '\n');
    }
  }
  out.flush();
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

void write_forecast_file(const std::string& path, const ForecastDocument& document) {
  const OutputFormat format = output_format(path);
  AtomicFile file(path);
  const TextSink sink = [&file](std::string_view text) { file.write(text); };
  switch (format) {
    case OutputFormat::json:
      write_forecast_json(document, sink);
      break;
    case OutputFormat::jsonl:
      write_forecast_jsonl(document, sink);
      break;
    case OutputFormat::csv:
      write_forecast_csv(document, sink);
      break;
  }
  file.commit();
}

}  // namespace toto::io
