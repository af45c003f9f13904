// The decision after the last bar: the orders of each strategy for the coming bar, made by the code
// of the backtest. A backtest with the coming bars appended makes the same decision, bit for bit.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backtest/backtest_run.h"
#include "backtest/forecast_source.h"

namespace toto::backtest {

struct StrategySignal {
  const Strategy* strategy = nullptr;
  BarOrders orders = {};
  std::string reason = {};  // a sentence
};

struct SymbolSignal {
  std::string symbol = {};
  tables::Asset asset = tables::Asset::stock;
  std::string last_time = {}, target_time = {};  // as the file writes times
  double last_price = 0;                         // the close of the last bar
  BarForecast forecast = {};                     // of the target bar
  double probability_up = 0;                     // that it closes above `last_price`
  bool fill_at_close = false;                    // market fills happen at the close before
  std::vector<StrategySignal> strategies = {};
};

// `bars` with the `lag` coming bars of each symbol. Their times follow the frequency of the file;
// their prices repeat the last close: no decision reads them.
std::vector<tables::Bars> with_coming_bars(std::span<const tables::Bars> bars, std::size_t lag);

// A signal before the model is needed. Its bars include the coming ones: the walk has
// `spec.windows` target bars, those included. Error(corrupt_file) as prepare() has it.
PreparedBacktest prepare_signal(BacktestSpec spec, tables::BarFiles data);

// Plans of bars with the coming ones, which must outlive the call.
std::vector<SymbolSignal> signals_of(std::span<const SymbolPlan> plans,
                                     std::span<const Strategy* const> strategies,
                                     ForecastSource& source);

struct SignalRun {
  std::vector<SymbolSignal> signals = {};
  std::string json = {};
  std::size_t num_forecasts = 0;
  std::vector<std::string> warnings = {};  // about forecasts that could not be cached
};
// `model` is the model's name in the JSON. At least one symbol. Hooks as in run().
SignalRun run_signal(const PreparedBacktest& prepared, const Engine& engine,
                     const std::string& model, const RunHooks& hooks = {});

// The JSON of `toto signal`, POST /v1/signal and Engine.signal.
std::string signal_json(std::span<const SymbolSignal> signals, const tables::EngineBlock& engine,
                        const PreparedBacktest& prepared);

// ------------------------------------------------------------------------------------------ words

std::string side_of(const StrategySignal& signal);  // "long", "short", "flat" or "both"
// Of one leg: "market at the open", "limit 101.20"; "" of a flat one.
std::string entry_of(const Order& order, bool fill_at_close);
std::string take_profit_of(const Order& order);  // its price, "-" without one
std::string exit_of(const Strategy& strategy, const Order& order);
// One table per symbol, for a terminal or a file; no line is cut.
std::string signal_text(std::span<const SymbolSignal> signals);

}  // namespace toto::backtest
