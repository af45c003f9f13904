#include "cli/forecast/forecast_inputs.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "io/csv.h"
#include "tables/series_folder.h"

namespace toto::cli {
namespace {

// Open while the input is read: its header says which columns' history is needed.
struct KnownFutureFile {
  explicit KnownFutureFile(const std::string& path)
      : source(io::open_source(path)), text(*source, path == "-" ? "standard input" : path) {}
  std::unique_ptr<io::ByteSource> source;
  io::TextInput text;
};

// A horizon that leaves the calendar is an error of the request. Series that end together are
// checked once.
class CalendarCheck {
 public:
  explicit CalendarCheck(int horizon) : horizon_(horizon) {}
  void add(const tables::InputSeries& series) {
    const tables::TimeAxis& axis = *series.axis;
    const tables::Ticks end = axis.times.empty() ? 0 : axis.times.back();
    if (any_ && axis.frequency == frequency_ && end == end_) return;
    tables::future_axis(series, horizon_);
    any_ = true;
    frequency_ = axis.frequency;
    end_ = end;
  }

 private:
  int horizon_;
  bool any_ = false;
  tables::Frequency frequency_;
  tables::Ticks end_ = 0;
};

// Lines about the first files, and a count of the others: a folder may hold thousands.
class InputReport {
 public:
  explicit InputReport(const ForecastRequest& request)
      : request_(request), progress_("read", "files", request.progress) {}

  void add(const InputFile& file, const ForecastInput::Findings& findings, std::size_t num_series) {
    num_series_ += num_series;
    if (++num_files_ <= kMostFiles) {
      progress_.clear();
      print_line(fmt::format("{}: {}", file.name(), findings.description));
    }
    for (const std::string& warning : findings.warnings) {
      if (request_.several_files() && ++num_warnings_ > kMostWarnings) continue;
      progress_.clear();
      print_warning(warning);
    }
    if (request_.several_files()) progress_.update(num_files_, request_.files.size());
  }

  void finish() {
    progress_.clear();
    if (num_warnings_ > kMostWarnings) {
      print_warning(fmt::format("{} more warnings about other files are not shown",
                                num_warnings_ - kMostWarnings));
    }
    if (!request_.several_files()) return;
    const std::string files = fmt::format("{} files", num_files_);
    const std::string folder = request_.input_name == files ? "" : request_.input_name + ": ";
    print_line(fmt::format("{}{}, {} series", folder, files, num_series_));
  }

