// The walk forward: which bars are targets, what was forecast for them, what each strategy made of
// it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backtest/accuracy.h"
#include "backtest/bars.h"
#include "backtest/calendar.h"
#include "backtest/forecast_source.h"
#include "backtest/metrics.h"
#include "backtest/strategy.h"
#include "backtest/transform.h"

namespace toto::backtest {

// Points of the transformed series there must be at the first decision of a symbol.
inline constexpr std::size_t kMinPoints = 32;
inline constexpr std::size_t kMaxLag = 64;

// A bound of the target bars, both inclusive: a date without a clock is the whole day, a month
// without a day the whole month. A zone is minded where the file has one too.
struct TimeBound {
  std::string text;
  io::Ticks first = 0, last = 0;  // of the span the text names
  io::TimeStyle style = {};
};
TimeBound parse_bound(std::string_view text);  // Error(invalid_argument)

struct RunOptions {
  int windows = 50;  // target bars from the end, unless a bound is given
  std::optional<TimeBound> from, to;
  std::size_t lag = 1;
  Transform transform = Transform::pct;
  double return_scale = 1;              // see SourceOptions
  std::optional<Asset> asset;           // none: detected
  std::optional<double> bars_per_year;  // none: see bars_per_year()
  std::optional<double> fee_bps;        // none: 5 for stocks, 15 for crypto
  double slippage_bps = 5;
  double borrow_apr = 0;
  bool fill_at_close = false;
  double ci_multiplier = 1;
  bool tune_offsets = false;
  std::vector<Strategy> strategies = {kStrategies.begin(), kStrategies.end()};
};

// What a run with these options promises that no trader can have, a sentence; empty if nothing.
std::string fill_warning(const RunOptions& options);

// One symbol's part of a run. Target bar k is bars[first + k].
struct SymbolPlan {
  const Bars* bars = nullptr;
  double bars_per_year = 0;
  std::size_t first = 0, count = 0;
  Rules rules = {};
};

struct Skipped {
  std::string symbol;
  std::string reason;  // a sentence with the file
};

struct RunPlan {
  std::vector<SymbolPlan> symbols;
  std::vector<Skipped> skipped;  // too little history, or no target bar
};
// What a reader of the results should know about the data, a sentence each.
std::vector<std::string> notes_on(std::span<const Bars> bars, const RunOptions& options);

// `bars` must outlive the plan. Error(corrupt_file) for changes beyond float32.
RunPlan plan_run(std::span<const Bars> bars, const RunOptions& options);

struct StrategyResult {
  Strategy strategy = Strategy::buy_hold;
  Simulation simulation = {};
  TradingMetrics metrics = {};
};

struct SymbolResult {
  SymbolPlan plan = {};
  std::vector<BarForecast> forecasts = {};  // [target bar]
  std::vector<StrategyResult> strategies = {};
  std::array<ForecastAccuracy, kTargets.size()> accuracy = {};  // in the order of kTargets

  const StrategyResult* find(Strategy strategy) const;  // nullptr if it did not run
};

StrategyResult run_strategy(Strategy strategy, const SymbolPlan& plan,
                            std::span<const BarForecast> forecasts, const Rules& rules);

// The forecasts of every target bar of every symbol, asked for at once.
std::vector<std::vector<BarForecast>> forecast_all(std::span<const SymbolPlan> plans,
                                                   ForecastSource& source);

// All strategies on them.
std::vector<SymbolResult> evaluate(std::span<const SymbolPlan> plans,
                                   std::vector<std::vector<BarForecast>> forecasts,
                                   std::span<const Strategy> strategies);

}  // namespace toto::backtest
