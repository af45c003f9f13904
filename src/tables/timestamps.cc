#include "tables/timestamps.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <ratio>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace toto::tables {
namespace {

using std::chrono::days, std::chrono::duration, std::chrono::January, std::chrono::sys_days,
    std::chrono::year, std::chrono::year_month_day, std::chrono::years;

constexpr std::int64_t kLastStep = 1'000'000'000'000;  // of any unit: differences cannot overflow
constexpr std::int64_t kFirstEpoch = 1'000'000'000;    // 2001-09-09 in seconds
constexpr Ticks kFirstTime = sys_days{year{1} / January / 1}.time_since_epoch().count() * kDay;
constexpr Ticks kEndTime = sys_days{year{10'000} / January / 1}.time_since_epoch().count() * kDay;
constexpr std::string_view kExpectedTime =
    "expected ISO 8601 such as 2024-01-31 or 2024-01-31T12:00:00Z, to the microsecond at most, or "
    "an integer";

// std::chrono has years up to 32767, but the calendar repeats every 400 years (146,097 days): dates
// are computed in the first cycle, years 0 to 399, and shifted.
using Cycles = duration<std::int64_t, std::ratio_multiply<std::ratio<400>, years::period>>;
constexpr std::int64_t kCycleYears = 400;
constexpr sys_days kYearZero{year{0} / January / 1};

days whole_days(Ticks time) { return std::chrono::floor<days>(std::chrono::microseconds{time}); }

year year_in_cycle(std::int64_t number) {
  const auto cycle = std::chrono::floor<Cycles>(duration<std::int64_t, years::period>{number});
  return year{static_cast<int>(number - cycle.count() * kCycleYears)};
}

struct IsoTime {
  Ticks time = 0;
  TimeStyle style;
};

// Parses an ISO 8601 time from left to right.
class IsoParser {
 public:
  explicit IsoParser(std::string_view text) : rest_(text) {}

  std::optional<IsoTime> parse() {
    if (!parse_date()) return {};
    if (!rest_.empty() && !parse_clock()) return {};
    return result_;
  }

 private:
  bool take(char c) {
    const bool taken = !rest_.empty() && rest_.front() == c;
    if (taken) rest_.remove_prefix(1);
    return taken;
  }

  bool take_number(int digits, int& value) {
    if (rest_.size() < static_cast<std::size_t>(digits)) return false;
    value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = rest_[static_cast<std::size_t>(i)];
      if (c < '0' || c > '9') return false;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(static_cast<std::size_t>(digits));
    return true;
  }

  // 2024-01-31, 2024/01/31, 20240131 or 2024-01.
  bool parse_date() {
    int year = 0;
    int month = 0;
    int day = 1;
    if (!take_number(4, year)) return false;
    const char dash = !rest_.empty() && (rest_[0] == '-' || rest_[0] == '/') ? rest_[0] : '\0';
    if (dash != '\0') rest_.remove_prefix(1);
    if (!take_number(2, month) || month < 1 || month > 12) return false;
    if (dash == '-' && rest_.empty()) {
      result_.style.month_only = true;
    } else {
      if (dash != '\0' && !take(dash)) return false;
      if (!take_number(2, day) || day < 1 || day > days_in_month(year, month)) return false;
    }
    result_.time = midnight({.year = year, .month = month, .day = day});
    return true;
  }

  // 12:00, 12:00:00 or 12:00:00.000000, after `T` or a space.
  bool parse_clock() {
    TimeStyle& style = result_.style;
    style.has_clock = true;
    style.separator = rest_.front();
    int hour = 0;
    int minute = 0;
    if (!take('T') && !take(' ')) return false;
    if (!take_number(2, hour) || hour > 23 || !take(':')) return false;
    if (!take_number(2, minute) || minute > 59) return false;
    result_.time += hour * kHour + minute * kMinute;
    if (take(':')) {
      int second = 0;
      if (!take_number(2, second) || second > 59) return false;
      style.has_seconds = true;
      result_.time += second * kSecond;
      if (take('.') && !parse_fraction()) return false;
    }
    return parse_zone();
  }

  // Microseconds are the finest resolution; further digits (nanoseconds) must be zeros.
  bool parse_fraction() {
    Ticks unit = kSecond / 10;
    int digits = 0;
    for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; ++digits) {
      if (digits >= 9 || (unit == 0 && rest_.front() != '0')) return false;
      result_.time += (rest_.front() - '0') * unit;
      unit /= 10;
      rest_.remove_prefix(1);
    }
    result_.style.fraction_digits = std::min(digits, 6);
    return digits > 0;
  }

  // Z, +02:00, +0200 or +02.
  bool parse_zone() {
    TimeStyle& style = result_.style;
    if (rest_.empty()) return true;
    if (take('Z')) {
      style.zone = TimeStyle::Zone::utc;
      return rest_.empty();
    }
    const bool west = rest_.front() == '-';
    if (!take('+') && !take('-')) return false;
    int hours = 0;
    int minutes = 0;
    if (!take_number(2, hours) || hours > 23) return false;
    if (!rest_.empty()) {
      take(':');
      if (!take_number(2, minutes) || minutes > 59) return false;
    }
    style.zone = TimeStyle::Zone::offset;
    style.offset_minutes = (west ? -1 : 1) * (hours * 60 + minutes);
    return rest_.empty();
  }

  std::string_view rest_;
  IsoTime result_;
};

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end) return {};
  return value;
}

