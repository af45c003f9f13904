// What the times and prices of a symbol tell about its market: stock or crypto, how many bars a
// year, and what a reader of the results should know about the data.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tables/bars.h"

namespace toto::tables {

enum class Asset { stock, crypto };
std::string_view name_of(Asset asset) noexcept;

// Crypto if any bar falls on a weekend. A file without dates is taken for a stock.
Asset detect_asset(const Bars& bars);

// 252 or 365 times the median number of bars a day, over the days that have any. Without dates
// every bar is a day.
double bars_per_year(const Bars& bars, Asset asset);

// Where these rules may not be what the file means, a sentence each: bars that are not daily, whose
// annual figures rest on a number of bars a year; weekend bars so few that they are strays, or of a
// file whose dates tell nothing. What the user chose is not questioned.
std::vector<std::string> calendar_notes(const Bars& bars, std::optional<Asset> chosen_asset,
                                        std::optional<double> chosen_bars_per_year);

// One sentence each, with file and line: bars whose high is not the highest, gaps, holidays, half
// days, probable splits, bars without volume. Holidays, half days and empty volume get one sentence
// for all of them, anything else one each up to a limit.
std::vector<std::string> data_notes(const Bars& bars, Asset asset);

}  // namespace toto::tables
