// Facts derived from the name, times and prices of a symbol: stock, crypto or a currency pair, bars
// per year, and notes on the quality of the data.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tables/bars.h"

namespace toto::tables {

enum class Asset { stock, crypto, fx };
std::string_view name_of(Asset asset) noexcept;

// Of fx if the symbol is a currency pair, crypto if any bar falls on a weekend, else a stock.
struct DetectedAsset {
  Asset asset = Asset::stock;
  std::string_view reason = {};  // "no bar on a weekend"
};
DetectedAsset detect_asset(const Bars& bars);

// 252 (stock), 260 (fx) or 365 (crypto) times the median number of bars per day that has any.
// Without dates every bar counts as a day.
double bars_per_year(const Bars& bars, Asset asset);

// One sentence for each rule above that may not fit the file: bars that are not daily, whose annual
// figures depend on the assumed bars per year; weekend bars so few that they are probably stray, or
// in a file whose dates prove nothing. The user's own choices are not questioned.
std::vector<std::string> calendar_notes(const Bars& bars, std::optional<Asset> chosen_asset,
                                        std::optional<double> chosen_bars_per_year);

// One sentence each, with file and line: bars whose high is not the highest price, gaps, holidays,
// half days, probable splits, bars without volume. Holidays, half days and empty volume share one
// sentence per kind; the others get one each, up to a limit.
std::vector<std::string> data_notes(const Bars& bars, Asset asset);

}  // namespace toto::tables
