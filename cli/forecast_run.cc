#include "forecast_run.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/memory.h"
#include "forecast_charts.h"
#include "interrupt.h"
#include "progress.h"

namespace toto::cli {
namespace {

// Enough series that every pass of the network is full, few enough that their copies are small.
constexpr std::size_t kChunk = 256;

void check_memory(const ForecastOptions& options, std::size_t num_variates) {
  double values_a_step = 3 + static_cast<double>(options.quantiles.size());  // mean, median, point
  if (options.keep_samples) {
    values_a_step += options.num_samples > 0 ? options.num_samples : kDefaultPaths;
  }
  const double bytes = values_a_step * options.horizon * static_cast<double>(num_variates) *
                       static_cast<double>(sizeof(float));
  const auto available = static_cast<double>(available_memory());
  if (bytes <= available) return;
  fail(ErrorCode::out_of_memory,
       "the answer needs {:.0f} MB and {:.0f} MB are free; forecast fewer series or steps, or "
       "leave out --emit samples",
       bytes / 1e6, available / 1e6);
}

}  // namespace

ForecastBatch::ForecastBatch(const ForecastRequest& request, const io::InputData& input,
                             const io::KnownFuture& known)
    : request_(request), input_(input), known_(known) {
  const std::unordered_set<std::string_view> names(known.names.begin(), known.names.end());
  for (std::size_t i = 0; i < input.series.size(); ++i) {
    (names.contains(input.series[i].id) ? known_positions_ : targets_).push_back(i);
  }
  if (targets_.empty()) {
    fail(ErrorCode::corrupt_file,
         "{}: has a known future for every series, expected at least one left to forecast",
         request.known_future.value_or(request.input));
  }
  if (request.multivariate) {
    std::vector<std::size_t> all = targets_;
    all.insert(all.end(), known_positions_.begin(), known_positions_.end());
    io::check_same_times(input, all);
  } else if (!known_positions_.empty()) {  // these have the same times already
    for (const std::size_t target : targets_) {
      io::check_same_times(input, std::array{target, known_positions_.front()});
    }
  }
}

Series ForecastBatch::make(std::size_t index) const {
  if (request_.multivariate) return joined(input_, targets_.front());
  const io::InputSeries& target = input_.series[targets_[index]];
  if (known_positions_.empty()) {
    Series series;
    series.id = target.id;
    series.values = target.values;
    return series;
  }
  io::InputData beside;
  beside.series.push_back(target);
  for (const std::size_t i : known_positions_) beside.series.push_back(input_.series[i]);
  return joined(beside, 0);
}

std::vector<ForecastPart> ForecastBatch::parts() const {
  std::vector<ForecastPart> parts;
  parts.reserve(targets_.size());
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    // join_variates keeps the targets in the order of the file.
    parts.push_back(request_.multivariate
                        ? ForecastPart{.variate = static_cast<int>(i), .series = targets_[i]}
                        : ForecastPart{.forecast = i, .series = targets_[i]});
  }
  return parts;
}

// Variates of one series go by the name of the first: the id of an independent stream must not
// depend on where the file lies.
Series ForecastBatch::joined(const io::InputData& data, std::size_t first) const {
  const auto max_context = static_cast<std::size_t>(request_.options.max_context);
  return io::join_variates(data, known_, max_context, data.series[first].id).series;
}

ForecastRun run_forecast(const ForecastRequest& request, const ForecastBatch& batch,
                         const Engine& engine) {
  check_memory(request.options, batch.num_variates());
  ForecastRun run;
  run.parts = batch.parts();
  run.timings.load = run.timings.total = engine.timings().load;
  run.forecasts.reserve(batch.size());

  Progress progress("forecast", "series", request.progress);
  ForecastOptions options = request.options;
  options.cancelled = InterruptGuard::interrupted;
  std::vector<Series> chunk;
  std::vector<Forecast> answers;
  for (std::size_t first = 0; first < batch.size(); first += kChunk) {
    // The levels that only charts need are not computed for series that no chart shows.
    if (first >= kMaxCharts) options.quantiles.resize(request.num_quantiles);
    options.progress = [&](int done, int) {
      progress.update(first + static_cast<std::size_t>(done), batch.size());
    };
    chunk.clear();
    for (std::size_t i = first; i < std::min(first + kChunk, batch.size()); ++i) {
      chunk.push_back(batch.make(i));
    }
    engine.forecast_into(chunk, options, answers);
    std::move(answers.begin(), answers.end(), std::back_inserter(run.forecasts));
    const Timings timings = engine.timings();
    run.timings.prefill += timings.prefill;
    run.timings.decode += timings.decode;
    run.timings.total += timings.total;
  }
  return run;
}

}  // namespace toto::cli