 private:
  static constexpr std::size_t kMostFiles = 10, kMostWarnings = 10;
  const ForecastRequest& request_;
  Progress progress_;
  std::size_t num_files_ = 0, num_series_ = 0, num_warnings_ = 0;
};

}  // namespace

ForecastInput::ForecastInput(const ForecastRequest& request, const InputFile& file, bool only)
    : request_(request),
      file_(file),
      findings_{.description = {}, .warnings = {}, .remarks = ForecastRemarks(request)} {
  const bool again = tables::is_regular_file(file.path);
  const bool together = request.multivariate || request.known_future.has_value();
  if (again && !together && check_streamed()) return;
  check_whole(read_whole(), only || !again);
}

// False if the series are known only after the whole file was read.
bool ForecastInput::check_streamed() {
  ForecastRemarks remarks(request_);
  CalendarCheck calendar(request_.options.horizon);
  std::optional<Error> beyond;  // not to be trusted before the file's end
  std::string first_id;
  std::size_t first_column = 0;
  const auto data =
      tables::stream_series(file_.path, request_.read, [&](tables::InputSeries series) {
        remarks.add(series);
        try {
          if (!beyond) calendar.add(series);
        } catch (const Error& error) {
          beyond = error;
        }
        if (!first_id.empty()) return;
        first_id = std::move(series.id);
        first_column = series.column;
      });
  if (!data) return false;
  if (beyond) fail(beyond->code(), "{}: {}", file_.name(), beyond->what());
  num_jobs_ = num_parts_ = data->num_series;
  streamed_style_ = data->style;
  if (request_.plot) columns_ = data->columns;
  adopt(*data, first_id == data->columns[first_column], std::move(remarks));
  return true;
}

void ForecastInput::check_whole(Whole whole, bool hold) {
  const tables::InputData& data = whole.data;
  ForecastRemarks remarks(request_);
  CalendarCheck calendar(request_.options.horizon);
  for (const tables::InputSeries& series : data.series) {
    remarks.add(series);
    calendar.add(series);
  }
  const ForecastBatch batch(request_, data, whole.known);
  if (request_.multivariate && batch.num_variates() == 1) remarks.add_lone_variate(data);
  num_jobs_ = batch.size();
  num_parts_ = batch.num_parts();
  const tables::InputSeries& first = data.series.front();
  adopt(data, first.id == data.columns[first.column], std::move(remarks));
  if (hold) held_ = std::move(whole);
}

void ForecastInput::adopt(const tables::InputData& data, bool by_column, ForecastRemarks remarks) {
  by_column_ = by_column;
  findings_.description = data.description;
  findings_.warnings = data.warnings;
  findings_.remarks.merge(std::move(remarks),
                          [this](std::string id) { return reported_id(std::move(id)); });
}

ForecastInput::Whole ForecastInput::read_whole() const {
  Whole whole;
  if (!request_.known_future) {
    whole.data = tables::read_series(file_.path, request_.read);
    return whole;
  }
  KnownFutureFile known(*request_.known_future);
  tables::ReadOptions read = request_.read;
  read.also = tables::header_names(known.text);
  whole.data = tables::read_series(file_.path, read);
  whole.known = tables::read_known_future(known.text, whole.data, request_.options.horizon);
  return whole;
}

std::string ForecastInput::heading() const {
  if (!file_.label.empty() || file_.path == "-" || !by_column_) return {};
  return std::filesystem::path(file_.path).stem().string();
}

// A column is named with its file; the only column of a file has the name of the file.
std::string ForecastInput::reported_id(std::string id) const {
  if (file_.label.empty()) return id;
  const bool says_no_more = by_column_ || equal_ignoring_case(id, file_.label);
  return num_parts_ == 1 && says_no_more ? file_.label : file_.label + "/" + id;
}

void ForecastInput::take_labelled(ForecastJob job, const TakeJob& take) const {
  job.series.id = reported_id(std::move(job.series.id));
  for (ForecastPart& part : job.parts) part.series.id = reported_id(std::move(part.series.id));
  take(std::move(job));
}

void ForecastInput::fail_changed() const {
  fail(ErrorCode::corrupt_file,
       "{}: the file changed while it was forecast, expected the {} series it had before; run the "
       "command again",
       file_.path, num_parts_);
}

void ForecastInput::read_jobs(const TakeJob& take) {
  std::size_t count = 0;
  if (streamed_style_) {
    const auto take_series = [&](tables::InputSeries series) {
      if (++count > num_jobs_) fail_changed();
      const std::string column =
          series.column < columns_.size() ? columns_[series.column] : std::string();
      take_labelled(make_job(request_, std::move(series), column), take);
    };
    const auto data =
        tables::stream_series(file_.path, request_.read, take_series, streamed_style_);
    if (!data || count != num_jobs_) fail_changed();
    return;
  }
  const Whole whole = held_ ? std::move(*held_) : read_whole();
  held_.reset();
  const ForecastBatch batch(request_, whole.data, whole.known);
  if (batch.size() != num_jobs_ || batch.num_parts() != num_parts_) fail_changed();
  for (std::size_t i = 0; i < batch.size(); ++i) take_labelled(batch.make(i), take);
}

std::vector<ForecastInput> check_inputs(const ForecastRequest& request, ForecastRemarks& remarks) {
  std::vector<ForecastInput> inputs;
  inputs.reserve(request.files.size());
  InputReport report(request);
  for (const InputFile& file : request.files) {
    ForecastInput& input = inputs.emplace_back(request, file, !request.several_files());
    ForecastInput::Findings findings = input.take_findings();
    report.add(file, findings, input.num_parts());
    remarks.merge(std::move(findings.remarks), [](std::string id) { return id; });
  }
  report.finish();
  return inputs;
}

}  // namespace toto::cli
