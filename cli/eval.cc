// `toto eval`: the accuracy of forecasts. The request and all files are checked before the model is
// loaded.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/eval_charts.h"
#include "cli/input_files.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/settings/settings.h"
#include "eval/eval_report.h"
#include "eval/evaluate.h"
#include "io/atomic_file.h"

namespace toto::cli {
namespace {

struct EvalFlags {
  std::vector<std::string> data;  // files; folders only until take_folders has opened them
  std::optional<std::string> json, report, plots;
  bool progress = false;
  Flags settings;
};

struct EvalSettings {
  settings::ForecastSettings forecast = {};
  eval::WindowOptions windows = {};
};
using EvalRows = settings::Rows<EvalSettings>;

template <int eval::WindowOptions::* Member>
settings::Field<EvalSettings> window_row(std::string_view name, double most) {
  // 0: not given.
  return EvalRows::number<[](auto& s) -> auto& { return s.windows.*Member; }>(
      name, 1, most, [](const EvalSettings& s) {
        const int value = s.windows.*Member;
        return value > 0 ? io::json_number(value) : io::Json();
      });
}

const std::vector<settings::Field<EvalSettings>>& eval_rows() {
  using Windows = eval::WindowOptions;
  constexpr double kMostWindows = 1'000'000;  // of one series
  static const std::vector<settings::Field<EvalSettings>> rows = command_table<EvalSettings>(
      {window_row<&Windows::horizon>("horizon", kMaxHorizon).words("H", "steps of a window"),
       window_row<&Windows::windows>("windows", kMostWindows)
           .words("W", "windows of each series; the last one ends where the series ends"),
       window_row<&Windows::stride>("stride", kMostWindows)
           .words("N", "steps from one window to the next")
           .or_else("the horizon"),
       window_row<&Windows::season>("season", kMostWindows)
           .words("M", "steps of a season")
           .or_else("a day of hours or minutes, 7 days, 5 business days, 52 weeks, 12 months, 4 "
                    "quarters, else 1; 1 for OHLCV")});
  return rows;
}

EvalSettings read_eval_settings(const Flags& flags) {
  if (!flags.given("horizon")) {
    fail(ErrorCode::invalid_argument,
         "--horizon is missing, expected the number of steps of a window, 1 to {}", kMaxHorizon);
  }
  EvalSettings settings;
  read_settings(flags, eval_rows(), settings);
  read_forecast_settings(flags, settings.forecast);
  if (settings.windows.stride == 0) settings.windows.stride = settings.windows.horizon;
  return settings;
}

std::string stem_of(const std::string& path) {
  return path == "-" ? "standard input" : std::filesystem::path(path).stem().string();
}

// A data set named by its path contains slashes.
std::string plot_path(const std::string& folder, std::string name, std::string_view label) {
  std::replace(name.begin(), name.end(), '/', '_');
  return fmt::format("{}/{}-{}.svg", folder, name, label);
}

// Each folder becomes the files in it.
void take_folders(EvalFlags& flags) {
  std::vector<std::string> files;
  for (const std::string& path : flags.data) {
    std::error_code ignored;
    const bool is_folder = std::filesystem::is_directory(path, ignored);
    const std::vector<std::string> found =
        is_folder ? files_of_folder(path, {flags.json}) : std::vector<std::string>{path};
    files.insert(files.end(), found.begin(), found.end());
  }
  flags.data = std::move(files);
}

void check_files(const EvalFlags& flags) {
  if (std::count(flags.data.begin(), flags.data.end(), "-") > 1) {
    fail(ErrorCode::invalid_argument, "DATA names - twice; standard input can be read once");
  }
  if (flags.report) check_report_name(*flags.report, {".html"});
  std::vector<NamedPath> inputs;
  inputs.reserve(flags.data.size());
  for (const std::string& path : flags.data) inputs.push_back({"DATA", path});
  std::vector<NamedPath> outputs = {{"--json", flags.json}, {"--report", flags.report}};
  if (flags.plots) {
    if (std::error_code ignored; std::filesystem::is_regular_file(*flags.plots, ignored)) {
      fail(ErrorCode::invalid_argument, "--plots is {}, a file; expected a folder",
           quoted(*flags.plots));
    }
    outputs.push_back({"--plots", plot_path(*flags.plots, stem_of(flags.data.front()), "best")});
  }
  check_outputs(inputs, outputs);
}

// ----------------------------------------------------------------------------------------- input

struct Dataset {
  std::string name;  // file name without folder and extension, or the path if two share it
  std::string file;
  tables::InputData input;
  eval::WindowPlan plan;
};

void warn_of_windows(const Dataset& dataset) {
  constexpr std::size_t kMostNames = 3;
  const std::vector<eval::SkippedSeries>& skipped = dataset.plan.skipped;
  for (std::size_t i = 0; i < std::min(skipped.size(), kMostNames); ++i) {
    print_warning(fmt::format("{}: the series {} is skipped: it {}", dataset.input.name,
                              quoted(skipped[i].id), skipped[i].reason));
  }
  if (skipped.size() > kMostNames) {
    print_warning(fmt::format("{}: {} more series are skipped; --json FILE names all of them",
                              dataset.input.name, skipped.size() - kMostNames));
  }
  const std::size_t windows_of_skipped =
      dataset.plan.num_wanted / dataset.input.series.size() * skipped.size();
  const std::size_t wanted = dataset.plan.num_wanted - windows_of_skipped;
  if (dataset.plan.num_windows < wanted) {
    print_warning(
        fmt::format("{}: {} of {} windows are evaluated: the series are too short for more",
                    dataset.input.name, dataset.plan.num_windows, wanted));
  }
}

std::vector<Dataset> read_datasets(const EvalFlags& flags, const EvalSettings& settings) {
  std::vector<std::string> stems;
  stems.reserve(flags.data.size());
  for (const std::string& path : flags.data) stems.push_back(stem_of(path));
  std::vector<Dataset> datasets;
  for (std::size_t i = 0; i < flags.data.size(); ++i) {
    const bool unique = std::count(stems.begin(), stems.end(), stems[i]) == 1;
    Dataset dataset{.name = unique ? stems[i] : flags.data[i],
                    .file = flags.data[i],
                    .input = tables::read_series(flags.data[i], settings.forecast.read),
                    .plan = {}};
    print_line(fmt::format("{}: {}", dataset.input.name, dataset.input.description));
    print_warnings(dataset.input.warnings);
    dataset.plan = eval::plan_windows(dataset.input, settings.windows);
    warn_of_windows(dataset);
    datasets.push_back(std::move(dataset));
  }
  return datasets;
}

// ---------------------------------------------------------------------------------------- output

// [data set][notable window]
using Charts = std::vector<std::vector<WindowChart>>;

std::string page_of(const eval::EvalReport& report, const Charts& charts) {
  std::vector<std::vector<report::FanChart>> figures;
  for (const std::vector<WindowChart>& windows : charts) {
    std::vector<report::FanChart>& list = figures.emplace_back();
    for (const WindowChart& window : windows) list.push_back(window.chart);
  }
  return eval::page_html(report, figures);
}

void add_plots(ResultFiles& files, const std::string& folder, const eval::EvalReport& report,
               const Charts& charts) {
  for (std::size_t i = 0; i < charts.size(); ++i) {
    for (const auto& [label, chart] : charts[i]) {
      files.add(plot_path(folder, report.datasets[i].name, label), report::fan_chart_svg(chart));
    }
  }
}

void write_results(const EvalFlags& flags, eval::EvalReport report, const Charts& charts) {
  report.warnings = {printed_warnings().begin(), printed_warnings().end()};
  ResultFiles files;
  if (flags.report) files.add(*flags.report, page_of(report, charts));
  if (flags.plots) add_plots(files, *flags.plots, report, charts);
  if (flags.json && flags.json != "-") {
    files.add(*flags.json, [&](const io::FileSet::Sink& sink) { eval::write_json(report, sink); });
  }
  files.commit();
  if (flags.json == "-") {
    eval::write_json(report, write_stdout);
  } else {
    write_stdout(eval::table_text(report));
  }
}

// By default business days have a weekly season. For prices, seasonal naive would then be last
// week's price, which is too easy to beat.
bool takes_business_week(const EvalFlags& flags, const eval::EvalReport& report) {
  constexpr int kBusinessWeek = 5;
  return !flags.settings.given("season") &&
         std::ranges::any_of(report.datasets, [](const auto& dataset) {
           return std::ranges::any_of(dataset.series, [](const eval::SeriesResult& series) {
             return series.season == kBusinessWeek;
           });
         });
}

int evaluate(EvalFlags flags) {
  take_folders(flags);
  check_files(flags);
  const EvalSettings wanted = read_eval_settings(flags.settings);
  const Settings settings = resolve_available(flags.settings);
  eval::EvalOptions options;
  options.windows = wanted.windows;
  options.forecast = wanted.forecast.options;
  options.forecast.seed = settings.seed;
  std::vector<Dataset> datasets = read_datasets(flags, wanted);

  const InterruptGuard guard;
  options.forecast.cancelled = InterruptGuard::interrupted;
  const LoadedEngine loaded = load_engine(settings);
  print_warnings(loaded.warnings);
  const auto forecaster = [&](std::span<const Series> batch,
                              const ForecastOptions& forecast_options, std::vector<Forecast>& out) {
    loaded.engine.forecast_into(batch, forecast_options, out);
  };
  eval::EvalReport report{.windows = options.windows,
                          .context = options.forecast.max_context,
                          .samples = options.forecast.num_samples,
                          .paths = options.forecast.num_paths,
                          .scale = options.forecast.scale,
                          .missing = std::string(name_of(options.forecast.missing))};
  Charts charts;
  for (Dataset& dataset : datasets) {
    Progress progress(fmt::format("eval {}", dataset.name), "windows", flags.progress);
    options.progress = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
    eval::DatasetResult result = eval::evaluate(dataset.input, dataset.plan, options, forecaster);
    result.name = dataset.name;
    result.file = dataset.file;
    if (flags.report || flags.plots) {
      charts.push_back(window_charts(dataset.input, result, options, loaded));
    }
    report.datasets.push_back(std::move(result));
    dataset.input = {};  // frees the memory for the next one
  }
  report.engine = loaded.block();
  InterruptGuard::check();
  if (takes_business_week(flags, report)) {
    print_line("note: business days have a season of 5 by default; for prices use --season 1");
  }
  write_results(flags, report, charts);
  return 0;
}

}  // namespace

void add_eval(Arguments& arguments) {
  const auto flags = std::make_shared<EvalFlags>();
  Command command = arguments.add_command(
      "eval", "rolling forecast accuracy against seasonal naive and persistence",
      "toto eval examples/data/electricity.csv --horizon 48 --windows 10 --report accuracy.html");
  command
      .positionals("DATA", flags->data,
                   "files or folders as `toto forecast` takes them, each file a data set")
      .json(flags->json, "every figure of every series as JSON")
      .option("--report", "FILE", flags->report,
              "page with tables and charts of the best, median and worst windows")
      .option("--plots", "FOLDER", flags->plots, "these charts as FOLDER/NAME-best.svg and so on")
      .progress(flags->progress);
  flags->settings.add_all(command, eval_rows());
  flags->settings.add_all(command, forecast_fields({"context", "samples", "paths", "missing",
                                                    "scale", "columns", "format", "freq"}));
  add_common_options(command, flags->settings);
  command.note(variables_note());
  command.run([flags] { return evaluate(*flags); });
}

}  // namespace toto::cli
