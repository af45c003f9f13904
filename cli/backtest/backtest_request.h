// The request of one `toto backtest`: flags, a file of settings and those of an earlier run become
// one spec, checked before any data is read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backtest/backtest_run.h"
#include "backtest/backtest_spec.h"
#include "backtest/data_files.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/settings/settings.h"

namespace toto::cli {

struct BacktestFlags {
  std::vector<std::string> data;
  Flags settings;  // of the run and of the engine
  // None of these changes the results.
  std::optional<std::string> settings_file, from_results, output_dir, json;
  bool no_prefix_reuse = false;
  bool progress = false;
};
void add_backtest_options(Command& command, BacktestFlags& flags);
void add_signal_options(Command& command, BacktestFlags& flags);

struct BacktestRequest {
  backtest::BacktestSpec spec = {};
  Settings engine = {};
  std::string output_dir = "backtest-out";
  std::optional<std::string> json = {};
  bool reuse_prefixes = true;
  bool progress = false;
  // With --from-results and no other DATA: the data files of that run, and the path of its results.
  std::vector<backtest::DataFile> earlier_data = {};
  std::string earlier_results = {};
};

// Error(invalid_argument) naming the flag or variable; Error(not_found, corrupt_file) for the file
// of --settings or --from-results. `command` is named by the messages.
BacktestRequest make_backtest_request(const BacktestFlags& flags, std::string_view command);

// The files of DATA and of --benchmark, which no output may replace.
std::vector<NamedPath> data_paths(const BacktestRequest& request);

// Progress on stderr, Ctrl-C, the cache of forecasts. Refers to `request`.
backtest::RunHooks hooks_of(const BacktestRequest& request);

// Error(corrupt_file) naming the symbols that were skipped; the output of the others is complete.
void require_all_symbols(const backtest::RunPlan& plan);

}  // namespace toto::cli
