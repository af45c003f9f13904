// The files of a request. Each is read twice: once to check it before the model is loaded, and
// again while its series are forecast, so that memory does not grow with the number of files or
// series.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/forecast/forecast_jobs.h"
#include "cli/forecast/forecast_remarks.h"

namespace toto::cli {

using TakeJob = std::function<void(ForecastJob job)>;

class ForecastInput {
 public:
  // Reads and checks all of the file. It is kept in memory until it is forecast only if it cannot
  // be read again or is the `only` file. Errors are those of read_series, and a horizon that leaves
  // the calendar. `request` must outlive this.
  ForecastInput(const ForecastRequest& request, const InputFile& file, bool only);

  // Found by the first reading; the second one does not need it.
  struct Findings {
    std::string description;
    std::vector<std::string> warnings;
    ForecastRemarks remarks;
  };
  Findings take_findings() { return std::move(findings_); }

  std::size_t num_jobs() const { return num_jobs_; }    // series as the engine counts them
  std::size_t num_parts() const { return num_parts_; }  // series as a reader of the answer does
  // Before ids in titles, where they are columns of one unlabelled file: "AAPL" for "AAPL close".
  std::string heading() const;

  // Hands over the jobs in the order of the file, with the ids of the answer. Once only.
  // Error(corrupt_file) if the file has changed.
  void read_jobs(const TakeJob& take);

 private:
  struct Whole {
    tables::InputData data;
    tables::KnownFuture known;
  };
  void check_whole(Whole whole, bool hold);
  bool check_streamed();
  void adopt(const tables::InputData& data, bool by_column, ForecastRemarks remarks);
  Whole read_whole() const;
  std::string reported_id(std::string id) const;
  void take_labelled(ForecastJob job, const TakeJob& take) const;
  [[noreturn]] void fail_changed() const;

  const ForecastRequest& request_;
  InputFile file_;
  std::size_t num_jobs_ = 0, num_parts_ = 0;
  bool by_column_ = false;                           // its series have no ids of their own
  std::optional<tables::TimeStyle> streamed_style_;  // set if its series come one at a time
  std::vector<std::string> columns_;                 // likewise, for the labels of charts
  std::optional<Whole> held_;
  Findings findings_;
};

// All files of the request, checked; describes them on stderr. A progress bar if there are several.
std::vector<ForecastInput> check_inputs(const ForecastRequest& request, ForecastRemarks& remarks);

}  // namespace toto::cli
