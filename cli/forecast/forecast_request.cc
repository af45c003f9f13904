#include "cli/forecast/forecast_request.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "cli/output.h"
#include "io/atomic_file.h"
#include "tables/forecast_file.h"
#include "tables/series_folder.h"

namespace toto::cli {
namespace {

double parse_level(const Choice& choice, const std::string& text) {
  double level = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, level);
  if (error != std::errc() || stop != end || !(level > 0 && level < 1)) {
    fail(ErrorCode::invalid_argument, "{} holds {}, expected numbers strictly between 0 and 1",
         choice.origin, quoted(text));
  }
  return level;
}

// A level named twice would be a key of the JSON twice.
std::vector<double> parse_levels(const Choice& choice) {
  std::vector<double> levels;
  for (const std::string& text : list_of(choice)) {
    const double level = parse_level(choice, text);
    if (std::find(levels.begin(), levels.end(), level) != levels.end()) {
      fail(ErrorCode::invalid_argument, "{} names {} twice, expected each level once",
           choice.origin, text);
    }
    levels.push_back(level);
  }
  return levels;
}

// --samples asks for paths outright; a variable is only a default, which --decode mean overrules.
void read_samples(const ForecastFlags& flags, ForecastOptions& options) {
  const auto samples = find_choice(flags.samples, "--samples", {"TOTO_NUM_SAMPLES"});
  if (!samples) return;
  const int number = whole_number(*samples, 1, kMaxSamples);
  if (options.decode == Decode::sample) {
    options.num_samples = number;
  } else if (flags.samples) {
    fail(ErrorCode::invalid_argument,
         "--samples is {} but --decode mean follows one path and draws none; leave one of them out",
         number);
  }
}

ForecastOptions read_options(const ForecastFlags& flags) {
  ForecastOptions options;
  if (const auto horizon = find_choice(flags.horizon, "--horizon")) {
    options.horizon = whole_number(*horizon, 1, kMaxHorizon);
  }
  if (const auto context = find_choice(flags.context, "--context")) {
    options.max_context = whole_number(*context, 1, std::numeric_limits<int>::max());
  }
  if (const auto quantiles = find_choice(flags.quantiles, "--quantiles")) {
    options.quantiles = parse_levels(*quantiles);
  }
  if (const auto decode = find_choice(flags.decode, "--decode")) {
    options.decode = parse_choice(*decode, parse_decode);
  }
  read_samples(flags, options);
  if (const auto missing = find_choice(flags.missing, "--missing")) {
    options.missing = parse_choice(*missing, parse_missing);
  }
  if (const auto emit = find_choice(flags.emit, "--emit")) {
    if (emit->text != "samples") {
      fail(ErrorCode::invalid_argument, "--emit is {}, expected samples", quoted(emit->text));
    }
    if (options.decode == Decode::mean) {
      fail(ErrorCode::invalid_argument,
           "--emit samples and --decode mean exclude each other: the mean path draws no samples");
    }
    options.keep_samples = true;
  }
  options.independent_streams = flags.independent_streams;
  return options;
}

PlotFormat plot_format(const std::string& path) {
  const std::string extension = lower_case(std::filesystem::path(path).extension().string());
  if (extension == ".svg") return PlotFormat::svg;
  if (extension == ".html" || extension == ".htm") return PlotFormat::html;
  fail(ErrorCode::invalid_argument, "the plot {} ends in {}, expected .svg or .html", quoted(path),
       extension.empty() ? "no extension" : quoted(extension));
}

// Without the files this run writes: its answer beside the data is no data of the next run.
std::vector<std::string> files_of_folder(const std::string& folder, const ForecastFlags& flags) {
  std::vector<std::string> files = tables::series_files(folder);
  std::erase_if(files, [&](const std::string& file) {
    return (flags.output && io::same_file(file, *flags.output)) ||
           (flags.json && io::same_file(file, *flags.json));
  });
  if (files.empty()) {
    fail(ErrorCode::not_found,
         "{}: the folder holds no .csv or .jsonl file, expected at least one; folders below it are "
         "not searched",
         folder);
  }
  return files;
}

// Files are known by their names without folder and extension if these differ, else by their paths.
// Either way no id made of one file's label can be that of another's.
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
    fs::path place = fs::absolute(path, error);  // a link is a file of its own
    if (!error) place = fs::canonical(place.parent_path(), error) / place.filename();
    // A path that leads nowhere is complained about when it is read.
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
    for (const std::string& path : files_of_folder(input, flags)) add(path);
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

// What was asked for must show somewhere.
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
  if (request.reports_point && request.output) {
    request.warnings.push_back(
        "CSV does not hold the point forecast; use --output FILE.json or --json FILE");
  }
}

}  // namespace

