// Compares two results.json: did a change of model, mode or code change the returns?
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace toto::backtest {

// Absolute differences of total return.
inline constexpr double kWarnDifference = 0.01;
inline constexpr double kFailDifference = 0.05;

// A figure of both runs. Null on both sides is equal; on one side only it fails, and so does one
// that a side does not have.
struct ComparedFigure {
  enum class State { number, null, absent };
  double a = 0, b = 0;  // NaN unless a number
  State state_a = State::absent, state_b = State::absent;
  // Empty, or why it fails: "Sharpe is null in A only".
  std::string one_sided(std::string_view name) const;
};

enum class Verdict { same, warn, fail };

// A strategy of a symbol.
struct ComparedStrategy {
  std::string symbol = {}, strategy = {};
  ComparedFigure total_return = {}, sharpe = {}, drawdown = {};
  Verdict verdict = Verdict::same;
  std::string reason = {};  // of a failure
};

// Close MAE as a share of persistence's.
struct ComparedForecast {
  std::string symbol = {};
  ComparedFigure relative_mae = {};
  Verdict verdict = Verdict::same;
  std::string reason = {};  // of a failure
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
