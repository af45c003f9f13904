#include "backtest/strategy_reasons.h"

#include <fmt/format.h>

#include <cmath>

#include "backtest/report_parts.h"

namespace toto::backtest {
namespace {

using tables::Target;

// "0.42 % above"; two decimals are not enough for a small change.
std::string distance(double change) {
  const double size = std::abs(change);
  const int decimals = size == 0 || size >= 0.001 ? 2 : size >= 0.00001 ? 4 : 6;
  return fmt::format("{} {}", share(size, decimals), change > 0 ? "above" : "below");
}

std::string outlook_of_close(const Outlook& outlook, std::size_t k) {
  const double change = outlook.change(k, Target::close);
  const std::string predicted = price(outlook.point(k, Target::close));
  if (change == 0) return fmt::format("The close is predicted unchanged at {}", predicted);
  return fmt::format("The close is predicted at {}, {} the last one", predicted, distance(change));
}

// Why there is no order in spite of a prediction that goes down.
std::string never_short(const Outlook& outlook, const BarOrders& orders) {
  const bool dropped =
      outlook.rules.asset == tables::Asset::crypto && orders.legs[0].side == Side::flat;
  return dropped ? "; crypto is never sold short" : "";
}

std::string_view direction(const Outlook& outlook, std::size_t k, Target target) {
  const double point = outlook.point(k, target), last = outlook.last(k, target);
  return point > last ? "up" : point < last ? "down" : "unchanged";
}

std::string no_room(const Outlook& outlook, std::size_t k) {
  return fmt::format("The predicted low {} is not below the predicted high {}.",
                     price(outlook.point(k, Target::low)), price(outlook.point(k, Target::high)));
}

}  // namespace

std::string reason_of_buy_hold(const Outlook&, std::size_t, const BarOrders&) {
  return "The benchmark is always long.";
}

std::string reason_of_simple(const Outlook& outlook, std::size_t k, const BarOrders& orders) {
  return outlook_of_close(outlook, k) + never_short(outlook, orders) + ".";
}

std::string reason_of_all_signals(const Outlook& outlook, std::size_t k, const BarOrders& orders) {
  const std::string_view close = direction(outlook, k, Target::close);
  const std::string_view high = direction(outlook, k, Target::high);
  const std::string_view low = direction(outlook, k, Target::low);
  if (close == high && high == low && close != "unchanged") {
    return fmt::format("Close, high and low are all predicted {}{}.", close,
                       close == "down" ? never_short(outlook, orders) : "");
  }
  return fmt::format("Close {}, high {}, low {}: the predictions do not agree.", close, high, low);
}

std::string reason_of_shutdown(const Outlook& outlook, std::size_t k, const BarOrders& orders) {
  const bool up = outlook.change(k, Target::close) > 0;
  const bool may_trade = up || outlook.rules.asset != tables::Asset::crypto;
  if (orders.legs[0].side == Side::flat && may_trade) {
    return fmt::format("{}, but the latest {} trade of simple lost.", outlook_of_close(outlook, k),
                       name_of(up ? Side::buy : Side::sell));
  }
  return reason_of_simple(outlook, k, orders);
}

std::string reason_of_ci_guard(const Outlook& outlook, std::size_t k, const BarOrders& orders) {
  const double change = outlook.change(k, Target::close), width = outlook.guard_width(k);
  const bool beyond = std::abs(change) > width;
  return fmt::format("The predicted change of {} {} the band of {}{}.", percent(change, 3),
                     beyond ? "is beyond" : "is within", share(width, 3),
                     beyond && change < 0 ? never_short(outlook, orders) : "");
}

std::string reason_of_takeprofit(const Outlook& outlook, std::size_t k, const BarOrders& orders) {
  const Side side = orders.legs[0].side;
  if (side == Side::flat) return reason_of_simple(outlook, k, orders);
  return fmt::format("{}; the take-profit is the predicted {}.", outlook_of_close(outlook, k),
                     side == Side::buy ? "high" : "low");
}

std::string reason_of_highlow(const Outlook& outlook, std::size_t k, const BarOrders& orders) {
  const Side side = orders.legs[0].side;
  if (side == Side::flat) return reason_of_simple(outlook, k, orders);
  return fmt::format("{}; the limit is the predicted {}{}.", outlook_of_close(outlook, k),
                     side == Side::buy ? "low" : "high",
                     outlook.rules.tune_offsets ? " with its offset" : "");
}

std::string reason_of_maxdiff(const Outlook& outlook, std::size_t k, const BarOrders& orders) {
  const double high = outlook.change(k, Target::high), low = outlook.change(k, Target::low);
  const bool up = high + low > 0;
  const bool dropped = !up && outlook.rules.asset == tables::Asset::crypto;
  if (orders.legs[0].side == Side::flat && !dropped) return no_room(outlook, k);
  return fmt::format("High {} and low {} against the last close: more room {}{}.", percent(high),
                     percent(low), up ? "above" : "below", never_short(outlook, orders));
}

std::string reason_of_both_legs(const Outlook& outlook, std::size_t k, const BarOrders& orders) {
  if (orders.legs[0].side == Side::flat) return no_room(outlook, k);
  return orders.num_legs == 2 ? "Always on: buys at the predicted low, sells at the predicted high."
                              : "Always on: buys at the predicted low; crypto is never sold short.";
}

}  // namespace toto::backtest