void add_forecast_options(Command& command, ForecastFlags& flags) {
  command
      .positionals("INPUT", flags.inputs,
                   "files or folders of CSV (long, wide or OHLCV) or GluonTS JSON lines; - is "
                   "standard input")
      .option("--horizon", "N", flags.horizon, "steps to forecast, 1 to 100000 (default 64)")
      .option("--context", "N", flags.context, "points of history used at most (default 4096)")
      .option("--columns", "A,B", flags.columns,
              "columns to forecast (default: all; of OHLCV bars close, or with --multivariate all "
              "prices)")
      .flag("--multivariate", flags.multivariate, "the series are variates of one series")
      .option("--quantiles", "Q,Q", flags.quantiles,
              "levels strictly between 0 and 1 (default 0.1,0.2,...,0.9)")
      .option("--samples", "N", flags.samples,
              "take everything from N sampled paths (default: exact as far as one patch reaches)")
      .option("--decode", "D", flags.decode,
              "what is fed back beyond the first patch: sample or mean (default sample)")
      .option("--point", "SPEC", flags.point,
              "also report mean, median, quantile_Q, trimmed_mean_P, ...")
      .option("--missing", "RULE", flags.missing, "ffill, linear or mask (default ffill)")
      .option("--format", "F", flags.format, tables::input_format_names() + " (default auto)")
      .option("--freq", "F", flags.freq, "step of the series: 15min, h, D, B, W, M, ...")
      .option("--known-future", "FILE", flags.known_future,
              "CSV of columns whose values over the horizon are known")
      .option("--emit", "WHAT", flags.emit, "samples: add the sampled paths to the JSON")
      .flag("--independent-streams", flags.independent_streams,
            "random numbers of its own for each series id")
      .option("--output", "FILE", flags.output, "FILE.json, .jsonl or .csv; - is JSON on stdout")
      .option("--json", "FILE", flags.json, "JSON, whatever the name; - is stdout")
      .option("--plot", "FILE", flags.plot,
              "chart of the forecast: FILE.svg or FILE.html; --quantiles says which bands")
      .flag("--progress", flags.progress, "show progress even if stderr is no terminal");
  add_common_options(command, flags.common);
  command.note(kVariablesNote);
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
  request.multivariate = flags.multivariate;
  request.known_future = flags.known_future;
  request.progress = flags.progress;
  request.cuts_by_default = !flags.context;
  request.options = read_options(flags);
  if (const auto point = find_choice(flags.point, "--point", {"TOTO_AGGREGATION_SPEC"})) {
    request.options.point = parse_choice(*point, parse_point);
    request.reports_point = true;
    request.point_name = point->text;
  }
  if (const auto columns = find_choice(flags.columns, "--columns")) {
    request.read.columns = list_of(*columns);
  }
  request.read.whole_bars = request.multivariate;
  if (const auto format = find_choice(flags.format, "--format")) {
    request.read.format = parse_choice(*format, tables::parse_input_format);
  }
  if (flags.freq) {  // parsed again by the reader; here it is checked before the file is opened
    tables::parse_frequency(*flags.freq, "--freq");
    request.read.frequency = *flags.freq;
  }
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
  // Nobody means to replace what is read, or one answer by another.
  std::vector<NamedPath> inputs = {{"--known-future", flags.known_future}};
  for (const InputFile& file : request.files) inputs.push_back({"INPUT", file.path});
  check_outputs(inputs,
                {{"--output", flags.output}, {"--json", flags.json}, {"--plot", flags.plot}});
  warn_of_hidden_values(request);

  // A chart needs both ends of its bands, the answer holds only what was asked for.
  request.num_quantiles = request.options.quantiles.size();
  if (request.plot) {
    request.bands = flags.quantiles ? chart_bands(request.options.quantiles)
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
