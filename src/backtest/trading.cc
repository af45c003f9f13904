#include "backtest/trading.h"

#include <cmath>
#include <optional>
#include <utility>

namespace toto::backtest {
namespace {

// A market fill pays the slippage: a buyer pays more, a seller gets less.
double market_price(double price, Side side, const Costs& costs) {
  return price * (1 + sign(side) * costs.slippage);
}

struct Fill {
  std::size_t bar;
  double price;
};

Fill fill_at_open(const tables::Bars& bars, std::size_t bar, Side side, const Costs& costs) {
  if (costs.fill_at_close) return {bar - 1, market_price(bars.close[bar - 1], side, costs)};
  return {bar, market_price(bars.open[bar], side, costs)};
}

// A limit is reached only if the bar trades strictly through it. A price that is absent, infinite
// or not positive never fills.
bool is_price(double price) { return price > 0 && std::isfinite(price); }
bool trades_below(const tables::Bars& bars, std::size_t bar, double price) {
  return is_price(price) && bars.low[bar] < price;
}
bool trades_above(const tables::Bars& bars, std::size_t bar, double price) {
  return is_price(price) && bars.high[bar] > price;
}

// The open is through a limit that `side` buys or sells at: it fills there, better than its price.
bool opens_beyond(const tables::Bars& bars, std::size_t bar, Side side, double limit) {
  return sign(side) * (limit - bars.open[bar]) > 0;
}
double limit_fill(const tables::Bars& bars, std::size_t bar, Side side, double limit) {
  return opens_beyond(bars, bar, side, limit) ? bars.open[bar] : limit;
}

void settle(Trade& trade, double bars_held, const Costs& costs) {
  const double growth = trade.exit_price / trade.entry_price;
  trade.fee = trade.share * costs.fee * (1 + growth);
  const double borrow = trade.side == Side::sell ? costs.borrow * bars_held : 0;
  trade.net_return = trade.share * (sign(trade.side) * (growth - 1) - borrow) - trade.fee;
}

struct RoundTrip {
  std::optional<Trade> trade;
  bool ambiguous = false;
};

RoundTrip round_trip(const tables::Bars& bars, std::size_t bar, const Order& order, double share,
                     const Costs& costs) {
  const Side side = order.side;
  if (side == Side::flat) return {};
  const bool buys = side == Side::buy;
  Fill entry{bar, kNoPrice};
  if (!order.at_limit) {
    entry = fill_at_open(bars, bar, side, costs);
  } else if ((buys ? trades_below : trades_above)(bars, bar, order.entry)) {
    entry.price = limit_fill(bars, bar, side, order.entry);
  } else {
    return {};
  }
  const double target = order.take_profit;
  const bool placed = sign(side) * (target - entry.price) > 0;
  bool taken = placed && (buys ? trades_above : trades_below)(bars, bar, target);
  RoundTrip result;
  const bool in_at_open = !order.at_limit || opens_beyond(bars, bar, side, order.entry);
  if (taken && !in_at_open) {
    // Which came first is known if the limit was reached at the open, or if the bar ends beyond the
    // take-profit: then the latter was passed after the entry.
    result.ambiguous = sign(side) * (bars.close[bar] - target) <= 0;
    taken = !result.ambiguous;
  }
  // A take-profit that waits for its entry does not fill at an open before it.
  const double profit = in_at_open ? limit_fill(bars, bar, opposite(side), target) : target;
  Trade trade{.side = side,
              .entry_bar = entry.bar,
              .exit_bar = bar,
              .entry_price = entry.price,
              .exit_price = taken ? profit : market_price(bars.close[bar], opposite(side), costs),
              .share = share};
  settle(trade, 1, costs);
  result.trade = trade;
  return result;
}

void finish_bar(Simulation& simulation, double before, double equity) {
  simulation.equity.push_back(equity);
  simulation.returns.push_back(before == 0 ? 0 : equity / before - 1);
}

void reserve(Simulation& simulation, std::size_t size) {
  simulation.equity.reserve(size);
  simulation.returns.reserve(size);
}

}  // namespace

std::string_view name_of(Side side) noexcept {
  if (side == Side::flat) return "flat";
  return side == Side::buy ? "long" : "short";
}

Simulation simulate_holding(const tables::Bars& bars, std::size_t first,
                            std::span<const BarOrders> orders, const Costs& costs) {
  Simulation result;
  reserve(result, orders.size());
  double equity = 1;     // at the latest close
  double at_entry = 1;   // equity when the trade was opened, or without one the equity itself
  std::size_t held = 0;  // bars of the open trade so far
  std::optional<Trade> open;
  bool ruined = false;
  const auto close_trade = [&](Fill fill) {
    open->exit_bar = fill.bar;
    open->exit_price = fill.price;
    settle(*open, static_cast<double>(held), costs);
    at_entry *= 1 + open->net_return;
    result.trades.push_back(*open);
    open.reset();
  };
  for (std::size_t k = 0; k < orders.size(); ++k) {
    const std::size_t bar = first + k;
    const double before = equity;
    const Side side = ruined ? Side::flat : orders[k].legs[0].side;
    if (open && open->side != side) {
      close_trade(fill_at_open(bars, bar, opposite(open->side), costs));
    }
    ruined |= at_entry <= 0;
    if (!open && side != Side::flat && !ruined) {
      const Fill fill = fill_at_open(bars, bar, side, costs);
      open = Trade{.side = side, .entry_bar = fill.bar, .entry_price = fill.price};
      held = 0;
    }
    equity = at_entry;
    if (open) {
      ++held;
      ++result.bars_held;
      if (k + 1 == orders.size()) {
        close_trade({bar, market_price(bars.close[bar], opposite(side), costs)});
        equity = at_entry;
      } else {
        const double borrow = side == Side::sell ? costs.borrow * static_cast<double>(held) : 0;
        const double growth = bars.close[bar] / open->entry_price;
        equity = at_entry * (1 + sign(side) * (growth - 1) - costs.fee - borrow);
      }
    }
    ruined |= equity <= 0;
    finish_bar(result, before, equity);
  }
  return result;
}

Simulation simulate_round_trips(const tables::Bars& bars, std::size_t first,
                                std::span<const BarOrders> orders, const Costs& costs) {
  Simulation result;
  reserve(result, orders.size());
  result.trades.reserve(orders.size());  // most orders fill
  double equity = 1;
  for (std::size_t k = 0; k < orders.size(); ++k) {
    const double before = equity;
    if (equity > 0) {
      double earned = 0;
      bool held = false, ambiguous = false;
      for (int leg = 0; leg < orders[k].num_legs; ++leg) {
        const RoundTrip trip = round_trip(
            bars, first + k, orders[k].legs[static_cast<std::size_t>(leg)], orders[k].share, costs);
        ambiguous |= trip.ambiguous;
        if (!trip.trade) continue;
        held = true;
        earned += trip.trade->net_return;
        result.trades.push_back(*trip.trade);
      }
      equity *= 1 + earned;
      result.bars_held += held ? 1 : 0;
      result.num_ambiguous_bars += ambiguous ? 1 : 0;
    }
    finish_bar(result, before, equity);
  }
  return result;
}

double round_trip_return(const tables::Bars& bars, std::size_t bar, const BarOrders& orders,
                         const Costs& costs) {
  double earned = 0;
  for (int leg = 0; leg < orders.num_legs; ++leg) {
    const RoundTrip trip =
        round_trip(bars, bar, orders.legs[static_cast<std::size_t>(leg)], orders.share, costs);
    if (trip.trade) earned += trip.trade->net_return;
  }
  return earned;
}

}  // namespace toto::backtest
