// `toto forecast`: read, forecast, write. Everything wrong with the request is said before anything
// is read, everything wrong with the input before the model is loaded.
#include <unistd.h>

#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "commands.h"
#include "forecast_charts.h"
#include "forecast_remarks.h"
#include "forecast_request.h"
#include "forecast_run.h"
#include "interrupt.h"
#include "io/atomic_file.h"
#include "io/forecast_file.h"
#include "io/utf8.h"
#include "output.h"

namespace toto::cli {
namespace {

// The times of the forecast steps. Series that end together share one list: a long file may hold
// 10^5 of them.
class FutureTimes {
 public:
  explicit FutureTimes(int horizon) : horizon_(horizon) {}

  const std::vector<std::string>& after(const io::InputSeries& series) {
    const io::TimeAxis& axis = *series.axis;
    const bool dated = axis.frequency.unit != io::Frequency::Unit::unknown;
    const Key key = {axis.frequency.unit, axis.frequency.count, axis.frequency.day,
                     dated ? axis.times.back() : 0};
    const auto [found, is_new] = lists_.try_emplace(key);
    if (is_new) found->second = io::future_timestamps(series, horizon_);
    return found->second;
  }

 private:
  // All series of a file write their times in one style.
  using Key = std::tuple<io::Frequency::Unit, std::int64_t, int, io::Ticks>;
  int horizon_;
  std::map<Key, std::vector<std::string>> lists_;
};

// Open while the input is read: its header says which columns' history is needed.
struct KnownFutureFile {
  explicit KnownFutureFile(const std::string& path)
      : source(io::open_source(path)), text(*source, path == "-" ? "standard input" : path) {}
  std::unique_ptr<io::ByteSource> source;
  io::TextInput text;
};

io::ForecastDocument make_document(const ForecastRequest& request, const io::InputData& input,
                                   const ForecastRun& run, const LoadedEngine& loaded,
                                   FutureTimes& times) {
  io::ForecastDocument document{.engine = loaded.block(),
                                .horizon = request.options.horizon,
                                .quantiles = request.options.quantiles,
                                .timings = run.timings,
                                .heading = file_heading(request, input),
                                // The mean has a column already.
                                .point_name = request.options.point.kind == Point::Kind::mean
                                                  ? std::string()
                                                  : request.point_name};
  document.quantiles.resize(request.num_quantiles);
  document.series.reserve(run.parts.size());
  const auto horizon = static_cast<std::size_t>(request.options.horizon);
  for (const ForecastPart& part : run.parts) {
    const io::InputSeries& series = input.series[part.series];
    const Forecast& forecast = run.forecasts[part.forecast];
    io::ForecastEntry& entry = document.series.emplace_back(
        io::make_entry(forecast, part.variate, series.id, times.after(series)));
    entry.quantiles.resize(request.num_quantiles);
    if (request.reports_point) {
      entry.point = std::span(forecast.point)
                        .subspan(static_cast<std::size_t>(part.variate) * horizon, horizon);
    }
  }
  return document;
}

// That the model is untrained is part of the result, unless the warning on the same screen has just
// said so.
void write_table(const io::ForecastDocument& document) {
  const bool said = ::isatty(STDOUT_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0;
  if (!document.engine.trained && !said) {
    write_stdout(fmt::format("note: {} is untrained, its weights are random: no forecast\n\n",
                             io::one_line(document.engine.model)));
  }
  io::write_forecast_table(document, write_stdout);
}

// On stderr, like the line about the input: stdout is for results.
void print_written(const std::string& path, const io::ForecastDocument& document,
                   std::size_t num_series) {
  const std::size_t all = document.series.size();
  print_line(fmt::format(
      "written: {} ({} series, {} step{})", path,
      num_series == all ? std::to_string(all) : fmt::format("{} of {}", num_series, all),
      document.horizon, document.horizon == 1 ? "" : "s"));
}

void write_results(const ForecastRequest& request, const io::ForecastDocument& document,
                   const Charts& charts) {
  if (request.output && request.output != "-") {
    io::write_forecast_file(*request.output, document);
    print_written(*request.output, document, document.series.size());
  }
  if (request.json && request.json != "-") {
    io::AtomicFile file(*request.json);
    io::write_forecast_json(document, [&file](std::string_view text) { file.write(text); });
    file.commit();
    print_written(*request.json, document, document.series.size());
  }
  if (request.plot) {
    io::write_file_atomically(*request.plot, charts.text);
    print_written(*request.plot, document, charts.num_shown);
  }
  if (request.stdout_is_json()) {
    io::write_forecast_json(document, write_stdout);
  } else if (!request.output) {
    write_table(document);
  }
}

int forecast(const ForecastFlags& flags) {
  ForecastRequest request = make_forecast_request(flags);
  const Settings settings = resolve_settings(flags.common);
  check_available(settings);
  request.options.seed = settings.seed;
  for (const std::string& warning : request.warnings) print_warning(warning);

  std::optional<KnownFutureFile> known_file;
  if (request.known_future) {
    known_file.emplace(*request.known_future);
    request.read.also = io::header_names(known_file->text);
  }
  const io::InputData input = io::read_series(request.input, request.read);
  print_line(fmt::format("{}: {}", request.input == "-" ? "standard input" : request.input,
                         input.description));
  for (const std::string& warning : input.warnings) print_warning(warning);
  if (const auto remark = context_remark(request, input)) print_line("note: " + *remark);
  io::KnownFuture known;
  if (known_file) {
    known = io::read_known_future(known_file->text, input, request.options.horizon);
  }
  const ForecastBatch batch(request, input, known);
  if (const auto remark = multivariate_remark(request, input, batch)) print_warning(*remark);
  // Before the model is loaded: a horizon that leaves the calendar is an error of the request.
  FutureTimes times(request.options.horizon);
  for (const io::InputSeries& series : input.series) times.after(series);

  const InterruptGuard guard;
  const LoadedEngine loaded = load_engine(settings);
  for (const std::string& warning : loaded.warnings) print_warning(warning);
  if (const auto remark = scale_remark(request, input, loaded.engine.model())) {
    print_warning(*remark);
  }
  const ForecastRun run = run_forecast(request, batch, loaded.engine);
  const Charts charts = request.plot ? draw_charts(request, input, run, loaded) : Charts{};
  const io::ForecastDocument document = make_document(request, input, run, loaded, times);
  InterruptGuard::check();
  write_results(request, document, charts);
  return 0;
}

}  // namespace

void add_forecast(Arguments& arguments) {
  const auto flags = std::make_shared<ForecastFlags>();
  Command command =
      arguments.add_command("forecast", "forecast every series in a file",
                            "toto forecast examples/data/AAPL.csv --horizon 64 --plot aapl.html");
  add_forecast_options(command, *flags);
  command.run([flags] { return forecast(*flags); });
}

}  // namespace toto::cli
