// The walk forward: target bars, their forecasts, and the trades of each strategy.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backtest/accuracy.h"
#include "backtest/backtest_spec.h"
#include "backtest/forecast_source.h"
#include "backtest/trading_metrics.h"
#include "tables/bars.h"

namespace toto::backtest {

// The fewest points of the transformed series at the first decision of a symbol.
inline constexpr std::size_t kMinPoints = 32;
// By default a symbol has this many target bars, or as many as leave kEnoughPoints there.
inline constexpr std::size_t kDefaultWindows = 250;
inline constexpr std::size_t kEnoughPoints = 128;

// A warning about impossible fills; empty if these settings have none.
std::string fill_warning(const BacktestSpec& spec);

// One symbol's part of a run. Target bar k is bars[first + k].
struct SymbolPlan {
  const tables::Bars* bars = nullptr;
  std::string_view asset_reason = {};  // why rules.asset is what it is
  double bars_per_year = 0;
  std::size_t first = 0, count = 0;
  Rules rules = {};
};

struct SkippedSymbol {
  std::string symbol;
  std::string reason;  // a sentence with the file
};

struct RunPlan {
  std::vector<SymbolPlan> symbols;
  std::vector<SkippedSymbol> skipped;  // too little history, or no target bar
  std::vector<std::string> notes;      // on symbols with fewer target bars than usual
};
// Sentences about the data for the reader of the results.
std::vector<std::string> notes_on(std::span<const tables::Bars> bars, const BacktestSpec& spec);

// `bars` must outlive the plan. Error(corrupt_file) for changes beyond float32.
RunPlan plan_run(std::span<const tables::Bars> bars, const BacktestSpec& spec);

// The same target bars with the decision lag of `spec`, of the symbols that have enough history for
// it. Error as plan_run.
RunPlan with_lag(const RunPlan& plan, const BacktestSpec& spec);

struct StrategyResult {
  const Strategy* strategy = nullptr;
  Simulation simulation = {};
  TradingMetrics metrics = {};
};

struct SymbolResult {
  SymbolPlan plan = {};
  std::vector<BarForecast> forecasts = {};  // [target bar]
  std::vector<StrategyResult> strategies = {};
  std::array<ForecastAccuracy, tables::kTargets.size()> accuracy = {};  // in the order of kTargets
  std::size_t incoherent_bars = 0;  // predicted bars that cannot exist, see is_coherent()

  const StrategyResult* find(const Strategy& strategy) const;  // nullptr if it did not run
};

// `benchmark`: buy-hold's returns; empty for buy-hold itself.
StrategyResult run_strategy(const Strategy& strategy, const SymbolPlan& plan,
                            std::span<const BarForecast> forecasts, const Rules& rules,
                            std::span<const double> benchmark = {});

// The forecasts of every target bar of every symbol, in one request to the source.
std::vector<std::vector<BarForecast>> forecast_all(std::span<const SymbolPlan> plans,
                                                   ForecastSource& source);

// All strategies on them.
std::vector<SymbolResult> evaluate(std::span<const SymbolPlan> plans,
                                   std::vector<std::vector<BarForecast>> forecasts,
                                   std::span<const Strategy* const> strategies);

}  // namespace toto::backtest
