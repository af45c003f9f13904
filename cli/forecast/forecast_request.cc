#include "cli/forecast/forecast_request.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "cli/input_files.h"
#include "cli/output.h"
#include "tables/forecast_file.h"

namespace toto::cli {
namespace {

// A level given twice would be a key of the JSON twice.
void check_levels(const std::vector<double>& levels) {
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (std::count(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(i), levels[i]) ==
        0) {
      continue;
    }
    fail(ErrorCode::invalid_argument, "--quantiles has {} twice, expected each level once",
         levels[i]);
  }
}

PlotFormat plot_format(const std::string& path) {
  const std::string extension = lower_case(std::filesystem::path(path).extension().string());
  if (extension == ".svg") return PlotFormat::svg;
  if (extension == ".html" || extension == ".htm") return PlotFormat::html;
  fail(ErrorCode::invalid_argument, "the plot {} ends in {}, expected .svg or .html", quoted(path),
       extension.empty() ? "no extension" : quoted(extension));
}

// Labels are file names without folder and extension if these differ, else paths: ids made of the
// labels of two files never collide.
void set_labels(std::vector<InputFile>& files) {
  std::set<std::string> stems;
  for (InputFile& file : files) {
    file.label = file.path == "-" ? "stdin" : std::filesystem::path(file.path).stem().string();
    stems.insert(file.label);
  }
  if (stems.size() == files.size()) return;
  for (InputFile& file : files) file.label = file.path;
}

void read_inputs(const ForecastFlags& flags, ForecastRequest& request) {
  namespace fs = std::filesystem;
  bool has_folder = false;
  std::set<std::string> seen;
  const auto add = [&](const std::string& path) {
    std::error_code error;
    fs::path place = fs::absolute(path, error);  // a link is a separate file
    if (!error) place = fs::canonical(place.parent_path(), error) / place.filename();
    // A path that does not exist is reported when it is read.
    if (!error && !seen.insert(place.string()).second) {
      fail(ErrorCode::invalid_argument, "INPUT names {} twice, expected each file once", path);
    }
    request.files.push_back({.path = path, .label = {}});
  };
  for (const std::string& input : flags.inputs) {
    std::error_code ignored;
    if (input == "-" || !fs::is_directory(input, ignored)) {
      add(input);
      continue;
    }
    has_folder = true;
    for (const std::string& path : files_of_folder(input, {flags.output, flags.json})) add(path);
  }
  if (has_folder || request.several_files()) set_labels(request.files);
  if (flags.inputs.size() > 1) {
    request.input_name = fmt::format("{} files", request.files.size());
  } else if (flags.inputs.front() == "-") {
    request.input_name = "standard input";
  } else {
    const fs::path path = fs::path(flags.inputs.front()).lexically_normal();
    request.input_name = (path.has_filename() ? path : path.parent_path()).filename().string();
  }
}

// Standard input can be read once, by one reader.
void check_standard_input(const ForecastFlags& flags) {
  if (flags.known_future != "-") return;
  if (std::find(flags.inputs.begin(), flags.inputs.end(), "-") != flags.inputs.end()) {
    fail(ErrorCode::invalid_argument,
         "the input and --known-future are both -; standard input can be read once");
  }
}

// Warns of values that no output shows.
void warn_of_hidden_values(ForecastRequest& request) {
  const bool has_json =
      request.stdout_is_json() || request.json.has_value() ||
      (request.output && tables::output_format(*request.output) != tables::OutputFormat::csv);
  if (has_json) return;
  if (request.options.keep_samples) {
    request.warnings.push_back(
        fmt::format("{} does not hold samples; use --output FILE.json or --json FILE",
                    request.output ? "CSV" : "the table"));
  }
  if (request.reports_point() && request.output) {
    request.warnings.push_back(
        "CSV does not hold the point forecast; use --output FILE.json or --json FILE");
  }
}

}  // namespace

