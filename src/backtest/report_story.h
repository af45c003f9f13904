// What the report tells about one symbol or the portfolio: the money of each strategy over the same
// dates, the best of them, and its benchmarks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backtest/universe.h"

namespace toto::backtest {

// One way to have invested.
struct Track {
  const Strategy* strategy = nullptr;  // nullptr: the file of --benchmark
  std::string label = {};
  std::vector<double> equity = {}, returns = {};  // [date]; from 1 before the first
  TradingMetrics metrics = {};
  std::span<const Trade> trades = {};  // of a symbol
  // Against the file of --benchmark, where there is one.
  double other_alpha = kUndefined, other_beta = kUndefined;
};

struct Story {
  std::string name = {};                   // the symbol, "Portfolio"
  const tables::Bars* clock = nullptr;     // whose bars the dates are
  std::vector<std::size_t> bars = {};      // [date], of the clock
  std::vector<std::int64_t> seconds = {};  // [1 + date], with the start; empty without a calendar
  double bars_per_year = 0;
  std::vector<Track> tracks = {};  // the strategies of the run, then the benchmark file
  std::size_t best = 0;  // the highest Sharpe ratio among strategies; buy-hold if there is no other
  std::size_t num_tried = 0;  // strategies besides buy-hold

  const Track& best_track() const { return tracks[best]; }
  const Track& buy_hold() const { return tracks.front(); }
  const Track* benchmark_file() const {
    return tracks.back().strategy == nullptr ? &tracks.back() : nullptr;
  }
  std::size_t count() const { return bars.size(); }
  bool too_short() const { return too_short_to_annualise(count(), bars_per_year); }
  std::string date(std::size_t i) const { return clock->time_text(bars[i]); }
  std::string start_date() const { return clock->time_text(bars.front() - 1); }
};

// `benchmark` may be nullptr.
Story story_of(const SymbolResult& result, const tables::Bars* benchmark);
// None for one symbol, and for symbols without two dates in common.
std::optional<Story> portfolio_story(std::span<const SymbolResult> results,
                                     const tables::Bars* benchmark);

// 95 % of the Sharpe ratio of these returns, annualised: its standard error is that of the
// probabilistic Sharpe ratio. NaN where undefined.
struct Interval {
  double low = kUndefined, high = kUndefined;
};
Interval sharpe_interval(std::span<const double> returns, double bars_per_year);

// The deepest first.
struct DrawdownSpan {
  double depth = 0;          // below 0
  std::ptrdiff_t peak = -1;  // the last date at the peak; -1: the start
  std::size_t trough = 0;
  std::optional<std::size_t> recovered = {};  // the first date at the peak again
};
std::vector<DrawdownSpan> drawdown_spans(std::span<const double> equity, std::size_t most);

}  // namespace toto::backtest
