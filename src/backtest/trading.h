// From orders to money: when an order fills, what a trade earns, and the equity it leaves.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "tables/bars.h"

namespace toto::backtest {

enum class Side : int { sell = -1, flat = 0, buy = 1 };  // short, no position, long
std::string_view name_of(Side side) noexcept;            // "short", "flat", "long"
constexpr double sign(Side side) noexcept { return static_cast<double>(side); }
constexpr Side opposite(Side side) noexcept { return static_cast<Side>(-static_cast<int>(side)); }

// A figure that the data leave undefined.
inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

inline constexpr double kNoPrice = std::numeric_limits<double>::quiet_NaN();

struct Order {
  Side side = Side::flat;
  bool at_limit = false;  // else in at the market
  double entry = kNoPrice;
  double take_profit = kNoPrice;  // none: out at the close
};

// The orders of one target bar; a strategy that holds uses only the side of the first one.
struct BarOrders {
  std::array<Order, 2> legs = {};
  int num_legs = 1;
  double share = 1;  // of the equity, for each leg
};

inline constexpr double kBasisPoint = 1e-4;

struct Costs {
  double fee = 0;              // of the notional, on each side
  double slippage = 0;         // of the price, on each market fill
  double borrow = 0;           // of the notional, for each bar held short
  bool fill_at_close = false;  // fills at an open happen at the close before it
};

struct Trade {
  Side side = Side::flat;
  std::size_t entry_bar = 0, exit_bar = 0;  // where the fills happened
  double entry_price = 0, exit_price = 0;   // the fills
  double share = 1;                         // notional, as a share of the equity at entry
  double fee = 0, net_return = 0;           // shares of the equity at entry
};

// One strategy over consecutive target bars. `equity` starts from 1 before the first of them.
struct Simulation {
  std::vector<Trade> trades = {};      // by their exits
  std::vector<double> equity = {};     // [target bar], at its close
  std::vector<double> returns = {};    // [target bar], from close to close
  std::size_t bars_held = 0;           // target bars with a position
  std::size_t num_ambiguous_bars = 0;  // where the order of entry and take-profit is unknown
};

// One trade for each run of equal sides: in at the open of its first bar, out at the open of the
// bar where the side changes, or at the last close. Bar first + k is the k-th target bar; first is
// at least 1 where fills move to the close before.
Simulation simulate_holding(const tables::Bars& bars, std::size_t first,
                            std::span<const BarOrders> orders, const Costs& costs);

// A round trip inside each bar, for each order that fills.
Simulation simulate_round_trips(const tables::Bars& bars, std::size_t first,
                                std::span<const BarOrders> orders, const Costs& costs);

// The return of the orders of one bar, as a share of the equity.
double round_trip_return(const tables::Bars& bars, std::size_t bar, const BarOrders& orders,
                         const Costs& costs);

}  // namespace toto::backtest
