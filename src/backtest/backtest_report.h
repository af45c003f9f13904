// The report of a run: one self-contained HTML file that says in plain words what was earned and
// whether that beats buy-hold.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "backtest/lookahead.h"
#include "backtest/signal.h"
#include "backtest/walk_forward.h"
#include "tables/forecast_file.h"

namespace toto::backtest {

// Views of the caller's data.
struct ReportInput {
  std::span<const SymbolResult> results;
  tables::EngineBlock engine;
  const BacktestSpec& spec;
  const LookaheadCheck& lookahead;
  std::span<const std::string> notes;  // about the data
  std::span<const SkippedSymbol> skipped;
  std::size_t other_lag = 0;                         // 0: no run with another decision lag
  std::span<const SymbolResult> other_results = {};  // of that run
  std::span<const SymbolSignal> signals = {};        // of the coming bar, of telling_symbols
  const tables::Bars* benchmark = nullptr;           // of --benchmark
};

// Symbols with charts and long tables; a page with more is too long to read.
inline constexpr std::size_t kMaxDetailed = 12;

std::string report_html(const ReportInput& input);

// "AAPL, GOOGL: stock, 252 bars per year", one line per combination.
std::vector<std::string> calendar_lines(std::span<const SymbolResult> results);

// "No lookahead: all of 50 decisions ...", or how many decisions changed.
std::string lookahead_sentence(const LookaheadCheck& check);

}  // namespace toto::backtest
