#include "eval/windows.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace toto::eval {
namespace {

bool any_value(std::span<const float> values) {
  return std::any_of(values.begin(), values.end(), [](float value) { return !std::isnan(value); });
}

// First steps of the windows, from the end of the series backwards, each after at least one season
// and one value of history.
std::vector<std::size_t> starts_of(std::span<const float> values, const WindowOptions& options,
                                   std::size_t season) {
  const auto horizon = static_cast<std::size_t>(options.horizon);
  const auto stride =
      static_cast<std::size_t>(options.stride > 0 ? options.stride : options.horizon);
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < static_cast<std::size_t>(options.windows); ++i) {
    const std::size_t needed = horizon + season;  // one more than this
    if (values.size() <= needed || i * stride >= values.size() - needed) break;
    const std::size_t start = values.size() - horizon - i * stride;
    if (any_value(values.subspan(start, horizon))) starts.push_back(start);
  }
  std::reverse(starts.begin(), starts.end());
  return starts;
}

// Why a series has no window.
std::string reason_of(std::size_t length, int horizon, int season) {
  const std::size_t needed =
      static_cast<std::size_t>(horizon) + static_cast<std::size_t>(season) + 1;
  if (length >= needed) return "has no value in any of its windows";
  return fmt::format("has {} values, expected at least {}: a horizon of {}, a season of {} and one",
                     length, needed, horizon, season);
}

}  // namespace

// The steps of a day, a week of days, a year of weeks, months or quarters; 1 if there is no whole
// number of them.
int default_season(const tables::Frequency& frequency) {
  const std::int64_t count = frequency.count;
  switch (frequency.unit) {
    case tables::Frequency::Unit::fixed:
      if (count == 7 * tables::kDay) return 52;
      if (count == tables::kDay) return 7;
      if (count >= tables::kMinute && count < tables::kDay && tables::kDay % count == 0) {
        return static_cast<int>(tables::kDay / count);
      }
      return 1;
    case tables::Frequency::Unit::weekday:
      return count == 1 ? 5 : 1;
    case tables::Frequency::Unit::month:
      return count > 0 && 12 % count == 0 ? static_cast<int>(12 / count) : 1;
    case tables::Frequency::Unit::unknown:
      break;
  }
  return 1;
}

// Prices have no season, and neither have steps without dates.
int default_season(const tables::InputSeries& series, tables::InputFormat format) {
  const bool undated = series.axis->style.steps;
  return undated || format == tables::InputFormat::csv_ohlcv
             ? 1
             : default_season(series.axis->frequency);
}

WindowPlan plan_windows(const tables::InputData& input, const WindowOptions& options) {
  WindowPlan plan;
  plan.num_wanted = input.series.size() * static_cast<std::size_t>(options.windows);
  for (std::size_t i = 0; i < input.series.size(); ++i) {
    const tables::InputSeries& series = input.series[i];
    const int season = options.season > 0 ? options.season : default_season(series, input.format);
    std::vector<std::size_t> starts =
        starts_of(series.values, options, static_cast<std::size_t>(season));
    if (starts.empty()) {
      plan.skipped.push_back({series.id, reason_of(series.values.size(), options.horizon, season)});
      continue;
    }
    plan.num_windows += starts.size();
    plan.series.push_back({.position = i, .season = season, .starts = std::move(starts)});
  }
  if (plan.series.empty()) {
    const SkippedSeries& first = plan.skipped.front();
    const std::size_t others = plan.skipped.size() - 1;
    fail(ErrorCode::corrupt_file,
         "{}: nothing can be evaluated: the series {} {}{}; use a shorter --horizon or --season",
         input.name, quoted(first.id), first.reason,
         others == 0 ? "" : fmt::format(", and {} more are like it", others));
  }
  return plan;
}

}  // namespace toto::eval