void add_forecast_options(Command& command, ForecastFlags& flags) {
  command.positionals("INPUT", flags.inputs,
                      "files or folders of CSV (long, wide or OHLCV) or GluonTS JSON lines; - is "
                      "standard input");
  flags.settings.add_all(command, settings::forecast_fields());
  command
      .option("--known-future", "FILE", flags.known_future,
              "CSV of columns whose values over the horizon are known")
      .option("--output", "FILE", flags.output, "FILE.json, .jsonl or .csv; - is JSON on stdout")
      .json(flags.json, "JSON, whatever the name")
      .option("--plot", "FILE", flags.plot,
              "chart of the forecast: FILE.svg or FILE.html; --quantiles selects the bands")
      .progress(flags.progress);
  add_common_options(command, flags.settings);
  command.note(variables_note());
}

std::vector<ChartBand> chart_bands(const std::vector<double>& levels) {
  constexpr std::size_t kMaxBands = 4;  // more shades cannot be told apart
  constexpr double kSame = 1e-9;        // 1 - 0.9 is not quite 0.1
  std::vector<ChartBand> bands;
  for (const double level : levels) {
    if (std::abs(level - 0.5) < kSame) continue;
    const auto mirrored = [&](double other) { return std::abs(level + other - 1) < kSame; };
    const auto mirror = std::find_if(levels.begin(), levels.end(), mirrored);
    const double other = mirror == levels.end() ? 1 - level : *mirror;
    if (other >= 1) continue;  // a level so small that its mirror image is 1 itself
    const ChartBand band{std::min(level, other), std::max(level, other)};
    const bool is_new = std::none_of(bands.begin(), bands.end(), [&](const ChartBand& known) {
      return std::abs(known.low - band.low) < kSame;
    });
    if (is_new) bands.push_back(band);
  }
  std::sort(bands.begin(), bands.end(),
            [](const ChartBand& a, const ChartBand& b) { return a.low < b.low; });
  if (bands.size() <= kMaxBands) return bands;
  std::vector<ChartBand> spread;  // the widest, the narrowest, and evenly between them
  spread.reserve(kMaxBands);
  for (std::size_t i = 0; i < kMaxBands; ++i) {
    spread.push_back(bands[i * (bands.size() - 1) / (kMaxBands - 1)]);
  }
  return spread;
}

ForecastRequest make_forecast_request(const ForecastFlags& flags) {
  ForecastRequest request;
  read_forecast_settings(flags.settings, request);
  check_levels(request.options.quantiles);
  request.known_future = flags.known_future;
  request.progress = flags.progress;
  request.cuts_by_default = !flags.settings.given("context");
  request.read.whole_bars = request.multivariate;
  check_standard_input(flags);
  request.output = flags.output;
  request.json = flags.json;
  request.plot = flags.plot;
  if (request.output && request.output != "-") tables::output_format(*request.output);
  if (request.plot) request.plot_format = plot_format(*request.plot);
  read_inputs(flags, request);
  if (request.several_files() && flags.known_future == "-") {
    fail(ErrorCode::invalid_argument,
         "--known-future is - and there are {} files to read it for; standard input can be read "
         "once, expected a file",
         request.files.size());
  }
  // An output must not replace an input or another output.
  std::vector<NamedPath> inputs = {{"--known-future", flags.known_future}};
  for (const InputFile& file : request.files) inputs.push_back({"INPUT", file.path});
  check_outputs(inputs,
                {{"--output", flags.output}, {"--json", flags.json}, {"--plot", flags.plot}});
  warn_of_hidden_values(request);

  // A chart needs both ends of its bands; the answer has only the levels asked for.
  request.num_quantiles = request.options.quantiles.size();
  if (request.plot) {
    request.bands = flags.settings.given("quantiles")
                        ? chart_bands(request.options.quantiles)
                        : std::vector<ChartBand>{{0.1, 0.9}, {0.25, 0.75}};
    std::vector<double>& levels = request.options.quantiles;
    for (const ChartBand& band : request.bands) {
      for (const double end : {band.low, band.high}) {
        if (std::find(levels.begin(), levels.end(), end) == levels.end()) levels.push_back(end);
      }
    }
  }
  return request;
}

}  // namespace toto::cli
