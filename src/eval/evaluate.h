// Rolling evaluation: the model and the baselines forecast every window from the values before it,
// and are scored. Only sums are kept: memory does not grow with the horizon, and by 32 bytes per
// window.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/eval_metrics.h"
#include "eval/windows.h"
#include "tables/series_file.h"
#include "toto/toto.h"

namespace toto::eval {

enum class Contender { model, seasonal_naive, seasonal_naive_bands, persistence };
inline constexpr std::array<Contender, 4> kContenders = {
    Contender::model, Contender::seasonal_naive, Contender::seasonal_naive_bands,
    Contender::persistence};

// Of each contender, in the order of kContenders.
struct Scores {
  std::array<Sums, kContenders.size()> sums = {};
  Sums& of(Contender contender) { return sums[static_cast<std::size_t>(contender)]; }
  const Sums& of(Contender contender) const { return sums[static_cast<std::size_t>(contender)]; }
  Metrics metrics(Contender contender) const;
  Ratios ratios_to(Contender contender) const;  // the model over it
  Scores& operator+=(const Scores& other);
};

struct WindowLoss {
  std::size_t series = 0;  // in DatasetResult::series
  std::size_t start = 0;   // first step
  double loss = 0;         // the model's quantile loss per step, over the in-sample error if scaled
  bool scaled = false;     // the in-sample error is known
};

struct SeriesResult {
  std::string id;
  std::size_t position = 0;  // in InputData::series
  int season = 1;
  Scores scores = {};
};

struct DatasetResult {
  std::string name;
  std::string file;
  std::string description;
  std::vector<SeriesResult> series;
  std::vector<SkippedSeries> skipped;
  std::vector<WindowLoss> windows;  // in the order of the file
  Scores total;

  // Geometric mean over the series of the model's ratio to a baseline.
  RatioMean series_mean(Contender baseline) const;
};

// Engine::forecast_into, or a replacement in tests.
using Forecaster =
    std::function<void(std::span<const Series>, const ForecastOptions&, std::vector<Forecast>&)>;

// `forecast`: context, samples, missing, seed and cancelled are used; quantiles are kLevels and the
// horizon is that of `windows`.
struct EvalOptions {
  WindowOptions windows;
  ForecastOptions forecast;
  std::function<void(std::size_t done, std::size_t total)> progress = {};  // of windows
};

// The options of every forecast made here.
ForecastOptions forecast_options(const EvalOptions& options);

// The values before `start` that a forecast reads: at most `max_context`, plus earlier ones that
// fill a gap at their beginning.
Series context_before(const tables::InputSeries& series, std::size_t start, int max_context);

// Leaves name and file empty. Error(cancelled) if options.forecast.cancelled returns true.
DatasetResult evaluate(const tables::InputData& input, const WindowPlan& plan,
                       const EvalOptions& options, const Forecaster& forecaster);

// The windows with the smallest, median and largest loss; fewer if there are fewer. Scaled losses
// are compared if there are any, otherwise unscaled ones.
struct NotableWindow {
  std::string label;  // "best"
  WindowLoss window;
  std::size_t among = 0;  // the number of windows compared
};
std::vector<NotableWindow> notable_windows(const DatasetResult& result);

}  // namespace toto::eval
