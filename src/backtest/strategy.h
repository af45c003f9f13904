// Strategies: the orders of each target bar, made from its forecasts.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backtest/trading.h"
#include "tables/bars.h"
#include "tables/calendar.h"

namespace toto::backtest {

inline constexpr std::size_t kNumLevels = 9;  // 0.1, 0.2, ..., 0.9
constexpr double level(std::size_t i) noexcept { return static_cast<double>(i + 1) / 10; }

// Of one price of one target bar: prices, also with a transform.
struct TargetForecast {
  double point = 0;
  std::array<double, kNumLevels> quantiles = {};
  bool operator==(const TargetForecast&) const = default;
};
using BarForecast =
    std::array<TargetForecast, tables::kTargets.size()>;  // in the order of kTargets

inline const TargetForecast& forecast_of(const BarForecast& forecast, tables::Target target) {
  return forecast[static_cast<std::size_t>(target)];
}

// Whether such a bar can exist, by the points: the low is not above open and close, the high not
// below them.
bool is_coherent(const BarForecast& forecast);

struct Rules {
  tables::Asset asset = tables::Asset::stock;  // crypto is never short
  std::size_t lag = 1;                         // bars from a decision to its target bar
  double ci_multiplier = 1;
  bool tune_offsets = false;
  Costs costs = {};
};

// All that a strategy may use. Target bar k is bars[first + k], decided after the close of
// bars[first + k - lag]; no later bar may change its orders.
struct Outlook {
  const tables::Bars& bars;
  std::size_t first;
  std::span<const BarForecast> forecasts;  // [target bar]
  const Rules& rules;

  double last(std::size_t k, tables::Target target) const {  // the price at the decision
    return bars.prices(target)[first + k - rules.lag];
  }
  double point(std::size_t k, tables::Target target) const {
    return forecast_of(forecasts[k], target).point;
  }
  double change(std::size_t k, tables::Target target) const {  // from the last close
    return point(k, target) / last(k, tables::Target::close) - 1;
  }
  // Of ci-guard: the band from 0.4 to 0.6 of the close, relative to the last one.
  double guard_width(std::size_t k) const {
    const auto& quantiles = forecast_of(forecasts[k], tables::Target::close).quantiles;
    return rules.ci_multiplier * (quantiles[5] - quantiles[3]) / last(k, tables::Target::close);
  }
};

// Relative shifts of the predicted low and high, from which limit prices are made.
struct Offsets {
  double low = 0;
  double high = 0;
};

// One row of the table of strategies. A new strategy is a new row and its function.
struct Strategy {
  // holding: a position is kept from bar to bar, only the side of the first order counts;
  // limit: a round trip inside each bar.
  enum class Kind { holding, limit };
  std::string_view name;
  Kind kind;
  bool tunable;  // --tune-offsets searches its offsets
  // The orders of target bar k. Short orders of crypto are dropped by the caller.
  BarOrders (*decide)(const Outlook& outlook, std::size_t k, const Offsets& offsets);
  // Optional: changes the orders of all bars by the outcome of earlier ones.
  void (*revise)(const Outlook& outlook, std::span<BarOrders> orders) = nullptr;
  // Optional: why target bar k has these orders, in a sentence.
  std::string (*reason)(const Outlook& outlook, std::size_t k, const BarOrders& orders) = nullptr;
};

// In the order of reports. The first one, buy-hold, is the benchmark and part of every run.
std::span<const Strategy> all_strategies() noexcept;
inline const Strategy& benchmark_strategy() noexcept { return all_strategies().front(); }
// The place in all_strategies(); behind all of them for a strategy that is not in the table.
std::size_t order_of(const Strategy& strategy) noexcept;
const Strategy& parse_strategy(std::string_view name);  // Error(invalid_argument) lists the names

// The orders of each target bar.
std::vector<BarOrders> decide(const Strategy& strategy, const Outlook& outlook);

// Why target bar k has these orders: the strategy's sentence, or what the close is predicted to do.
std::string reason_of(const Strategy& strategy, const Outlook& outlook, std::size_t k,
                      const BarOrders& orders);

Simulation simulate(const Strategy& strategy, const tables::Bars& bars, std::size_t first,
                    std::span<const BarOrders> orders, const Costs& costs);

}  // namespace toto::backtest
