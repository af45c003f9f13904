// Where the answer goes: files, charts, standard output. Series are written as they come and
// forgotten; files take their names once all of them are complete.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/forecast/forecast_charts.h"
#include "cli/forecast/forecast_jobs.h"
#include "cli/settings/settings.h"
#include "io/atomic_file.h"
#include "tables/forecast_file.h"

namespace toto::cli {

class ForecastOutputs {
 public:
  // Opens every output. `heading`: see ForecastCharts. The first two must outlive this.
  ForecastOutputs(const ForecastRequest& request, const LoadedEngine& loaded,
                  const std::string& heading);

  void add(const ForecastJob& job, const Forecast& forecast);
  // Replaces the files and names them on stderr. Without this the old ones stay.
  void commit(const Timings& timings);

 private:
  struct File {
    explicit File(const std::string& file_path) : path(file_path), file(file_path) {}
    std::string path;
    io::AtomicFile file;
    std::unique_ptr<tables::ForecastWriter> writer;
  };
  void open_file(const std::string& path, tables::OutputFormat format);
  const std::vector<std::string>& times_after(const tables::InputSeries& series);
  void print_written(const std::string& path, std::size_t num_series) const;

  const ForecastRequest& request_;
  tables::ForecastHeader header_;
  std::vector<std::unique_ptr<File>> files_;
  std::unique_ptr<tables::ForecastWriter> stdout_;  // JSON or the table
  std::optional<ForecastCharts> charts_;
  std::size_t num_series_ = 0;
  // The times of the forecast steps. Series that end together, as most neighbours do, share them.
  std::vector<std::string> times_;
  tables::Frequency times_frequency_;
  tables::TimeStyle times_style_;
  tables::Ticks times_from_ = 0;
};

}  // namespace toto::cli
