// Runs a backtest, from its settings to its files. Used by the command, the service and Python.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backtest/backtest_files.h"
#include "backtest/backtest_spec.h"
#include "backtest/lookahead.h"
#include "backtest/walk_forward.h"

namespace toto::backtest {

// A backtest before the model is needed: settings, data and plan.
struct PreparedBacktest {
  BacktestSpec spec = {};
  std::vector<tables::Bars> bars = {};
  RunPlan plan = {};  // points into `bars`
  std::vector<DataFile> files = {};
  std::vector<std::string> notes = {};         // about the data
  std::optional<tables::Bars> benchmark = {};  // of spec.benchmark, for the report

  PreparedBacktest() = default;
  PreparedBacktest(PreparedBacktest&&) = default;
  PreparedBacktest& operator=(PreparedBacktest&&) = default;

  std::vector<std::string> warnings() const;  // notes, skipped symbols and impossible fills
  void require_symbols() const;               // Error(corrupt_file) if no symbol can be run
};

// `earlier` are the data files of the run that is repeated, `origin` the path of its results.json;
// both may be empty. Error(corrupt_file) for changes of price beyond float32.
PreparedBacktest prepare(BacktestSpec spec, tables::BarFiles data,
                         std::span<const DataFile> earlier = {}, const std::string& origin = {});

// The bars of spec.benchmark, for PreparedBacktest::benchmark; none without one.
// From a file: Error(corrupt_file) unless it holds one symbol.
std::optional<tables::Bars> read_benchmark(const BacktestSpec& spec);
// From the tables of a request, which then do not trade it: Error(invalid_argument) unless the name
// is one of theirs.
std::optional<tables::Bars> take_benchmark(const BacktestSpec& spec, tables::BarFiles& data);

using ProgressTo = std::function<void(std::size_t done, std::size_t total)>;

// They do not change results. All are called on the caller's thread.
struct RunHooks {
  std::function<bool()> cancelled = {};  // called between steps; true: Error(cancelled)
  // Called when a job begins ("forecast", counted in "forecasts"); returns its progress callback.
  std::function<ProgressTo(std::string_view job, std::string_view unit)> progress = {};
  std::string cache_folder = {};  // whose subfolder keeps forecasts for later runs; empty: none
  bool reuse_prefixes = true;     // false: every context is computed from its beginning
  bool report = true;             // false: no report and no lag test
};

struct BacktestRun {
  std::vector<SymbolResult> results = {};  // point into PreparedBacktest::bars
  LookaheadCheck lookahead = {};
  std::string results_json = {};
  std::string report_html = {};  // empty unless asked for
  std::size_t num_forecasts = 0;
  std::string work = {};                   // a sentence about the network's work
  std::vector<std::string> warnings = {};  // about forecasts that could not be cached

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