std::string zone_name(const TimeStyle& style) {
  switch (style.zone) {
    case TimeStyle::Zone::none:
      return "no zone";
    case TimeStyle::Zone::utc:
      return "zone Z";
    case TimeStyle::Zone::offset:
      break;
  }
  const int minutes = std::abs(style.offset_minutes);
  return fmt::format("zone {}{:02}:{:02}", style.offset_minutes < 0 ? '-' : '+', minutes / 60,
                     minutes % 60);
}

}  // namespace

// ------------------------------------------------------------------------------------- calendar

CivilDate civil_date(Ticks time) {
  const days since = whole_days(time) - kYearZero.time_since_epoch();
  const auto cycle = std::chrono::floor<Cycles>(since);
  const year_month_day date{kYearZero + (since - std::chrono::duration_cast<days>(cycle))};
  return {.year = static_cast<int>(date.year()) + cycle.count() * kCycleYears,
          .month = static_cast<int>(static_cast<unsigned>(date.month())),
          .day = static_cast<int>(static_cast<unsigned>(date.day()))};
}

std::int64_t month_number(const CivilDate& date) { return date.year * 12 + date.month - 1; }

CivilDate first_of_month(std::int64_t number) noexcept {
  const duration<std::int64_t, std::chrono::months::period> all{number};
  const auto whole = std::chrono::floor<duration<std::int64_t, years::period>>(all);
  return {.year = whole.count(), .month = static_cast<int>((all - whole).count()) + 1, .day = 1};
}

Ticks midnight(const CivilDate& date) {
  const year first = year_in_cycle(date.year);
  const sys_days day = first / date.month / date.day;
  const Cycles cycle{(date.year - static_cast<int>(first)) / kCycleYears};
  return (day.time_since_epoch() + std::chrono::duration_cast<days>(cycle)).count() * kDay;
}

int days_in_month(std::int64_t number, int month) {
  const auto last = (year_in_cycle(number) / month / std::chrono::last).day();
  return static_cast<int>(static_cast<unsigned>(last));
}

Ticks time_of_day(Ticks time) { return time - whole_days(time).count() * kDay; }

int weekday(Ticks time) {
  return static_cast<int>(std::chrono::weekday{sys_days{whole_days(time)}}.iso_encoding()) - 1;
}

// -------------------------------------------------------------------------------------- spelling

void widen(TimeStyle& style, Ticks time) {
  if (style.steps) return;
  const Ticks clock = time_of_day(time);
  style.month_only = style.month_only && clock == 0 && civil_date(time).day == 1;
  if (clock == 0) return;
  style.has_clock = true;
  if (clock % kMinute != 0) style.has_seconds = true;
  Ticks finest = kSecond;
  for (int digit = 0; digit < style.fraction_digits; ++digit) finest /= 10;
  if (clock % finest != 0) style.fraction_digits = clock % 1000 == 0 ? 3 : 6;
}

std::string format_time(Ticks time, TimeStyle style) {
  if (style.steps) return std::to_string(time);
  widen(style, time);
  const CivilDate date = civil_date(time);
  // ISO 8601 requires a sign before years of more than four digits.
  std::string text =
      fmt::format("{}{:04}-{:02}", date.year > 9999 ? "+" : "", date.year, date.month);
  if (style.month_only) return text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "-{:02}", date.day);
  if (!style.has_clock) return text;
  const Ticks clock = time_of_day(time);
  fmt::format_to(out, "{}{:02}:{:02}", style.separator, clock / kHour, clock / kMinute % 60);
  if (style.has_seconds) fmt::format_to(out, ":{:02}", clock / kSecond % 60);
  if (style.fraction_digits > 0) {
    const std::string digits = fmt::format("{:06}", clock % kSecond);
    fmt::format_to(out, ".{}", digits.substr(0, static_cast<std::size_t>(style.fraction_digits)));
  }
  if (style.zone == TimeStyle::Zone::utc) text += 'Z';
  if (style.zone == TimeStyle::Zone::offset) text += zone_name(style).substr(5);
  return text;
}

