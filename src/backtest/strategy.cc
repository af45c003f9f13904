#include "backtest/strategy.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "io/json.h"

namespace toto::backtest {
namespace {

constexpr std::array<std::string_view, kStrategies.size()> kNames = {
    "buy-hold",         "simple",  "all-signals", "unprofit-shutdown", "ci-guard",
    "entry-takeprofit", "highlow", "maxdiff",     "maxdiff-alwayson"};

// Factors on the predicted low and high, applied to the limit prices made of them.
struct Offsets {
  double low = 0;
  double high = 0;
};

class Decider {
 public:
  Decider(Strategy strategy, const Bars& bars, std::size_t first,
          std::span<const BarForecast> forecasts, const Rules& rules)
      : strategy_(strategy), bars_(bars), first_(first), forecasts_(forecasts), rules_(rules) {}

  std::vector<BarOrders> decide() const {
    if (strategy_ == Strategy::unprofit_shutdown) return shut_down();
    if (rules_.tune_offsets && strategy_ >= Strategy::highlow) return tuned();
    std::vector<BarOrders> orders(forecasts_.size());
    for (std::size_t k = 0; k < orders.size(); ++k) {
      if (holds(strategy_)) {
        orders[k].legs[0].side = allowed(held_side(k));
      } else {
        orders[k] = bar_orders(k, {});
      }
    }
    return orders;
  }

 private:
  double last(std::size_t k, Target target) const {
    return bars_.prices(target)[first_ + k - rules_.lag];
  }
  double point(std::size_t k, Target target) const {
    return forecast_of(forecasts_[k], target).point;
  }
  // Of the predicted price over the last close.
  double change(std::size_t k, Target target) const {
    return point(k, target) / last(k, Target::close) - 1;
  }
  Side allowed(Side side) const {
    return rules_.asset == Asset::crypto && side == Side::sell ? Side::flat : side;
  }

  Side simple_side(std::size_t k) const {
    return change(k, Target::close) > 0 ? Side::buy : Side::sell;
  }

  Side all_signals_side(std::size_t k) const {
    const auto all = [&](auto moves) {
      return moves(Target::close) && moves(Target::high) && moves(Target::low);
    };
    if (all([&](Target target) { return point(k, target) > last(k, target); })) return Side::buy;
    if (all([&](Target target) { return point(k, target) < last(k, target); })) return Side::sell;
    return Side::flat;
  }

  Side guarded_side(std::size_t k) const {
    const auto& quantiles = forecast_of(forecasts_[k], Target::close).quantiles;
    const double width =
        rules_.ci_multiplier * (quantiles[5] - quantiles[3]) / last(k, Target::close);
    const double expected = change(k, Target::close);
    if (expected > width) return Side::buy;
    return expected < -width ? Side::sell : Side::flat;
  }

  Side held_side(std::size_t k) const {
    switch (strategy_) {
      case Strategy::simple:
        return simple_side(k);
      case Strategy::all_signals:
        return all_signals_side(k);
      case Strategy::ci_guard:
        return guarded_side(k);
      default:
        return Side::buy;
    }
  }

  // Simple, but out of a direction whose latest trade known at the decision lost.
  std::vector<BarOrders> shut_down() const {
    std::vector<BarOrders> orders =
        Decider(Strategy::simple, bars_, first_, forecasts_, rules_).decide();
    const Simulation simple = simulate_holding(bars_, first_, orders, rules_.costs);
    std::array<double, 2> latest = {};  // returns of the latest long and short trade
    const auto slot = [](Side side) { return side == Side::buy ? 0u : 1u; };
    auto closed = simple.trades.begin();
    for (std::size_t k = 0; k < orders.size(); ++k) {
      const std::size_t decision = first_ + k - rules_.lag;
      for (; closed != simple.trades.end() && closed->exit_bar <= decision; ++closed) {
        latest[slot(closed->side)] = closed->net_return;
      }
      Side& side = orders[k].legs[0].side;
      if (side != Side::flat && latest[slot(side)] < 0) side = Side::flat;
    }
    return orders;
  }

