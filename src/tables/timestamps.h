// Times of data files: parses ISO 8601, epoch numbers and step numbers, and prints them in the
// file's own style.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace toto::tables {

// Microseconds since 1970-01-01 00:00 in the zone of the file, so that days and months are the
// file's own; or the step number in a file without dates.
using Ticks = std::int64_t;
inline constexpr Ticks kSecond = 1'000'000;
inline constexpr Ticks kMinute = 60 * kSecond;
inline constexpr Ticks kHour = 60 * kMinute;
inline constexpr Ticks kDay = 24 * kHour;

struct CivilDate {
  std::int64_t year = 1970;
  int month = 1;
  int day = 1;
};
CivilDate civil_date(Ticks time);                        // proleptic Gregorian
std::int64_t month_number(const CivilDate& date);        // months since January of the year 0
CivilDate first_of_month(std::int64_t number) noexcept;  // inverse of month_number, any year
Ticks midnight(const CivilDate& date);
int days_in_month(std::int64_t year, int month);
int weekday(Ticks time);        // 0 is Monday
Ticks time_of_day(Ticks time);  // since midnight

// How a file writes its times.
struct TimeStyle {
  enum class Zone { none, utc, offset };  // nothing, `Z`, `+02:00`
  bool steps = false;                     // step numbers instead of dates
  bool month_only = false;                // 2024-01
  bool has_clock = false;
  bool has_seconds = false;
  int fraction_digits = 0;
  char separator = 'T';  // or a space
  Zone zone = Zone::none;
  int offset_minutes = 0;
  bool operator==(const TimeStyle&) const = default;
};

// Extends the style so that it prints `time` without loss: time of day, seconds, a fraction.
void widen(TimeStyle& style, Ticks time);
std::string format_time(Ticks time, TimeStyle style);
std::int64_t utc_seconds(Ticks time, const TimeStyle& style);  // since the epoch, rounded down

// Reads the times of one file, which must all be of one kind. The first one decides: ISO 8601
// (2024-01-31, 20240131, 2024/01/31, 2024-01, with a time after `T` or a space, and a zone), epoch
// numbers (integers from 10^9: seconds, milli-, micro- or nanoseconds by their size) or steps
// (other integers). Dates must be in the years 1 to 9999.
class TimeColumn {
 public:
  // Sets `time` and returns an empty string, or returns what is wrong: `"x" is not a time, ...`.
  std::string read(std::string_view text, Ticks& time);
  const TimeStyle& style() const { return style_; }  // prints every time read so far without loss

 private:
  enum class Kind { undecided, iso, epoch, steps };
  std::string decide(std::string_view text);
  std::string read_number(std::string_view text, Ticks& time);
  std::string read_iso(std::string_view text, Ticks& time);

  Kind kind_ = Kind::undecided;
  TimeStyle style_;
  std::int64_t units_per_second_ = 1;  // of epoch numbers
};

}  // namespace toto::tables
