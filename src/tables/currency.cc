#include "tables/currency.h"

#include <cstddef>
#include <string>

namespace toto::tables {
namespace {

// The active codes of ISO 4217 that belong to a country or a union of countries, in order.
constexpr std::string_view kCodes =
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN "
    "BZD CAD CDF CHF CLP CNH CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP "
    "GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR "
    "KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK "
    "MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR "
    "SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH "
    "UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG ";
constexpr std::size_t kWidth = 4;  // of a code and its blank

bool is_currency(std::string_view code) {
  for (std::size_t i = 0; i < kCodes.size(); i += kWidth) {
    if (kCodes.substr(i, 3) == code) return true;
  }
  return false;
}

}  // namespace

bool is_currency_pair(std::string_view symbol) {
  constexpr std::string_view kYahoo = "=X";
  constexpr std::string_view kSeparators = "/-_.: ";
  if (symbol.ends_with(kYahoo) || symbol.ends_with("=x")) symbol.remove_suffix(kYahoo.size());
  std::string letters;
  for (const char c : symbol) {
    if (kSeparators.find(c) != std::string_view::npos) continue;
    letters += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  if (letters.size() != 6) return false;
  const std::string_view pair = letters;
  return pair.substr(0, 3) != pair.substr(3) && is_currency(pair.substr(0, 3)) &&
         is_currency(pair.substr(3));
}

}  // namespace toto::tables
