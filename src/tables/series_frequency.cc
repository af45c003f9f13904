#include "tables/series_frequency.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace toto::tables {
namespace {

constexpr std::int64_t kLastYear = 9999;                // the last one that ISO 8601 can name
constexpr Ticks kEndTick = 253'402'300'800 * kSecond;   // the end of kLastYear
constexpr Ticks kSafeTick = 7'889'000'000'000'000'000;  // computing with it does not overflow

struct FrequencyCode {
  std::string_view code;
  Frequency frequency;  // of one
};

constexpr Frequency fixed(Ticks ticks) { return {.unit = Frequency::Unit::fixed, .count = ticks}; }
constexpr Frequency months(int count) { return {.unit = Frequency::Unit::month, .count = count}; }
constexpr Frequency kWeekdays = {.unit = Frequency::Unit::weekday, .count = 1};

// The first spelling of each length is the one printed; within a unit, longer lengths come first.
constexpr FrequencyCode kCodes[] = {
    {"Y", months(12)},     {"YS", months(12)},     {"YE", months(12)},     {"A", months(12)},
    {"AS", months(12)},    {"Q", months(3)},       {"QS", months(3)},      {"QE", months(3)},
    {"M", months(1)},      {"MS", months(1)},      {"ME", months(1)},      {"B", kWeekdays},
    {"b", kWeekdays},      {"W", fixed(7 * kDay)}, {"w", fixed(7 * kDay)}, {"D", fixed(kDay)},
    {"d", fixed(kDay)},    {"h", fixed(kHour)},    {"H", fixed(kHour)},    {"min", fixed(kMinute)},
    {"T", fixed(kMinute)}, {"s", fixed(kSecond)},  {"S", fixed(kSecond)},  {"ms", fixed(1000)},
    {"L", fixed(1000)},    {"us", fixed(1)},       {"U", fixed(1)},
};

// The anchor that pandas appends to W (a weekday) and to quarters and years (a month): SUN, DEC.
bool is_anchor(std::string_view text) {
  return text.size() == 3 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// Long horizons of coarse steps leave the range of the calendar.
[[noreturn]] void fail_past_end(const Frequency& frequency, std::int64_t steps) {
  fail(ErrorCode::corrupt_file,
       "{} steps of {} pass the year {}, expected times of the years 1 to {}; a shorter series or "
       "horizon may fit",
       steps, name_of(frequency, false), kLastYear, kLastYear);
}

// Counts from the first time, not step by step: 31 January plus one month is 29 February, plus two
// is 31 March.
Ticks advance_months(const Frequency& frequency, Ticks from, std::int64_t steps) {
  const CivilDate date = civil_date(from);
  if (steps > kLastYear * 12 / frequency.count) fail_past_end(frequency, steps);
  CivilDate to = first_of_month(month_number(date) + steps * frequency.count);
  if (to.year > kLastYear) fail_past_end(frequency, steps);
  to.day = std::min(frequency.day > 0 ? frequency.day : date.day, days_in_month(to.year, to.month));
  return midnight(to) + time_of_day(from);
}

// Whole weeks in one step, so that the cost does not depend on `count`.
Ticks advance_weekdays(Ticks from, std::int64_t count) {
  const int today = weekday(from);
  const std::int64_t position = std::min(today, 4) + count;  // weekdays since this week's Monday
  return from + (position / 5 * 7 + position % 5 - today) * kDay;
}

}  // namespace

Frequency parse_frequency(std::string_view code, std::string_view what) {
  constexpr std::int64_t kMaxCount = 1'000'000;
  std::int64_t count = 1;
  const char* const begin = code.data();
  const char* const end = begin + code.size();
  const auto number = std::from_chars(begin, end, count);  // leaves 1 where there is none
  std::string_view unit(number.ptr, static_cast<std::size_t>(end - number.ptr));
  if (unit.size() > 4 && unit[unit.size() - 4] == '-' && is_anchor(unit.substr(unit.size() - 3))) {
    unit.remove_suffix(4);
  }
  const auto* const found =
      std::find_if(std::begin(kCodes), std::end(kCodes),
                   [unit](const FrequencyCode& entry) { return entry.code == unit; });
  if (found == std::end(kCodes) || count < 1 || count > kMaxCount ||
      number.ec == std::errc::result_out_of_range) {
    fail(ErrorCode::invalid_argument,
         "{} is {}, expected one of us, ms, s, min, h, D, B, W, M, Q, Y with an optional number "
         "from 1 to {} before it, such as 15min",
         what, quoted(code), kMaxCount);
  }
  Frequency frequency = found->frequency;
  frequency.count *= count;
  return frequency;
}

std::string name_of(const Frequency& frequency, bool steps) {
  if (frequency.unit == Frequency::Unit::unknown) return "unknown";
  if (steps) return counted(frequency.count, "step");
  for (const auto& [code, one] : kCodes) {
    if (one.unit != frequency.unit || frequency.count % one.count != 0) continue;
    const std::int64_t count = frequency.count / one.count;
    return count == 1 ? std::string(code) : fmt::format("{}{}", count, code);
  }
  fail(ErrorCode::internal, "a frequency of unit {} has no name", static_cast<int>(frequency.unit));
}

std::string adjective_of(const Frequency& frequency) {
  constexpr std::pair<std::string_view, std::string_view> kAdjectives[] = {
      {"Y", "yearly"}, {"Q", "quarterly"}, {"M", "monthly"}, {"W", "weekly"},
      {"B", "daily"},  {"D", "daily"},     {"h", "hourly"}};
  std::string code = name_of(frequency, false);
  for (const auto& [known, adjective] : kAdjectives) {
    if (code == known) return std::string(adjective);
  }
  return code;
}

Ticks advance(const Frequency& frequency, Ticks from, std::int64_t steps) {
  std::optional<Ticks> to;
  switch (frequency.unit) {
    case Frequency::Unit::unknown:
      break;
    case Frequency::Unit::month:
      return advance_months(frequency, from, steps);
    case Frequency::Unit::weekday:
      // Five weekdays span seven days, so twice their number is an upper bound of the days.
      if (steps > 0 && frequency.count > (kSafeTick - from) / (2 * kDay) / steps) break;
      to = advance_weekdays(from, frequency.count * steps);
      break;
    case Frequency::Unit::fixed:
      if (steps > 0 && frequency.count > (kSafeTick - from) / steps) break;
      to = from + frequency.count * steps;
      break;
  }
  if (to && *to < kEndTick) return *to;
  if (frequency.unit != Frequency::Unit::unknown) fail_past_end(frequency, steps);
  fail(ErrorCode::internal, "a time is to advance by a frequency that is unknown");
}

}  // namespace toto::tables
