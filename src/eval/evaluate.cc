#include "eval/evaluate.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "eval/baselines.h"

namespace toto::eval {
namespace {

// Limits of one call: enough windows to fill every pass of the network, and at most 64 MB of
// contexts and answers.
constexpr std::size_t kMaxWindows = 256;
constexpr std::size_t kMaxValues = std::size_t{16} << 20;

// A window waiting for the forecaster.
struct QueuedWindow {
  std::size_t series = 0;  // in WindowPlan::series
  std::size_t start = 0;
};

// Forecasts windows in batches and keeps only sums. One thread uses it; it refers to its arguments.
class Evaluation {
 public:
  Evaluation(const tables::InputData& input, const WindowPlan& plan, const EvalOptions& options,
             const Forecaster& forecaster)
      : input_(input), plan_(plan), options_(options), forecaster_(forecaster) {
    horizon_ = static_cast<std::size_t>(options.windows.horizon);
    forecast_options_ = forecast_options(options);
  }

  DatasetResult run() {
    for (const PlannedSeries& planned : plan_.series) {
      result_.series.push_back({.id = input_.series[planned.position].id,
                                .position = planned.position,
                                .season = planned.season});
    }
    for (std::size_t i = 0; i < plan_.series.size(); ++i) {
      for (const std::size_t start : plan_.series[i].starts) add({.series = i, .start = start});
    }
    flush();
    for (const SeriesResult& series : result_.series) result_.total += series.scores;
    result_.skipped = plan_.skipped;
    result_.description = input_.description;
    return std::move(result_);
  }

 private:
  const tables::InputSeries& series_of(const QueuedWindow& window) const {
    return input_.series[plan_.series[window.series].position];
  }

  // Queues a window; a full batch is forecast first.
  void add(const QueuedWindow& window) {
    Series context = context_before(series_of(window), window.start, forecast_options_.max_context);
    const std::size_t values = context.values.size() + kNumLevels * horizon_;
    if (queue_.size() == kMaxWindows || (!queue_.empty() && num_values_ + values > kMaxValues)) {
      flush();
    }
    num_values_ += values;
    contexts_.push_back(std::move(context));
    queue_.push_back(window);
  }

  void flush() {
    if (queue_.empty()) return;
    forecast_options_.progress = [this](int done, int) {
      if (options_.progress) {
        options_.progress(num_done_ + static_cast<std::size_t>(done), plan_.num_windows);
      }
    };
    forecaster_(contexts_, forecast_options_, forecasts_);
    for (std::size_t i = 0; i < queue_.size(); ++i) take(queue_[i], forecasts_[i]);
    num_done_ += queue_.size();
    queue_.clear();
    contexts_.clear();
    num_values_ = 0;
  }

  // Scores the model and every baseline on the same window and adds them to the sums of the series.
  void take(const QueuedWindow& window, const Forecast& forecast) {
    const std::span<const float> values = series_of(window).values;
    const std::span<const float> history = values.first(window.start);
    const std::span<const float> actual = values.subspan(window.start, horizon_);
    const auto season = static_cast<std::size_t>(plan_.series[window.series].season);
    const std::optional<double> unit = in_sample_error(history, season);
    Scores scores;
    scores.of(Contender::model) = score(actual, forecast.quantiles, unit);
    scores.of(Contender::seasonal_naive) =
        score(actual, seasonal_naive(history, season, horizon_), unit);
    scores.of(Contender::seasonal_naive_bands) =
        score(actual, seasonal_naive_bands(history, season, horizon_), unit);
    scores.of(Contender::persistence) = score(actual, persistence(history, horizon_), unit);
    const Sums& ours = scores.of(Contender::model);
    if (!std::isfinite(ours.quantile_loss)) {
      fail(ErrorCode::unsupported,
           "the forecast of series \"{}\" from step {} on has values that are not numbers, "
           "expected finite ones; `toto inspect` describes the model",
           series_of(window).id, window.start);
    }
    const double loss = ours.quantile_loss / static_cast<double>(ours.steps);
    result_.windows.push_back({.series = window.series,
                               .start = window.start,
                               .loss = unit ? loss / *unit : loss,
                               .scaled = unit.has_value()});
    result_.series[window.series].scores += scores;
  }

  const tables::InputData& input_;
  const WindowPlan& plan_;
  const EvalOptions& options_;
  const Forecaster& forecaster_;
  std::size_t horizon_ = 0;
  ForecastOptions forecast_options_;
  DatasetResult result_;
  std::vector<QueuedWindow> queue_;
  std::vector<Series> contexts_;
  std::vector<Forecast> forecasts_;
  std::size_t num_values_ = 0;
  std::size_t num_done_ = 0;
};

}  // namespace

Metrics Scores::metrics(Contender contender) const {
  const bool has_bands =
      contender == Contender::model || contender == Contender::seasonal_naive_bands;
  return metrics_of(of(contender), has_bands);
}

Ratios Scores::ratios_to(Contender contender) const {
  return ratios_of(of(Contender::model), of(contender));
}

Scores& Scores::operator+=(const Scores& other) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += other.sums[i];
  return *this;
}

RatioMean DatasetResult::series_mean(Contender baseline) const {
  RatioMean mean;
  for (const SeriesResult& one : series) mean.add(one.scores.ratios_to(baseline));
  return mean;
}

ForecastOptions forecast_options(const EvalOptions& options) {
  ForecastOptions result = options.forecast;
  result.horizon = options.windows.horizon;
  result.quantiles.assign(kLevels.begin(), kLevels.end());
  return result;
}

// Begins earlier than max_context if that value is missing: a context begins with a number.
Series context_before(const tables::InputSeries& series, std::size_t start, int max_context) {
  const auto limit = static_cast<std::size_t>(max_context);
  std::size_t first = start > limit ? start - limit : 0;
  while (first > 0 && std::isnan(series.values[first])) --first;
  Series context;
  context.id = series.id;
  context.values.assign(series.values.begin() + static_cast<std::ptrdiff_t>(first),
                        series.values.begin() + static_cast<std::ptrdiff_t>(start));
  return context;
}

DatasetResult evaluate(const tables::InputData& input, const WindowPlan& plan,
                       const EvalOptions& options, const Forecaster& forecaster) {
  return Evaluation(input, plan, options, forecaster).run();
}

// Losses in units of the series' own changes can be compared; others are used only if there are
// none.
std::vector<NotableWindow> notable_windows(const DatasetResult& result) {
  std::vector<WindowLoss> order = result.windows;
  const auto is_scaled = [](const WindowLoss& window) { return window.scaled; };
  if (std::any_of(order.begin(), order.end(), is_scaled)) {
    std::erase_if(order, std::not_fn(is_scaled));
  }
  std::sort(order.begin(), order.end(), [](const WindowLoss& a, const WindowLoss& b) {
    return std::tie(a.loss, a.series, a.start) < std::tie(b.loss, b.series, b.start);
  });
  const std::size_t among = order.size();
  if (among == 0) return {};
  if (among == 1) return {{"only", order.front(), among}};
  std::vector<NotableWindow> notable = {{"best", order.front(), among}};
  if (among > 2) notable.push_back({"median", order[among / 2], among});
  notable.push_back({"worst", order.back(), among});
  return notable;
}

}  // namespace toto::eval
