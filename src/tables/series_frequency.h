// The distance from one value of a series to the next: fixed, weekdays, or months.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tables/timestamps.h"

namespace toto::tables {

struct Frequency {
  enum class Unit { unknown, fixed, weekday, month };
  Unit unit = Unit::unknown;
  std::int64_t count = 0;  // fixed: ticks; weekday: days from Monday to Friday; month: months
  // Day of the month, for months only. Shorter months end earlier, so 31 is always the last day; 0
  // is the day of the start time.
  int day = 0;
  bool operator==(const Frequency&) const = default;
};

// Parses pandas codes: us, ms, s, min or T, h, D, B, W, M, Q, Y, with an optional count in front
// (15min). MS, ME, QS, A and similar equal M, Q, Y, and a trailing anchor (W-SUN) is ignored: the
// phase is that of the data. Error(invalid_argument) names `what` and lists the codes.
Frequency parse_frequency(std::string_view code, std::string_view what);
std::string name_of(const Frequency& frequency, bool steps);  // "15min", "B"; steps: "2 steps"
std::string adjective_of(const Frequency& frequency);         // "daily", "hourly", "15min"

// The time `steps` >= 0 steps after `from`; weekdays count from the Friday before a weekend.
// Error(invalid_argument) past the year 250,000.
Ticks advance(const Frequency& frequency, Ticks from, std::int64_t steps);

}  // namespace toto::tables