  BarOrders bar_orders(std::size_t k, const Offsets& offsets) const {
    const double low = point(k, Target::low) * (1 + offsets.low);
    const double high = point(k, Target::high) * (1 + offsets.high);
    const auto leg = [&](Side side, bool limit_entry, bool take_profit) {
      const bool buys = side == Side::buy;
      return Order{.side = allowed(side),
                   .at_limit = limit_entry,
                   .entry = limit_entry ? (buys ? low : high) : kNoPrice,
                   .take_profit = take_profit ? (buys ? high : low) : kNoPrice};
    };
    BarOrders orders;
    if (strategy_ == Strategy::entry_takeprofit) {
      orders.legs[0] = leg(simple_side(k), false, true);
    } else if (strategy_ == Strategy::highlow) {
      orders.legs[0] = leg(simple_side(k), true, false);
    } else if (!(low < high)) {
      return orders;  // maxdiff needs room between its prices
    } else if (strategy_ == Strategy::maxdiff) {
      const bool up = change(k, Target::high) + change(k, Target::low) > 0;
      orders.legs[0] = leg(up ? Side::buy : Side::sell, true, true);
    } else {
      orders.legs = {leg(Side::buy, true, true), leg(Side::sell, true, true)};
      orders.num_legs = rules_.asset == Asset::crypto ? 1 : 2;
      orders.share = 1.0 / orders.num_legs;
    }
    return orders;
  }

  // For each decision the offsets that earned most on the target bars that were over by then; none
  // unless they beat none.
  std::vector<BarOrders> tuned() const {
    constexpr std::array<double, 7> kGrid = {0, -0.0025, 0.0025, -0.005, 0.005, -0.01, 0.01};
    constexpr std::size_t kPairs = kGrid.size() * kGrid.size();
    const auto pair = [&](std::size_t i) {
      return Offsets{kGrid[i / kGrid.size()], kGrid[i % kGrid.size()]};
    };
    std::array<double, kPairs> earned = {};
    std::vector<BarOrders> orders(forecasts_.size());
    for (std::size_t k = 0; k < orders.size(); ++k) {
      if (k >= rules_.lag) {
        const std::size_t over = k - rules_.lag;
        for (std::size_t i = 0; i < kPairs; ++i) {
          earned[i] +=
              round_trip_return(bars_, first_ + over, bar_orders(over, pair(i)), rules_.costs);
        }
      }
      const auto best = std::max_element(earned.begin(), earned.end()) - earned.begin();
      orders[k] = bar_orders(k, pair(static_cast<std::size_t>(best)));
    }
    return orders;
  }

  Strategy strategy_;
  const Bars& bars_;
  std::size_t first_;
  std::span<const BarForecast> forecasts_;
  const Rules& rules_;
};

}  // namespace

std::string_view name_of(Strategy strategy) noexcept {
  return kNames[static_cast<std::size_t>(strategy)];
}

Strategy parse_strategy(std::string_view name) {
  std::string list;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return kStrategies[i];
    list += (i == 0 ? "" : i + 1 == kNames.size() ? " or " : ", ") + std::string(kNames[i]);
  }
  fail(ErrorCode::invalid_argument, "there is no strategy {}, expected {}", io::quoted(name), list);
}

std::vector<BarOrders> decide(Strategy strategy, const Bars& bars, std::size_t first,
                              std::span<const BarForecast> forecasts, const Rules& rules) {
  return Decider(strategy, bars, first, forecasts, rules).decide();
}

Simulation simulate(Strategy strategy, const Bars& bars, std::size_t first,
                    std::span<const BarOrders> orders, const Costs& costs) {
  return holds(strategy) ? simulate_holding(bars, first, orders, costs)
                         : simulate_round_trips(bars, first, orders, costs);
}

}  // namespace toto::backtest
