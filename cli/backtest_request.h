// What one `toto backtest` was asked to do: flags, a file of settings, or those of an earlier run,
// checked before anything is read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "backtest/run.h"
#include "io/json.h"
#include "settings.h"
#include "toto/toto.h"

namespace toto::cli {

struct BacktestFlags {
  std::vector<std::string> data;
  std::optional<std::string> windows, from, to, decision_lag, context, transform, return_scale,
      point, samples, asset, strategies, ci_multiplier, fill, fee_bps, slippage_bps, borrow_apr;
  bool tune_offsets = false;
  bool prove_no_lookahead = false;
  bool no_lag_test = false;
  // Not part of the settings: they do not change what is computed.
  std::optional<std::string> config, from_results, output_dir, json;
  bool no_prefix_reuse = false;
  bool progress = false;
  CommonFlags common;
};
void add_backtest_options(Command& command, BacktestFlags& flags);

struct BacktestRequest {
  std::vector<std::string> data;
  backtest::RunOptions run;
  ForecastOptions forecast;  // context, point, samples and seed
  bool prove_no_lookahead = false;
  bool lag_test = true;
  std::string output_dir = "backtest-out";
  std::optional<std::string> json;
  bool no_cache = false;
  bool reuse_prefixes = true;
  bool progress = false;
  Settings engine;
  io::Json settings;  // everything above that changes the result, for results.json
};

// Error(invalid_argument) naming the flag; Error(not_found, corrupt_file) for what stands in the
// file of --settings or --from-results.
BacktestRequest make_backtest_request(BacktestFlags flags);

}  // namespace toto::cli
