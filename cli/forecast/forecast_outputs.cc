#include "cli/forecast/forecast_outputs.h"

#include <unistd.h>

#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/output.h"

namespace toto::cli {
namespace {

tables::ForecastHeader make_header(const ForecastRequest& request, const LoadedEngine& loaded,
                                   const std::string& heading) {
  tables::ForecastHeader header{.engine = loaded.block(),
                                .horizon = request.options.horizon,
                                .quantiles = request.options.quantiles,
                                .warnings = {printed_warnings().begin(), printed_warnings().end()},
                                .heading = heading,
                                // The mean has a column already.
                                .point_name = request.options.point.kind == Point::Kind::mean
                                                  ? std::string()
                                                  : request.point_name};
  header.quantiles.resize(request.num_quantiles);
  return header;
}

// That the model is untrained is part of the result, unless the warning on the same screen has just
// said so.
std::unique_ptr<tables::ForecastWriter> start_table(const tables::ForecastHeader& header) {
  const bool said = ::isatty(STDOUT_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0;
  if (!header.engine.trained && !said) {
    write_stdout(fmt::format(
        "note: {} is untrained: its weights are random and its forecasts meaningless\n\n",
        one_line(header.engine.model)));
  }
  return tables::make_table_writer(header, write_stdout);
}

}  // namespace

ForecastOutputs::ForecastOutputs(const ForecastRequest& request, const LoadedEngine& loaded,
                                 const std::string& heading)
    : request_(request), header_(make_header(request, loaded, heading)) {
  if (request.output && request.output != "-") {
    open_file(*request.output, tables::output_format(*request.output));
  }
  if (request.json && request.json != "-") open_file(*request.json, tables::OutputFormat::json);
  if (request.plot) charts_.emplace(request, loaded, heading);
}

void ForecastOutputs::open_file(const std::string& path, tables::OutputFormat format) {
  File& file = *files_.emplace_back(std::make_unique<File>(path));
  file.writer = tables::make_file_writer(format, header_,
                                         [&file](std::string_view text) { file.file.write(text); });
}

void ForecastOutputs::add(const ForecastJob& job, const Forecast& forecast) {
  // Only now: a run that fails before its first answer leaves nothing on standard output.
  if (!stdout_ && request_.stdout_is_json()) {
    stdout_ = tables::make_file_writer(tables::OutputFormat::json, header_, write_stdout);
  } else if (!stdout_ && !request_.output) {
    stdout_ = start_table(header_);
  }
  const auto horizon = static_cast<std::size_t>(forecast.horizon);
  for (std::size_t variate = 0; variate < job.parts.size(); ++variate) {
    const ForecastPart& part = job.parts[variate];
    const auto number = static_cast<int>(variate);
    tables::ForecastEntry entry =
        tables::make_entry(forecast, number, part.series.id, times_after(part.series));
    entry.quantiles.resize(request_.num_quantiles);
    if (request_.reports_point()) {
      entry.point = std::span(forecast.point).subspan(variate * horizon, horizon);
    }
    for (const std::unique_ptr<File>& file : files_) file->writer->add(entry);
    if (stdout_) stdout_->add(entry);
    if (charts_) charts_->add(part, forecast, number);
    ++num_series_;
  }
}

const std::vector<std::string>& ForecastOutputs::times_after(const tables::InputSeries& series) {
  const tables::TimeAxis& axis = *series.axis;
  const tables::Ticks from = axis.times.empty() ? 0 : axis.times.back();
  const bool same = !times_.empty() && axis.frequency == times_frequency_ &&
                    axis.style == times_style_ && from == times_from_;
  if (!same) {
    times_ = tables::future_timestamps(series, request_.options.horizon);
    times_frequency_ = axis.frequency;
    times_style_ = axis.style;
    times_from_ = from;
  }
  return times_;
}

void ForecastOutputs::commit(const Timings& timings) {
  for (const std::unique_ptr<File>& file : files_) file->writer->finish(timings);
  const std::string drawing = charts_ ? charts_->draw() : std::string();
  if (stdout_) stdout_->finish(timings);
  for (const std::unique_ptr<File>& file : files_) {
    file->file.commit();
    print_written(file->path, num_series_);
  }
  if (charts_) {
    const std::string path = request_.plot.value_or(std::string());
    io::write_file_atomically(path, drawing);
    print_written(path, charts_->num_shown());
  }
}

// On stderr, like the line about the input: stdout is for results.
void ForecastOutputs::print_written(const std::string& path, std::size_t num_series) const {
  print_line(fmt::format("written: {} ({} series, {} step{})", path,
                         num_series == num_series_
                             ? std::to_string(num_series)
                             : fmt::format("{} of {}", num_series, num_series_),
                         header_.horizon, header_.horizon == 1 ? "" : "s"));
}

}  // namespace toto::cli
