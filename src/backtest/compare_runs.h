// Compares two results.json: did a change of model, mode or code change the returns?
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/json.h"

namespace toto::backtest {

// Absolute differences of total return.
inline constexpr double kWarnDifference = 0.01;
inline constexpr double kFailDifference = 0.05;

// A strategy of a symbol on both sides; NaN if null or absent.
struct ComparedStrategy {
  enum class Verdict { same, warn, fail };
  std::string symbol, strategy;
  double return_a = 0, return_b = 0;
  double sharpe_a = 0, sharpe_b = 0;
  double drawdown_a = 0, drawdown_b = 0;
  Verdict verdict = Verdict::same;
  std::string reason;  // of a failure
};

// Close MAE as a share of persistence's.
struct ComparedForecast {
  std::string symbol;
  double relative_mae_a = 0, relative_mae_b = 0;
};

struct RunComparison {
  std::vector<ComparedStrategy> strategies;
  std::vector<ComparedForecast> forecasts;
  std::size_t num_warnings = 0, num_failures = 0;
  bool passed() const { return num_failures == 0 && !strategies.empty(); }
};

// Error(not_found, corrupt_file) for a file that holds no results.
io::Json read_results(const std::string& path);
// Both from read_results; `path_a` and `path_b` are named in errors.
RunComparison compare(const io::Json& a, const io::Json& b, const std::string& path_a,
                      const std::string& path_b);

std::string comparison_text(const RunComparison& comparison);  // a table for people
std::string comparison_json(const RunComparison& comparison);

}  // namespace toto::backtest
