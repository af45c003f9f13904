#include "backtest/strategy.h"

#include <algorithm>
#include <string>

#include "backtest/strategy_reasons.h"
#include "base/error.h"
#include "base/text.h"

namespace toto::backtest {
namespace {

using tables::Target;

// ---------------------------------------------------------------------------- holding a position

BarOrders hold(Side side) {
  BarOrders orders;
  orders.legs[0].side = side;
  return orders;
}

Side simple_side(const Outlook& outlook, std::size_t k) {
  return outlook.change(k, Target::close) > 0 ? Side::buy : Side::sell;
}

BarOrders buy_hold(const Outlook&, std::size_t, const Offsets&) { return hold(Side::buy); }

BarOrders simple(const Outlook& outlook, std::size_t k, const Offsets&) {
  return hold(simple_side(outlook, k));
}

// Close, high and low must all point the same way.
BarOrders all_signals(const Outlook& outlook, std::size_t k, const Offsets&) {
  int up = 0, down = 0;
  for (const Target target : {Target::close, Target::high, Target::low}) {
    up += outlook.point(k, target) > outlook.last(k, target) ? 1 : 0;
    down += outlook.point(k, target) < outlook.last(k, target) ? 1 : 0;
  }
  return hold(up == 3 ? Side::buy : down == 3 ? Side::sell : Side::flat);
}

// Out of a direction whose latest trade known at the decision lost.
void shut_down(const Outlook& outlook, std::span<BarOrders> orders) {
  const Simulation unguarded =
      simulate_holding(outlook.bars, outlook.first, orders, outlook.rules.costs);
  std::array<double, 2> latest = {};  // returns of the latest long and short trade
  const auto slot = [](Side side) { return side == Side::buy ? 0u : 1u; };
  auto closed = unguarded.trades.begin();
  for (std::size_t k = 0; k < orders.size(); ++k) {
    const std::size_t decision = outlook.first + k - outlook.rules.lag;
    for (; closed != unguarded.trades.end() && closed->exit_bar <= decision; ++closed) {
      latest[slot(closed->side)] = closed->net_return;
    }
    Side& side = orders[k].legs[0].side;
    if (side != Side::flat && latest[slot(side)] < 0) side = Side::flat;
  }
}

// The expected change must exceed the width of the band from 0.4 to 0.6.
BarOrders ci_guard(const Outlook& outlook, std::size_t k, const Offsets&) {
  const double width = outlook.guard_width(k);
  const double expected = outlook.change(k, Target::close);
  return hold(expected > width ? Side::buy : expected < -width ? Side::sell : Side::flat);
}

// ------------------------------------------------------------------------ round trips within a bar

struct LimitPrices {
  double low, high;
};

LimitPrices limits_of(const Outlook& outlook, std::size_t k, const Offsets& offsets) {
  return {outlook.point(k, Target::low) * (1 + offsets.low),
          outlook.point(k, Target::high) * (1 + offsets.high)};
}

Order leg(Side side, const LimitPrices& limits, bool limit_entry, bool take_profit) {
  const bool buys = side == Side::buy;
  return {.side = side,
          .at_limit = limit_entry,
          .entry = limit_entry ? (buys ? limits.low : limits.high) : kNoPrice,
          .take_profit = take_profit ? (buys ? limits.high : limits.low) : kNoPrice};
}

BarOrders entry_takeprofit(const Outlook& outlook, std::size_t k, const Offsets& offsets) {
  BarOrders orders;
  orders.legs[0] = leg(simple_side(outlook, k), limits_of(outlook, k, offsets), false, true);
  return orders;
}

BarOrders highlow(const Outlook& outlook, std::size_t k, const Offsets& offsets) {
  BarOrders orders;
  orders.legs[0] = leg(simple_side(outlook, k), limits_of(outlook, k, offsets), true, false);
  return orders;
}

// Both need room between the two prices.
BarOrders maxdiff(const Outlook& outlook, std::size_t k, const Offsets& offsets) {
  BarOrders orders;
  const LimitPrices limits = limits_of(outlook, k, offsets);
  const bool up = outlook.change(k, Target::high) + outlook.change(k, Target::low) > 0;
  if (limits.low < limits.high) {
    orders.legs[0] = leg(up ? Side::buy : Side::sell, limits, true, true);
  }
  return orders;
}

BarOrders maxdiff_alwayson(const Outlook& outlook, std::size_t k, const Offsets& offsets) {
  BarOrders orders;
  const LimitPrices limits = limits_of(outlook, k, offsets);
  if (!(limits.low < limits.high)) return orders;
  orders.legs = {leg(Side::buy, limits, true, true), leg(Side::sell, limits, true, true)};
  orders.num_legs = outlook.rules.asset == tables::Asset::crypto ? 1 : 2;
  orders.share = 1.0 / orders.num_legs;
  return orders;
}

constexpr auto kHolding = Strategy::Kind::holding;
constexpr auto kLimit = Strategy::Kind::limit;
constexpr Strategy kStrategies[] = {
    {"buy-hold", kHolding, false, buy_hold, nullptr, reason_of_buy_hold},
    {"simple", kHolding, false, simple, nullptr, reason_of_simple},
    {"all-signals", kHolding, false, all_signals, nullptr, reason_of_all_signals},
    {"unprofit-shutdown", kHolding, false, simple, shut_down, reason_of_shutdown},
    {"ci-guard", kHolding, false, ci_guard, nullptr, reason_of_ci_guard},
    {"entry-takeprofit", kLimit, false, entry_takeprofit, nullptr, reason_of_takeprofit},
    {"highlow", kLimit, true, highlow, nullptr, reason_of_highlow},
    {"maxdiff", kLimit, true, maxdiff, nullptr, reason_of_maxdiff},
    {"maxdiff-alwayson", kLimit, true, maxdiff_alwayson, nullptr, reason_of_both_legs},
};

// ----------------------------------------------------------------------------------------- orders

BarOrders allowed_orders(const Strategy& strategy, const Outlook& outlook, std::size_t k,
                         const Offsets& offsets) {
  BarOrders orders = strategy.decide(outlook, k, offsets);
  for (Order& order : orders.legs) {
    if (outlook.rules.asset == tables::Asset::crypto && order.side == Side::sell) {
      order.side = Side::flat;
    }
  }
  return orders;
}

// For each decision the offsets that earned most on the target bars that were over by then; zero
// unless others earned more.
std::vector<BarOrders> tuned_orders(const Strategy& strategy, const Outlook& outlook) {
  constexpr std::array<double, 7> kGrid = {0, -0.0025, 0.0025, -0.005, 0.005, -0.01, 0.01};
  constexpr std::size_t kPairs = kGrid.size() * kGrid.size();
  const auto pair = [&](std::size_t i) {
    return Offsets{kGrid[i / kGrid.size()], kGrid[i % kGrid.size()]};
  };
  std::array<double, kPairs> earned = {};
  std::vector<BarOrders> orders(outlook.forecasts.size());
  for (std::size_t k = 0; k < orders.size(); ++k) {
    if (k >= outlook.rules.lag) {
      const std::size_t over = k - outlook.rules.lag;
      for (std::size_t i = 0; i < kPairs; ++i) {
        earned[i] += round_trip_return(outlook.bars, outlook.first + over,
                                       allowed_orders(strategy, outlook, over, pair(i)),
                                       outlook.rules.costs);
      }
    }
    const auto best = std::max_element(earned.begin(), earned.end()) - earned.begin();
    orders[k] = allowed_orders(strategy, outlook, k, pair(static_cast<std::size_t>(best)));
  }
  return orders;
}

}  // namespace

std::span<const Strategy> all_strategies() noexcept { return kStrategies; }

std::size_t order_of(const Strategy& strategy) noexcept {
  const auto found = std::ranges::find(kStrategies, strategy.name, &Strategy::name);
  return static_cast<std::size_t>(found - std::begin(kStrategies));
}

const Strategy& parse_strategy(std::string_view name) {
  const auto found = std::ranges::find(kStrategies, name, &Strategy::name);
  if (found != std::end(kStrategies)) return *found;
  std::vector<std::string_view> names;
  for (const Strategy& strategy : kStrategies) names.push_back(strategy.name);
  fail(ErrorCode::invalid_argument, "there is no strategy {}, expected {}", quoted(name),
       alternatives(names));
}

bool is_coherent(const BarForecast& forecast) {
  const double open = forecast_of(forecast, Target::open).point;
  const double close = forecast_of(forecast, Target::close).point;
  return forecast_of(forecast, Target::low).point <= std::min(open, close) &&
         forecast_of(forecast, Target::high).point >= std::max(open, close);
}

std::vector<BarOrders> decide(const Strategy& strategy, const Outlook& outlook) {
  if (outlook.rules.tune_offsets && strategy.tunable) return tuned_orders(strategy, outlook);
  std::vector<BarOrders> orders(outlook.forecasts.size());
  for (std::size_t k = 0; k < orders.size(); ++k) {
    orders[k] = allowed_orders(strategy, outlook, k, {});
  }
  if (strategy.revise != nullptr) strategy.revise(outlook, orders);
  return orders;
}

std::string reason_of(const Strategy& strategy, const Outlook& outlook, std::size_t k,
                      const BarOrders& orders) {
  return (strategy.reason != nullptr ? strategy.reason : reason_of_simple)(outlook, k, orders);
}

Simulation simulate(const Strategy& strategy, const tables::Bars& bars, std::size_t first,
                    std::span<const BarOrders> orders, const Costs& costs) {
  return strategy.kind == Strategy::Kind::holding
             ? simulate_holding(bars, first, orders, costs)
             : simulate_round_trips(bars, first, orders, costs);
}

}  // namespace toto::backtest