std::int64_t utc_seconds(Ticks time, const TimeStyle& style) {
  if (style.steps) return time;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(std::chrono::microseconds{time});
  return seconds.count() - style.offset_minutes * 60;
}

// ---------------------------------------------------------------------------------------- column

// Eight digits that look like a date between 1800 and 2199 are a date, not a step number.
std::string TimeColumn::decide(std::string_view text) {
  const std::optional<std::int64_t> integer = parse_integer(text);
  const bool compact_date = text.size() == 8 && text >= "18000101" && text <= "21991231";
  if (!integer || compact_date) {
    if (const std::optional<IsoTime> parsed = IsoParser(text).parse()) {
      kind_ = Kind::iso;
      style_ = parsed->style;
      return {};
    }
  }
  if (!integer) return fmt::format("{} is not a time, {}", quoted(text), kExpectedTime);
  if (*integer < kFirstEpoch) {
    kind_ = Kind::steps;
    style_.steps = true;
    return {};
  }
  kind_ = Kind::epoch;
  style_ = {.has_clock = true, .has_seconds = true, .zone = TimeStyle::Zone::utc};
  // Below 10^11: seconds up to the year 5138. Below 10^14: milliseconds from 1973 on; and so on.
  for (std::int64_t limit = 100 * kFirstEpoch; *integer >= limit; limit *= 1000) {
    units_per_second_ *= 1000;
    if (units_per_second_ == 1'000'000'000) break;
  }
  return {};
}

std::string TimeColumn::read(std::string_view text, Ticks& time) {
  if (kind_ == Kind::undecided) {
    if (std::string complaint = decide(text); !complaint.empty()) return complaint;
  }
  std::string complaint = kind_ == Kind::iso ? read_iso(text, time) : read_number(text, time);
  if (!complaint.empty() || kind_ == Kind::steps) return complaint;
  if (time >= kFirstTime && time < kEndTime) return {};
  return fmt::format("{} is in the year {}, expected a time of the years 1 to 9999", quoted(text),
                     civil_date(time).year);
}

// Epoch numbers are converted to microseconds; finer digits must be zero.
std::string TimeColumn::read_number(std::string_view text, Ticks& time) {
  const std::optional<std::int64_t> integer = parse_integer(text);
  if (!integer || *integer / units_per_second_ < -kLastStep ||
      *integer / units_per_second_ > kLastStep) {
    return fmt::format("{} is not a time, expected an integer as in the rows before", quoted(text));
  }
  if (kind_ == Kind::steps) {
    time = *integer;
    return {};
  }
  if (units_per_second_ > kSecond && *integer % 1000 != 0) {
    return fmt::format("{} is finer than a microsecond, expected whole microseconds", quoted(text));
  }
  time = units_per_second_ > kSecond ? *integer / 1000 : *integer * (kSecond / units_per_second_);
  widen(style_, time);
  return {};
}

// Extends the style of the column; a change of zone is an error.
std::string TimeColumn::read_iso(std::string_view text, Ticks& time) {
  const std::optional<IsoTime> parsed = IsoParser(text).parse();
  if (!parsed) return fmt::format("{} is not a time, {}", quoted(text), kExpectedTime);
  time = parsed->time;
  const TimeStyle& style = parsed->style;
  if (style == style_) return {};
  using enum TimeStyle::Zone;
  if ((style.zone == none) != (style_.zone == none) ||
      style.offset_minutes != style_.offset_minutes) {
    return fmt::format("{} has {} but the times before it have {}, expected one zone in the file",
                       quoted(text), zone_name(style), zone_name(style_));
  }
  if (!style_.has_clock) style_.separator = style.separator;
  style_.month_only &= style.month_only;
  style_.has_clock |= style.has_clock;
  style_.has_seconds |= style.has_seconds;
  style_.fraction_digits = std::max(style_.fraction_digits, style.fraction_digits);
  return {};
}

}  // namespace toto::tables
