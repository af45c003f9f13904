// The files of a run that machines read: results.json, forecasts.csv, trades.csv, returns.csv.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backtest/data_files.h"
#include "backtest/walk_forward.h"
#include "tables/forecast_file.h"

namespace toto::backtest {

inline constexpr int kSchemaVersion = 1;

using tables::TextSink;

// `warnings` are those about settings and data, `files` the files the run was made from. A run can
// be repeated from "settings".
std::string results_json(std::span<const SymbolResult> results, const tables::EngineBlock& engine,
                         const BacktestSpec& spec, std::span<const std::string> warnings,
                         std::span<const DataFile> files);

// `symbol,decision_time,target_time,target,point,0.1,...,0.9,actual`, in prices.
void write_forecasts(std::span<const SymbolResult> results, const TextSink& sink);

// `symbol,strategy,side,entry_time,entry_price,exit_time,exit_price,fee,return`.
void write_trades(std::span<const SymbolResult> results, const TextSink& sink);

// `date,SYM:strategy,...`: simple returns per bar, empty at times that are not target bars of a
// symbol.
void write_returns(std::span<const SymbolResult> results, const TextSink& sink);

}  // namespace toto::backtest
