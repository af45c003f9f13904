// Proves that no decision uses later data: every later row is replaced by noise, the decision is
// repeated, and must give the same bits.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "backtest/forecast_source.h"
#include "backtest/walk_forward.h"

namespace toto::backtest {

struct LookaheadCheck {
  std::size_t num_checked = 0, num_decisions = 0;
  std::size_t num_different = 0;
  std::string first_difference = {};  // symbol, time and what differs
  // The first difference is not lookahead: the run's forecast is not what the source gives for the
  // very same rows. Only a forecast kept by an earlier run can differ in this way.
  bool kept_forecast_differs = false;
  bool passed() const { return num_different == 0 && num_checked > 0; }
  std::string failure() const;  // a sentence for a check that has not passed
};

enum class Checked { sample, all };  // sample: a few decisions of a few symbols, spread evenly

// `source` must not use the cache of the run it checks.
LookaheadCheck check_no_lookahead(
    std::span<const SymbolResult> results, ForecastSource& source, Checked which,
    const std::function<void(std::size_t done, std::size_t total)>& progress = {});

}  // namespace toto::backtest
