#include "cli/forecast/forecast_jobs.h"

#include <array>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/error.h"

namespace toto::cli {

namespace {

// A series without its values, which have moved into a job.
void forget_history(tables::InputSeries& series) {
  series.values = {};
  if (series.axis->times.size() <= 1) return;
  series.axis = std::make_shared<const tables::TimeAxis>(
      tables::TimeAxis{.style = series.axis->style,
                       .frequency = series.axis->frequency,
                       .times = {series.axis->times.back()}});
}

}  // namespace

ForecastJob make_job(const ForecastRequest& request, tables::InputSeries series,
                     const std::string& column) {
  ForecastJob job;
  job.series.id = series.id;
  if (request.plot) {
    job.series.values = series.values;
  } else {
    job.series.values = std::move(series.values);
    forget_history(series);
  }
  job.parts.push_back({.series = std::move(series), .column = column});
  return job;
}

ForecastBatch::ForecastBatch(const ForecastRequest& request, const tables::InputData& input,
                             const tables::KnownFuture& known)
    : request_(request), input_(input), known_(known) {
  const std::unordered_set<std::string_view> names(known.names.begin(), known.names.end());
  for (std::size_t i = 0; i < input.series.size(); ++i) {
    (names.contains(input.series[i].id) ? known_positions_ : targets_).push_back(i);
  }
  if (targets_.empty()) {
    fail(ErrorCode::corrupt_file,
         "{}: has a known future for every series of {}, expected at least one left to forecast",
         request.known_future.value_or("--known-future"), input.name);
  }
  if (request.multivariate) {
    std::vector<std::size_t> all = targets_;
    all.insert(all.end(), known_positions_.begin(), known_positions_.end());
    tables::check_same_times(input, all);
  } else if (!known_positions_.empty()) {  // these have the same times already
    for (const std::size_t target : targets_) {
      tables::check_same_times(input, std::array{target, known_positions_.front()});
    }
  }
}

ForecastPart ForecastBatch::part(std::size_t position) const {
  ForecastPart part{.series = input_.series[position],
                    .column = input_.columns[input_.series[position].column]};
  if (!request_.plot) forget_history(part.series);
  return part;
}

ForecastJob ForecastBatch::make(std::size_t index) const {
  ForecastJob job;
  if (request_.multivariate) {
    job.series = joined(input_, targets_.front());
    // join_variates keeps the targets in the order of the file.
    for (const std::size_t target : targets_) job.parts.push_back(part(target));
    return job;
  }
  const tables::InputSeries& target = input_.series[targets_[index]];
  if (known_positions_.empty()) return make_job(request_, target, input_.columns[target.column]);
  tables::InputData joint;
  joint.series.push_back(target);
  for (const std::size_t i : known_positions_) joint.series.push_back(input_.series[i]);
  job.series = joined(joint, 0);
  job.parts.push_back(part(targets_[index]));
  return job;
}

// Variates of one series go by the name of the first: the id of an independent stream must not
// depend on where the file lies.
Series ForecastBatch::joined(const tables::InputData& data, std::size_t first) const {
  const auto max_context = static_cast<std::size_t>(request_.options.max_context);
  return tables::join_variates(data, known_, max_context, data.series[first].id).series;
}

}  // namespace toto::cli
