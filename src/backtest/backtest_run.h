// A backtest from its settings to its files: the one way the command, the service and Python run
// it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backtest/backtest_files.h"
#include "backtest/backtest_spec.h"
#include "backtest/lookahead.h"
#include "backtest/walk_forward.h"

namespace toto::backtest {

// All that can be known without a model.
struct PreparedBacktest {
  BacktestSpec spec = {};
  std::vector<tables::Bars> bars = {};
  RunPlan plan = {};  // points into `bars`
  std::vector<DataFile> files = {};
  std::vector<std::string> notes = {};  // about the data

  PreparedBacktest() = default;
  PreparedBacktest(PreparedBacktest&&) = default;
  PreparedBacktest& operator=(PreparedBacktest&&) = default;

  std::vector<std::string> warnings() const;  // notes, skipped symbols and impossible fills
  void require_symbols() const;               // Error(corrupt_file) if no symbol can be run
};

// `earlier` are the data files of the run that is repeated, `origin` the path of its results.json;
// both may be empty. Error(corrupt_file) for changes of price beyond float32.
PreparedBacktest prepare(BacktestSpec spec, std::vector<tables::Bars> bars,
                         std::span<const DataFile> earlier = {}, const std::string& origin = {});

using ProgressTo = std::function<void(std::size_t done, std::size_t total)>;

// None of these changes a result. All are called on the caller's thread.
struct RunHooks {
  std::function<bool()> cancelled = {};  // asked between steps; true ends with Error(cancelled)
  // Called as a job begins ("forecast", counted in "forecasts"); answers with what to call as it
  // proceeds.
  std::function<ProgressTo(std::string_view job, std::string_view unit)> progress = {};
  std::string cache_folder = {};  // where forecasts are kept for later runs; empty: nowhere
  bool reuse_prefixes = true;     // false: every context is computed from its beginning
  bool report = true;             // without, neither the report nor its lag test is made
};

struct BacktestRun {
  std::vector<SymbolResult> results = {};  // point into PreparedBacktest::bars
  LookaheadCheck lookahead = {};
  std::string results_json = {};
  std::string report_html = {};  // empty unless asked for
  std::size_t num_forecasts = 0;
  std::string work = {};                   // a sentence about the work of the network
  std::vector<std::string> warnings = {};  // forecasts that could not be kept

  void require_proof() const;  // Error(internal) if the no-lookahead proof failed
};

// `model` is the model's name in results and report. At least one symbol.
BacktestRun run(const PreparedBacktest& prepared, const Engine& engine, const std::string& model,
                const RunHooks& hooks = {});

// The files of a run, results.json last: with it the run is complete.
struct RunFile {
  std::string_view name;  // "forecasts.csv"
  void (*write)(const BacktestRun& run, const TextSink& sink);
};
std::span<const RunFile> run_files() noexcept;

}  // namespace toto::backtest
