// `toto bench`: latency, throughput and memory of one shape.
#include <chrono>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/memory.h"
#include "base/process_memory.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "base/text.h"
#include "cli/allocation_count.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/settings/settings.h"
#include "io/json.h"
#include "validate/latency.h"

namespace toto::cli {
namespace {

struct BenchFlags {
  std::optional<std::string> json;
  bool mean = false;
  bool progress = false;
  Flags settings;
};

struct Shape {
  int context = 512;
  int horizon = 1;
  int samples = 128;  // 0: the point forecast only
  int batch = 1;
  int variates = 1;
  int warmup = 3;
  int repeat = 20;
};

struct Measured {
  std::vector<double> ms;  // one per run
  double first_ms = 0;     // the first forecast after loading
  std::int64_t replans = 0;
  std::uint64_t allocations = 0;
};

using ShapeRows = settings::Rows<Shape>;

// Limits of single values; read_shape checks that the series fit into memory together.
const std::vector<settings::Field<Shape>>& shape_rows() {
  constexpr double kMost = 1'000'000;
  static const std::vector<settings::Field<Shape>> rows = command_table<Shape>(
      {ShapeRows::number<&Shape::context>("context", 1, kMost).words("N", "points of history"),
       ShapeRows::number<&Shape::horizon>("horizon", 1, kMaxHorizon).words("N", "steps ahead"),
       ShapeRows::number<&Shape::samples>("samples", 1, kMaxSamples)
           .words("N", "sampled paths")
           .at(settings::kFile)
           .from(settings::find(settings::forecast_fields(), "samples")->variables),
       ShapeRows::number<&Shape::batch>("batch", 1, 100'000).words("N", "series per call"),
       ShapeRows::number<&Shape::variates>("variates", 1, 10'000)
           .words("N", "variates of each series"),
       ShapeRows::number<&Shape::warmup>("warmup", 0, kMost).words("N", "runs before measuring"),
       ShapeRows::number<&Shape::repeat>("repeat", 1, kMost).words("N", "runs measured")});
  return rows;
}

Shape read_shape(const BenchFlags& flags) {
  Shape shape;
  read_settings(flags.settings, shape_rows(), shape);
  if (flags.mean && flags.settings.given("samples")) {
    fail(ErrorCode::invalid_argument,
         "--samples is {} but --mean times the point forecast, which draws none; leave one out",
         shape.samples);
  }
  if (flags.mean) shape.samples = 0;
  const double bytes = 4.0 * shape.context * shape.variates * shape.batch;
  if (const auto available = static_cast<double>(available_memory()); bytes > available) {
    fail(ErrorCode::out_of_memory, "these series need {:.0f} MB and {:.0f} MB are free",
         bytes / 1e6, available / 1e6);
  }
  return shape;
}

// A random walk with a daily season, the same on every machine.
std::vector<Series> make_batch(const Shape& shape) {
  constexpr std::uint32_t kTag = 0x62656e63;  // "benc"
  std::vector<Series> batch(static_cast<std::size_t>(shape.batch));
  for (std::size_t s = 0; s < batch.size(); ++s) {
    Series& series = batch[s];
    series.id = fmt::format("series {}", s);
    series.num_variates = shape.variates;
    for (int v = 0; v < shape.variates; ++v) {
      double walk = 100;
      for (int t = 0; t < shape.context; ++t) {
        const RandomWords words =
            philox4x32({static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(v),
                        static_cast<std::uint32_t>(s), kTag},
                       {0, 0});
        walk += words[0] * 0x1p-32 - 0.5;
        const double season = 5 * std::sin(2 * std::numbers::pi * t / 24);
        series.values.push_back(static_cast<float>(walk + season));
      }
    }
  }
  return batch;
}

Measured measure(const Engine& engine, const Shape& shape, std::uint64_t seed, bool progress) {
  ForecastOptions options;
  options.horizon = shape.horizon;
  options.max_context = shape.context;
  options.seed = seed;
  options.num_samples = shape.samples;
  if (shape.samples == 0) {
    options.decode = Decode::mean;
    options.quantiles.clear();
  }
  const std::vector<Series> batch = make_batch(shape);
  std::vector<Forecast> out;
  // `out` is kept between runs: its memory need not be allocated again.
  const auto run = [&] {
    const auto start = std::chrono::steady_clock::now();
    engine.forecast_into(batch, options, out);
    return milliseconds_since(start);
  };

  Progress bar("bench", "runs", progress);
  const auto total = static_cast<std::uint64_t>(shape.warmup) + shape.repeat;
  Measured measured;
  for (int i = 0; i < shape.warmup; ++i) {
    const double ms = run();
    if (i == 0) measured.first_ms = ms;
    bar.update(static_cast<std::uint64_t>(i) + 1, total);
  }
  measured.ms.reserve(static_cast<std::size_t>(shape.repeat));
  engine.finish_warm_up();
  for (int i = 0; i < shape.repeat; ++i) {
    // Around the forecast alone: the progress bar may allocate.
    const std::uint64_t allocations = allocation_count();
    measured.ms.push_back(run());
    measured.allocations += allocation_count() - allocations;
    bar.update(static_cast<std::uint64_t>(shape.warmup) + i + 1, total);
  }
  measured.replans = engine.replans();
  if (shape.warmup == 0) measured.first_ms = measured.ms.front();
  return measured;
}

// The peak memory of this process; NaN (null in the JSON) where the system does not report it.
double peak_rss_mb() {
  const std::optional<std::uint64_t> bytes = peak_resident_bytes();
  return bytes ? static_cast<double>(*bytes) / 1e6 : NAN;
}

int bench(const BenchFlags& flags) {
  const Shape shape = read_shape(flags);
  if (flags.json) check_writable(*flags.json);
  const Settings settings = resolve_available(flags.settings);
  const LoadedEngine loaded = load_engine(settings);
  print_warnings(loaded.warnings);
  const Engine& engine = loaded.engine;
  const double load_ms = engine.timings().load;
  const Measured measured = measure(engine, shape, settings.seed, flags.progress);
  const validate::Latency latency = validate::latency_of(measured.ms);
  const double series_per_second = 1000.0 * shape.batch / latency.mean;
  const double weights_mb = static_cast<double>(engine.model().weight_bytes) / 1e6;
  const double peak_mb = peak_rss_mb();

  io::JsonWriter json;
  json.begin_object().key("engine");
  tables::write_engine(json, loaded.block());
  json.key("shape").begin_object();
  for (const auto& row : shape_rows()) json.field(row.name, row.get(shape));
  json.end_object().key("ms");
  validate::write_latency(json, latency);
  json.field("first_ms", measured.first_ms)
      .field("load_ms", load_ms)
      .field("series_per_second", series_per_second)
      .field("replans_after_warmup", measured.replans)
      .field("allocations_after_warmup", measured.allocations)
      .field("peak_rss_mb", peak_mb)
      .field("weights_mb", weights_mb);
  write_texts(json, "warnings", printed_warnings());
  json.end_object();

  const EngineOptions& options = engine.options();
  const std::string text = fmt::format(
      "{}: mode {}, {}, {}, {}\n"
      "{} series of {}, {} of context, {} ahead, {}\n"
      "\n"
      "  min            {:10.3f} ms\n"
      "  p50            {:10.3f} ms\n"
      "  p95            {:10.3f} ms\n"
      "  p99            {:10.3f} ms\n"
      "  mean           {:10.3f} ms, deviation {:.3f}, {} after {} to warm up\n"
      "  first          {:10.3f} ms\n"
      "  load           {:10.3f} ms\n"
      "  throughput     {:10.1f} series/s\n"
      "  after warm-up  {:10} replans, {} allocations\n"
      "  memory         {:10.1f} MB at the peak, {:.1f} MB of it weights\n",
      one_line(loaded.model.name), name_of(options.mode), name_of(options.dtype),
      name_of(options.isa), counted(options.threads, "thread"), shape.batch,
      counted(shape.variates, "variate"), counted(shape.context, "point"),
      counted(shape.horizon, "step"),
      shape.samples == 0 ? std::string("mean only") : counted(shape.samples, "sample"), latency.min,
      latency.p50, latency.p95, latency.p99, latency.mean, latency.std,
      counted(shape.repeat, "run"), shape.warmup, measured.first_ms, load_ms, series_per_second,
      measured.replans, measured.allocations, peak_mb, weights_mb);
  publish(flags.json, json.take(), text);
  return 0;
}

}  // namespace

void add_bench(Arguments& arguments) {
  const auto flags = std::make_shared<BenchFlags>();
  Command command = arguments.add_command("bench", "latency and throughput of one shape",
                                          "toto bench --context 512 --samples 128 --json -");
  flags->settings.add_all(command, shape_rows());
  command.flag("--mean", flags->mean, "time the point forecast only")
      .json(flags->json, "write the report as JSON")
      .progress(flags->progress);
  add_common_options(command, flags->settings);
  command.note(variables_note());
  command.run([flags] { return bench(*flags); });
}

}  // namespace toto::cli
