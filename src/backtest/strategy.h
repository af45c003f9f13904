// What to do on each target bar, from the forecasts made for it.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "backtest/bars.h"
#include "backtest/calendar.h"
#include "backtest/trading.h"

namespace toto::backtest {

inline constexpr std::size_t kNumLevels = 9;  // 0.1, 0.2, ..., 0.9
constexpr double level(std::size_t i) noexcept { return static_cast<double>(i + 1) / 10; }

// Of one price of one target bar, in prices whatever the transform.
struct TargetForecast {
  double point = 0;
  std::array<double, kNumLevels> quantiles = {};
  bool operator==(const TargetForecast&) const = default;
};
using BarForecast = std::array<TargetForecast, kTargets.size()>;  // in the order of kTargets

inline const TargetForecast& forecast_of(const BarForecast& forecast, Target target) {
  return forecast[static_cast<std::size_t>(target)];
}

enum class Strategy {
  buy_hold,
  simple,
  all_signals,
  unprofit_shutdown,
  ci_guard,
  entry_takeprofit,
  highlow,
  maxdiff,
  maxdiff_alwayson,
};
inline constexpr std::array<Strategy, 9> kStrategies = {
    Strategy::buy_hold,          Strategy::simple,   Strategy::all_signals,
    Strategy::unprofit_shutdown, Strategy::ci_guard, Strategy::entry_takeprofit,
    Strategy::highlow,           Strategy::maxdiff,  Strategy::maxdiff_alwayson};
std::string_view name_of(Strategy strategy) noexcept;
Strategy parse_strategy(std::string_view name);  // Error(invalid_argument) lists the names
constexpr bool holds(Strategy strategy) noexcept { return strategy < Strategy::entry_takeprofit; }

struct Rules {
  Asset asset = Asset::stock;  // crypto is never short
  std::size_t lag = 1;         // bars from a decision to its target bar
  double ci_multiplier = 1;
  bool tune_offsets = false;
  Costs costs = {};
};

// The orders of each target bar. Target bar k is bars[first + k], decided after the close of
// bars[first + k - lag]; orders[k] depends on nothing later, whatever the bars hold there.
std::vector<BarOrders> decide(Strategy strategy, const Bars& bars, std::size_t first,
                              std::span<const BarForecast> forecasts, const Rules& rules);

Simulation simulate(Strategy strategy, const Bars& bars, std::size_t first,
                    std::span<const BarOrders> orders, const Costs& costs);

}  // namespace toto::backtest
