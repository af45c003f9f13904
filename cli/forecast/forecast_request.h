// The request of one `toto forecast`, checked before anything is read, loaded or written.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/settings/settings.h"
#include "tables/series_file.h"
#include "toto/toto.h"

namespace toto::cli {

struct ForecastFlags {
  std::vector<std::string> inputs;
  std::optional<std::string> known_future, output, json, plot;
  bool progress = false;
  Flags settings;
};
void add_forecast_options(Command& command, ForecastFlags& flags);

enum class PlotFormat { svg, html };

// The lower and upper quantile of a chart band.
struct ChartBand {
  double low = 0.1;
  double high = 0.9;
};
// Bands for these levels, widest first: each level is paired with its mirror image around the
// median, even if that was not requested. If there are many, only a few are kept. 0.5 makes no
// band.
std::vector<ChartBand> chart_bands(const std::vector<double>& levels);

// A file to read, "-" is standard input.
struct InputFile {
  std::string path;
  std::string label;  // prefix of ids, where there are several files

  std::string name() const { return path == "-" ? "standard input" : path; }
};

// Quantiles that only a chart needs come last in the options; the first `num_quantiles` were asked
// for.
struct ForecastRequest : settings::ForecastSettings {
  std::vector<InputFile> files;  // folders are expanded to the files in them
  std::string input_name;  // name of the whole input, for titles: "prices.csv", "prices", "3 files"
  std::optional<std::string> known_future;
  std::size_t num_quantiles = 0;
  bool cuts_by_default = true;  // --context was not given

  // Paths; "-" is stdout.
  std::optional<std::string> output, json, plot;
  PlotFormat plot_format = PlotFormat::svg;
  std::vector<ChartBand> bands;  // of a plot, widest first
  bool progress = false;

  bool reports_point() const { return !point_name.empty(); }  // --point was given
  bool several_files() const { return files.size() > 1; }
  bool stdout_is_json() const { return output == "-" || json == "-"; }
  std::vector<std::string> warnings;
};

// Error(invalid_argument) naming the flag or variable, also for an output that cannot be written;
// Error(not_found) for a folder without a file to read.
ForecastRequest make_forecast_request(const ForecastFlags& flags);

}  // namespace toto::cli
