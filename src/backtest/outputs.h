// The files of a run that machines read: results.json, forecasts.csv, trades.csv, returns.csv.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "backtest/data_files.h"
#include "backtest/run.h"
#include "io/forecast_file.h"
#include "io/json.h"

namespace toto::backtest {

inline constexpr int kSchemaVersion = 1;

using io::TextSink;

// `settings` is the object a run can be repeated from, `files` what it was made from.
std::string results_json(std::span<const SymbolResult> results, const io::EngineBlock& engine,
                         const io::Json& settings, std::span<const DataFile> files);

// `symbol,decision_time,target_time,target,point,0.1,...,0.9,actual`, in prices.
void write_forecasts(std::span<const SymbolResult> results, const TextSink& sink);

// `symbol,strategy,side,entry_time,entry_price,exit_time,exit_price,fee,return`.
void write_trades(std::span<const SymbolResult> results, const TextSink& sink);

// `date,SYM:strategy,...`: simple returns a bar, empty where the time is no target bar of a symbol.
void write_returns(std::span<const SymbolResult> results, const TextSink& sink);

}  // namespace toto::backtest
