// Why a strategy has the orders it has, in a sentence. Each has the signature of Strategy::reason.
#pragma once

#include <cstddef>
#include <string>

#include "backtest/strategy.h"

namespace toto::backtest {

std::string reason_of_buy_hold(const Outlook& outlook, std::size_t k, const BarOrders& orders);
std::string reason_of_simple(const Outlook& outlook, std::size_t k, const BarOrders& orders);
std::string reason_of_all_signals(const Outlook& outlook, std::size_t k, const BarOrders& orders);
std::string reason_of_shutdown(const Outlook& outlook, std::size_t k, const BarOrders& orders);
std::string reason_of_ci_guard(const Outlook& outlook, std::size_t k, const BarOrders& orders);
std::string reason_of_takeprofit(const Outlook& outlook, std::size_t k, const BarOrders& orders);
std::string reason_of_highlow(const Outlook& outlook, std::size_t k, const BarOrders& orders);
std::string reason_of_maxdiff(const Outlook& outlook, std::size_t k, const BarOrders& orders);
std::string reason_of_both_legs(const Outlook& outlook, std::size_t k, const BarOrders& orders);

}  // namespace toto::backtest
