// Currencies by their ISO 4217 codes: is a symbol a currency pair?
#pragma once

#include <string_view>

namespace toto::tables {

// Two different codes of traded currencies, in any case, with or without a separator: EURUSD,
// GBP/JPY, eur_usd, and Yahoo's EURUSD=X. Metals and funds (XAU, CLF) are no currencies.
bool is_currency_pair(std::string_view symbol);

}  // namespace toto::tables
