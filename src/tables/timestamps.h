// Times as data files write them: ISO 8601, epoch numbers or plain step numbers in, the same
// spelling out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace toto::tables {

// Microseconds since 1970-01-01 00:00 on the clock of the file (its own zone, so that days and
// months are the file's), or the step number of a file without dates.
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
CivilDate first_of_month(std::int64_t number) noexcept;  // the other way round, of any year
Ticks midnight(const CivilDate& date);
int days_in_month(std::int64_t year, int month);
int weekday(Ticks time);        // 0 is Monday
Ticks time_of_day(Ticks time);  // since midnight

// How a file spells its times.
struct TimeStyle {
  enum class Zone { none, utc, offset };  // nothing, `Z`, `+02:00`
  bool steps = false;                     // integers that are no dates
  bool month_only = false;                // 2024-01
  bool has_clock = false;
  bool has_seconds = false;
  int fraction_digits = 0;
  char separator = 'T';  // or a space
  Zone zone = Zone::none;
  int offset_minutes = 0;
  bool operator==(const TimeStyle&) const = default;
};

// Adds to the style what it takes to write `time` without loss: a clock, seconds, a fraction.
void widen(TimeStyle& style, Ticks time);
std::string format_time(Ticks time, TimeStyle style);
std::int64_t utc_seconds(Ticks time, const TimeStyle& style);  // since the epoch, rounded down

// Reads the times of one file, which must be of one kind: the first one decides between ISO 8601
// (2024-01-31, 20240131, 2024/01/31, 2024-01, with a clock after `T` or a space, and a zone), epoch
// numbers (integers from 10^9 on: seconds, milli-, micro- or nanoseconds by their size) and steps
// (other integers). Dates lie in the years 1 to 9999, which four digits can write.
class TimeColumn {
 public:
  // Empty, and `time` is set; or what is wrong: `"x" is not a time, expected ...`.
  std::string read(std::string_view text, Ticks& time);
  const TimeStyle& style() const { return style_; }  // wide enough for every time read so far

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
