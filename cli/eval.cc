// `toto eval`: how accurate are the forecasts? Everything wrong with the request or with any of the
// files is said before the model is loaded.
#include <algorithm>
#include <filesystem>
#include <limits>
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
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/settings/settings.h"
#include "eval/eval_report.h"
#include "eval/evaluate.h"
#include "io/atomic_file.h"
#include "tables/series_folder.h"

namespace toto::cli {
namespace {

struct EvalFlags {
  std::vector<std::string> data;  // files; folders only until take_folders has opened them
  std::optional<std::string> horizon, windows, stride, season, context, samples, missing, columns,
      format, freq, json, report, plots;
  bool progress = false;
  CommonFlags common;
};

constexpr int kMostWindows = 1'000'000;  // of one series

eval::EvalOptions options_of(const EvalFlags& flags) {
  eval::EvalOptions options;
  const auto number = [](const std::optional<std::string>& flag, std::string_view name, int most,
                         int& value) {
    if (const auto choice = find_choice(flag, name)) value = whole_number(*choice, 1, most);
  };
  if (!flags.horizon) {
    fail(ErrorCode::invalid_argument,
         "--horizon is missing, expected the number of steps of a window, 1 to {}", kMaxHorizon);
  }
  number(flags.horizon, "--horizon", kMaxHorizon, options.windows.horizon);
  options.windows.stride = options.windows.horizon;
  number(flags.windows, "--windows", kMostWindows, options.windows.windows);
  number(flags.stride, "--stride", kMostWindows, options.windows.stride);
  number(flags.season, "--season", kMostWindows, options.windows.season);
  number(flags.context, "--context", std::numeric_limits<int>::max(), options.forecast.max_context);
  if (const auto samples = find_choice(flags.samples, "--samples", {"TOTO_NUM_SAMPLES"})) {
    options.forecast.num_samples = whole_number(*samples, 1, kMaxSamples);
  }
  if (const auto missing = find_choice(flags.missing, "--missing")) {
    options.forecast.missing = parse_choice(*missing, parse_missing);
  }
  return options;
}

tables::ReadOptions read_options_of(const EvalFlags& flags) {
  tables::ReadOptions read;
  if (const auto columns = find_choice(flags.columns, "--columns"))
    read.columns = list_of(*columns);
  if (const auto format = find_choice(flags.format, "--format")) {
    read.format = parse_choice(*format, tables::parse_input_format);
  }
  if (flags.freq) {
    tables::parse_frequency(*flags.freq, "--freq");
    read.frequency = *flags.freq;
  }
  return read;
}

std::string stem_of(const std::string& path) {
  return path == "-" ? "standard input" : std::filesystem::path(path).stem().string();
}

// A path that names the data set has folders in it.
std::string plot_path(const std::string& folder, std::string name, std::string_view label) {
  std::replace(name.begin(), name.end(), '/', '_');
  return fmt::format("{}/{}-{}.svg", folder, name, label);
}

// Each folder becomes the files in it, without those this run writes.
void take_folders(EvalFlags& flags) {
  std::vector<std::string> files;
  for (const std::string& path : flags.data) {
    if (std::error_code ignored; !std::filesystem::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found = tables::series_files(path);
    std::erase_if(found, [&](const std::string& file) {
      return flags.json && io::same_file(file, *flags.json);
    });
    if (found.empty()) {
      fail(ErrorCode::not_found,
           "{}: the folder holds no .csv or .jsonl file, expected at least one; folders below it "
           "are not searched",
           path);
    }
    files.insert(files.end(), found.begin(), found.end());
  }
  flags.data = std::move(files);
}

void check_files(const EvalFlags& flags) {
  if (std::count(flags.data.begin(), flags.data.end(), "-") > 1) {
    fail(ErrorCode::invalid_argument, "DATA names - twice; standard input can be read once");
  }
  if (flags.report == "-") {
    fail(ErrorCode::invalid_argument, "--report is -, expected a file: stdout has the table");
  }
  if (flags.report && !flags.report->ends_with(".html")) {
    fail(ErrorCode::invalid_argument, "--report is {}, expected a name that ends in .html",
         quoted(*flags.report));
  }
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
  std::string name;  // the file's, without folder and extension where that tells them apart
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
    print_warning(fmt::format("{}: {} of {} windows are evaluated: the series have no more",
                              dataset.input.name, dataset.plan.num_windows, wanted));
  }
}

std::vector<Dataset> read_datasets(const EvalFlags& flags, const eval::EvalOptions& options) {
  const tables::ReadOptions read = read_options_of(flags);
  std::vector<std::string> stems;
  stems.reserve(flags.data.size());
  for (const std::string& path : flags.data) stems.push_back(stem_of(path));
  std::vector<Dataset> datasets;
  for (std::size_t i = 0; i < flags.data.size(); ++i) {
    const bool unique = std::count(stems.begin(), stems.end(), stems[i]) == 1;
    Dataset dataset{.name = unique ? stems[i] : flags.data[i],
                    .file = flags.data[i],
                    .input = tables::read_series(flags.data[i], read),
                    .plan = {}};
    print_line(fmt::format("{}: {}", dataset.input.name, dataset.input.description));
    for (const std::string& warning : dataset.input.warnings) print_warning(warning);
    dataset.plan = eval::plan_windows(dataset.input, options.windows);
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

void write_plots(const std::string& folder, const eval::EvalReport& report, const Charts& charts) {
  for (std::size_t i = 0; i < charts.size(); ++i) {
    for (const auto& [label, chart] : charts[i]) {
      write_result(plot_path(folder, report.datasets[i].name, label), report::fan_chart_svg(chart));
    }
  }
}

void write_results(const EvalFlags& flags, const eval::EvalReport& report, const Charts& charts) {
  if (flags.report) write_result(*flags.report, page_of(report, charts));
  if (flags.plots) write_plots(*flags.plots, report, charts);
  if (flags.json == "-") {
    eval::write_json(report, write_stdout);
    return;
  }
  if (flags.json) {
    io::AtomicFile file(*flags.json);
    eval::write_json(report, [&file](std::string_view text) { file.write(text); });
    file.commit();
    print_written(*flags.json);
  }
  write_stdout(eval::table_text(report));
}

// A week of trading days is the usual season of such data, but prices do not have it: seasonal
// naive looks a week old then, and everything better than it.
bool takes_business_week(const EvalFlags& flags, const eval::EvalReport& report) {
  constexpr int kBusinessWeek = 5;
  return !flags.season && std::ranges::any_of(report.datasets, [](const auto& dataset) {
    return std::ranges::any_of(dataset.series, [](const eval::SeriesResult& series) {
      return series.season == kBusinessWeek;
    });
  });
}

int evaluate(EvalFlags flags) {
  take_folders(flags);
  check_files(flags);
  eval::EvalOptions options = options_of(flags);
  const Settings settings = resolve_settings(flags.common);
  check_available(settings);
  options.forecast.seed = settings.seed;
  std::vector<Dataset> datasets = read_datasets(flags, options);

  const InterruptGuard guard;
  options.forecast.cancelled = InterruptGuard::interrupted;
  const LoadedEngine loaded = load_engine(settings);
  for (const std::string& warning : loaded.warnings) print_warning(warning);
  const auto forecaster = [&](std::span<const Series> batch,
                              const ForecastOptions& forecast_options, std::vector<Forecast>& out) {
    loaded.engine.forecast_into(batch, forecast_options, out);
  };
  eval::EvalReport report{.windows = options.windows,
                          .context = options.forecast.max_context,
                          .samples = options.forecast.num_samples,
                          .missing = flags.missing.value_or("ffill")};
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
    dataset.input = {};  // the next one needs the memory more
  }
  report.engine = loaded.block();
  InterruptGuard::check();
  if (takes_business_week(flags, report)) {
    print_line("note: business days have a season of 5 by default; for prices say --season 1");
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
      .option("--horizon", "H", flags->horizon, "steps of a window, 1 to 100000")
      .option("--windows", "W", flags->windows,
              "windows of each series, the last one ending where the series ends (default 1)")
      .option("--stride", "N", flags->stride,
              "steps from one window to the next (default: the horizon)")
      .option("--season", "M", flags->season,
              "steps of a season (default: a day of hours or minutes, 7 days, 5 business days, 52 "
              "weeks, 12 months, 4 quarters, else 1; 1 for OHLCV)")
      .option("--context", "N", flags->context,
              "points of history the model sees at most (default 4096)")
      .option("--samples", "N", flags->samples,
              "take everything from N sampled paths (default: exact as far as one patch reaches)")
      .option("--missing", "RULE", flags->missing, "ffill, linear or mask (default ffill)")
      .option("--columns", "A,B", flags->columns, "columns to evaluate (default: all, or close)")
      .option("--format", "F", flags->format, tables::input_format_names() + " (default auto)")
      .option("--freq", "F", flags->freq, "step of the series: 15min, h, D, B, W, M, ...")
      .option("--json", "FILE", flags->json, "every figure of every series as JSON; - is stdout")
      .option("--report", "FILE", flags->report,
              "page with tables and the best, median and worst windows as charts")
      .option("--plots", "FOLDER", flags->plots, "those charts as FOLDER/NAME-best.svg and so on")
      .flag("--progress", flags->progress, "show progress even if stderr is no terminal");
  add_common_options(command, flags->common);
  command.note(kVariablesNote);
  command.run([flags] { return evaluate(*flags); });
}

}  // namespace toto::cli
