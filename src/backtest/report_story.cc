#include "backtest/report_story.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "report/axis.h"

namespace toto::backtest {
namespace {

// Times of the start and of the dates; empty if they are step numbers or outside the calendar.
std::vector<std::int64_t> seconds_of(const tables::Bars& bars,
                                     std::span<const std::size_t> positions) {
  std::vector<std::int64_t> times;
  if (bars.style.steps) return times;
  times.push_back(tables::utc_seconds(bars.times[positions.front() - 1], bars.style));
  for (const std::size_t bar : positions) {
    times.push_back(tables::utc_seconds(bars.times[bar], bars.style));
  }
  const bool usable = times.front() >= report::kEarliestTime && times.back() <= report::kLatestTime;
  return usable ? times : std::vector<std::int64_t>();
}

// The close of the benchmark known at each date, relative to that at the start: its buy-hold
// without costs. Empty if its bars begin after the start.
Track benchmark_track(const Story& story, const tables::Bars& bars) {
  Track track{.label = bars.symbol};
  if (story.seconds.empty() || bars.style.steps) return track;
  std::vector<std::int64_t> times;
  times.reserve(bars.times.size());
  for (const tables::Ticks time : bars.times) {
    times.push_back(tables::utc_seconds(time, bars.style));
  }
  const auto close_at = [&](std::int64_t time) {
    const auto after = std::upper_bound(times.begin(), times.end(), time);
    return after == times.begin() ? kUndefined
                                  : bars.close[static_cast<std::size_t>(after - times.begin()) - 1];
  };
  const double start = close_at(story.seconds.front());
  if (std::isnan(start)) return track;
  double before = 1;
  for (std::size_t i = 0; i < story.count(); ++i) {
    const double equity = close_at(story.seconds[i + 1]) / start;
    track.equity.push_back(equity);
    track.returns.push_back(equity / before - 1);
    before = equity;
  }
  return track;
}

void finish(Story& story, const tables::Bars* benchmark) {
  const std::vector<double> held = story.buy_hold().returns;
  for (Track& track : story.tracks) {
    if (track.strategy == &benchmark_strategy()) continue;
    ++story.num_tried;
    const auto key = [&](std::size_t i) {
      const TradingMetrics& metrics = story.tracks[i].metrics;
      const double sharpe = std::isnan(metrics.sharpe) ? -HUGE_VAL : metrics.sharpe;
      return std::tuple(i != 0, sharpe, metrics.total_return);
    };
    const auto position = static_cast<std::size_t>(&track - story.tracks.data());
    if (key(position) > key(story.best)) story.best = position;
  }
  if (benchmark == nullptr) return;
  Track track = benchmark_track(story, *benchmark);
  if (track.equity.empty()) return;
  const Simulation alone{.equity = track.equity, .returns = track.returns};
  track.metrics = trading_metrics(alone, story.bars_per_year, held);
  track.metrics.exposure = 1;
  for (Track& other : story.tracks) {
    const TradingMetrics against = trading_metrics(
        {.equity = other.equity, .returns = other.returns}, story.bars_per_year, track.returns);
    other.other_alpha = against.alpha;
    other.other_beta = against.beta;
  }
  story.tracks.push_back(std::move(track));
}

}  // namespace

Story story_of(const SymbolResult& result, const tables::Bars* benchmark) {
  Story story{.name = result.plan.bars->symbol,
              .clock = result.plan.bars,
              .bars_per_year = result.plan.bars_per_year};
  story.bars.resize(result.plan.count);
  std::iota(story.bars.begin(), story.bars.end(), result.plan.first);
  story.seconds = seconds_of(*story.clock, story.bars);
  for (const StrategyResult& strategy : result.strategies) {
    story.tracks.push_back({.strategy = strategy.strategy,
                            .label = std::string(strategy.strategy->name),
                            .equity = strategy.simulation.equity,
                            .returns = strategy.simulation.returns,
                            .metrics = strategy.metrics,
                            .trades = strategy.simulation.trades});
  }
  finish(story, benchmark);
  return story;
}

std::optional<Story> portfolio_story(std::span<const SymbolResult> results,
                                     const tables::Bars* benchmark) {
  if (results.size() < 2) return {};
  const std::optional<Portfolio> portfolio = portfolio_of(results);
  if (!portfolio || portfolio->bars.size() < 2) return {};
  Story story{.name = "Portfolio",
              .clock = portfolio->clock,
              .bars = portfolio->bars,
              .bars_per_year = portfolio->bars_per_year};
  story.seconds = seconds_of(*story.clock, story.bars);
  for (std::size_t s = 0; s < portfolio->strategies.size(); ++s) {
    const Simulation& together = portfolio->strategies[s];
    const Strategy* strategy = results.front().strategies[s].strategy;
    Track track{.strategy = strategy,
                .label = std::string(strategy->name),
                .equity = together.equity,
                .returns = together.returns};
    track.metrics =
        trading_metrics(together, story.bars_per_year,
                        s == 0 ? std::span<const double>() : portfolio->strategies[0].returns);
    track.metrics.exposure = 0;
    for (const SymbolResult& result : results) {
      const TradingMetrics& metrics = result.strategies[s].metrics;
      track.metrics.exposure += metrics.exposure / static_cast<double>(results.size());
      track.metrics.trades += metrics.trades;
    }
    story.tracks.push_back(std::move(track));
  }
  finish(story, benchmark);
  return story;
}

Interval sharpe_interval(std::span<const double> returns, double bars_per_year) {
  constexpr double kTwoSided = 1.959963984540054;  // 95 % of a normal distribution
  const double sharpe = sharpe_ratio(returns, bars_per_year);
  const double error = kTwoSided * sharpe_error(returns) * std::sqrt(bars_per_year);
  return {sharpe - error, sharpe + error};
}

std::vector<DrawdownSpan> drawdown_spans(std::span<const double> equity, std::size_t most) {
  std::vector<DrawdownSpan> spans;
  double peak = 1;
  std::ptrdiff_t peak_at = -1;
  bool below = false;
  for (std::size_t i = 0; i < equity.size(); ++i) {
    const auto here = static_cast<std::ptrdiff_t>(i);
    if (equity[i] >= peak) {
      if (below) spans.back().recovered = i;
      below = false;
      peak = equity[i];
      peak_at = here;
      continue;
    }
    const double depth = equity[i] / peak - 1;
    if (!below) spans.push_back({.depth = depth, .peak = peak_at, .trough = i});
    below = true;
    if (depth < spans.back().depth) {
      spans.back().depth = depth;
      spans.back().trough = i;
    }
  }
  std::ranges::sort(spans, {}, [](const DrawdownSpan& span) {
    return std::pair(span.depth, span.peak);  // of equal ones the earlier first
  });
  if (spans.size() > most) spans.resize(most);
  return spans;
}

}  // namespace toto::backtest
