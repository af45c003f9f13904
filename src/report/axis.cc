#include "report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "report/svg.h"
#include "tables/timestamps.h"

namespace toto::report {
namespace {

constexpr std::string_view kMinus = "\xE2\x88\x92";  // U+2212

constexpr std::int64_t kMinute = 60;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;

// ---------------------------------------------------------------------------------------- values

// mantissa x 10^exponent, exact: labels are cut from decimal digits, never from a rounded double.
struct Decimal {
  std::int64_t mantissa;
  int exponent;
};

int floor_log10(const Decimal& number) {
  return static_cast<int>(std::to_string(std::abs(number.mantissa)).size()) - 1 + number.exponent;
}

// Fixed notation of number / 10^scale with thousands separators.
std::string fixed_label(const Decimal& number, int scale) {
  std::string digits = std::to_string(std::abs(number.mantissa));
  const int exponent = number.exponent - scale;
  const std::size_t decimals = exponent < 0 ? static_cast<std::size_t>(-exponent) : 0;
  if (exponent > 0 && number.mantissa != 0) digits.append(static_cast<std::size_t>(exponent), '0');
  if (digits.size() <= decimals) digits.insert(0, decimals + 1 - digits.size(), '0');
  std::string label = digits.substr(0, digits.size() - decimals);
  for (std::size_t i = label.size(); i > 3; i -= 3) label.insert(i - 3, 1, ',');
  if (decimals > 0) label += '.' + digits.substr(digits.size() - decimals);
  return label;
}

// Unicode digits: they need no second text element and survive copying.
std::string superscript(int number) {
  constexpr std::array<std::string_view, 10> kDigits = {"⁰", "¹", "²", "³", "⁴",
                                                        "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = number < 0 ? "⁻" : "";
  for (const char c : std::to_string(std::abs(number))) text += kDigits[c - '0'];
  return text;
}

// The format of all labels of one axis: divided by 10^scale, with a suffix.
struct Notation {
  int scale = 0;
  std::string suffix;
};

// Plain digits from 0.001 to 999,999; SI suffixes outside of that; powers of ten where SI ends or
// where the ticks lie too close together for a short mantissa.
Notation choose_notation(int magnitude, int step_exponent) {
  constexpr std::array<std::string_view, 12> kSuffixes = {"f", "p", "n", "µ", "",  "",
                                                          "",  "M", "G", "T", "P", "E"};
  constexpr int kFirstScale = -15;
  if (magnitude >= -3 && magnitude < 6) return {};
  const int scale = 3 * static_cast<int>(std::floor(magnitude / 3.0));
  const int decimals = scale - step_exponent;
  if (magnitude >= 6 && magnitude < 12 && decimals > 3) return {};
  const int index = (scale - kFirstScale) / 3;
  const bool has_suffix = scale >= kFirstScale && index < static_cast<int>(kSuffixes.size());
  if (has_suffix && decimals <= 3) return {scale, std::string(kSuffixes[index])};
  return {magnitude, "×10" + superscript(magnitude)};
}

// The smallest of 1, 2, 5 times a power of ten that is not below `least`.
Decimal nice_step(double least) {
  const int exponent = static_cast<int>(std::floor(std::log10(least)));
  for (const int mantissa : {1, 2, 5}) {
    if (mantissa * std::pow(10.0, exponent) >= least) return {mantissa, exponent};
  }
  return {1, exponent + 1};
}

// ----------------------------------------------------------------------------------------- times

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// A moment on the proleptic Gregorian calendar, UTC.
struct CivilTime {
  int year, month, day, hour, minute, second;
};

CivilTime civil_time(std::int64_t time) {
  const tables::CivilDate date = tables::civil_date(time * tables::kSecond);
  const int rest = static_cast<int>(time - floor_div(time, kDay) * kDay);
  return {
      static_cast<int>(date.year), date.month, date.day, rest / 3600, rest / 60 % 60, rest % 60};
}

std::string_view month_name(int month) {
  constexpr std::array<std::string_view, 12> kNames = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return kNames[month - 1];
}

enum class Unit { second, minute, hour, day, week, month, year };

struct CalendarStep {
  Unit unit;
  int count;
};

// Fine to coarse.
constexpr CalendarStep kCalendarSteps[] = {
    {Unit::second, 1},  {Unit::second, 2},  {Unit::second, 5},  {Unit::second, 10},
    {Unit::second, 15}, {Unit::second, 30}, {Unit::minute, 1},  {Unit::minute, 2},
    {Unit::minute, 5},  {Unit::minute, 10}, {Unit::minute, 15}, {Unit::minute, 30},
    {Unit::hour, 1},    {Unit::hour, 2},    {Unit::hour, 3},    {Unit::hour, 6},
    {Unit::hour, 12},   {Unit::day, 1},     {Unit::day, 2},     {Unit::week, 1},
    {Unit::week, 2},    {Unit::month, 1},   {Unit::month, 3},   {Unit::month, 6},
    {Unit::year, 1},    {Unit::year, 2},    {Unit::year, 5},    {Unit::year, 10},
    {Unit::year, 20},   {Unit::year, 50},   {Unit::year, 100},  {Unit::year, 200},
    {Unit::year, 500},  {Unit::year, 1000}, {Unit::year, 2000}, {Unit::year, 5000}};

// Which calendar cell a time falls into; a new cell is where a tick belongs.
std::int64_t cell_of(std::int64_t time, const CalendarStep& step) {
  switch (step.unit) {
    case Unit::second:
      return floor_div(time, step.count);
    case Unit::minute:
      return floor_div(time, step.count * kMinute);
    case Unit::hour:
      return floor_div(time, step.count * kHour);
    case Unit::day:
      return floor_div(time, step.count * kDay);
    case Unit::week:  // weeks start on Monday; 1970-01-01 was a Thursday
      return floor_div(time + 3 * kDay, 7 * step.count * kDay);
    case Unit::month: {
      const CivilTime civil = civil_time(time);
      return floor_div(civil.year * 12 + civil.month - 1, step.count);
    }
    case Unit::year:
      return floor_div(civil_time(time).year, step.count);
  }
  return 0;
}

// The larger unit that the label omits; `context` shows it where it changes.
DatePrecision context_precision(Unit unit) {
  return unit < Unit::day ? DatePrecision::day : DatePrecision::year;
}

// Of the step's own time, not of the boundary it passed: a session that opens at 09:30 says so.
std::string tick_label(std::int64_t time, Unit unit) {
  const CivilTime civil = civil_time(time);
  switch (unit) {
    case Unit::second:
      return fmt::format("{:02}:{:02}:{:02}", civil.hour, civil.minute, civil.second);
    case Unit::minute:
    case Unit::hour:
      return fmt::format("{:02}:{:02}", civil.hour, civil.minute);
    case Unit::day:
    case Unit::week:
      return fmt::format("{} {}", civil.day, month_name(civil.month));
    case Unit::month:
      return std::string(month_name(civil.month));
    case Unit::year:
      break;
  }
  return fmt::format("{}", civil.year);
}

// Ticks finer than the data itself would claim a precision it does not have.
Unit finest_unit(DatePrecision precision) {
  switch (precision) {
    case DatePrecision::year:
      return Unit::year;
    case DatePrecision::month:
      return Unit::month;
    case DatePrecision::day:
      return Unit::day;
    case DatePrecision::minute:
      return Unit::minute;
    case DatePrecision::second:
      break;
  }
  return Unit::second;
}

// The steps that begin a cell; the first one only if it is on the boundary itself.
std::vector<std::size_t> boundaries(std::span<const std::int64_t> times, const CalendarStep& step) {
  std::vector<std::size_t> steps;
  std::int64_t previous = cell_of(times[0] - 1, step);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::int64_t cell = cell_of(times[i], step);
    if (cell != previous) steps.push_back(i);
    previous = cell;
  }
  return steps;
}

// ---------------------------------------------------------------------------------------- layout

constexpr double kLeastGap = 48;  // between ticks: more ticks are only noise
constexpr double kLabelAir = 20;  // between two labels

// Whether two texts centred `gap` apart run into each other.
bool touch(std::string_view a, std::string_view b, double gap, double font_size) {
  return gap < (text_width(a, font_size) + text_width(b, font_size)) / 2 + kLabelAir;
}

// Ticks at those of `steps` that have room, from the left.
std::vector<StepTick> spaced_ticks(std::span<const std::size_t> steps,
                                   std::span<const std::int64_t> times, Unit unit,
                                   double step_width, double font_size) {
  std::vector<StepTick> ticks;
  for (const std::size_t step : steps) {
    const double gap =
        ticks.empty() ? kLeastGap : static_cast<double>(step - ticks.back().step) * step_width;
    if (gap < kLeastGap) continue;
    std::string label = tick_label(times[step], unit);
    if (!ticks.empty() && touch(ticks.back().label, label, gap, font_size)) continue;
    ticks.push_back({step, std::move(label), {}});
  }
  return ticks;
}

// Writes the larger unit under the ticks where it changes. Where the first two touch, the first
// goes: it names only the rest of a day or year. False if any others touch; the later one is then
// left out.
bool add_contexts(std::vector<StepTick>& ticks, std::span<const std::int64_t> times, Unit unit,
                  double step_width, double font_size) {
  if (unit == Unit::year) return true;
  bool fits = true;
  std::string current;
  StepTick* previous = nullptr;
  for (StepTick& tick : ticks) {
    std::string context = format_date(times[tick.step], context_precision(unit));
    if (context == current) continue;
    current = context;
    if (previous != nullptr) {
      const double gap = static_cast<double>(tick.step - previous->step) * step_width;
      if (touch(previous->context, context, gap, font_size)) {
        if (previous != &ticks.front()) {
          fits = false;
          continue;
        }
        previous->context.clear();
      }
    }
    tick.context = std::move(context);
    previous = &tick;
  }
  return fits;
}

}  // namespace

ValueAxis value_axis(double min, double max, int max_ticks) {
  if (min > max) min = 0, max = 1;
  const bool constant = min == max;
  const double air = constant ? (min == 0 ? 1 : std::abs(min) * 0.1) : (max - min) * 0.06;
  ValueAxis axis;
  axis.low = min - air;
  axis.high = max + air;
  // Prices and counts have no room below zero; a constant keeps its line off the edge.
  if (min >= 0 && axis.low < 0 && !constant) axis.low = 0;
  if (max <= 0 && axis.high > 0 && !constant) axis.high = 0;

  const Decimal unit = nice_step((axis.high - axis.low) / max_ticks);
  const double step = unit.mantissa * std::pow(10.0, unit.exponent);
  // Ticks are whole multiples of the step: float32 values make them no larger than about 1e8.
  const auto first = static_cast<std::int64_t>(std::ceil(axis.low / step));
  const auto last = static_cast<std::int64_t>(std::floor(axis.high / step));
  const std::int64_t largest = std::max(std::abs(first), std::abs(last)) * unit.mantissa;
  const int magnitude = floor_log10({largest, unit.exponent});
  const Notation notation = choose_notation(magnitude, unit.exponent);
  for (std::int64_t k = first; k <= last; ++k) {
    const Decimal number{k * unit.mantissa, unit.exponent};
    std::string label = k == 0 ? "0" : fixed_label(number, notation.scale) + notation.suffix;
    if (k < 0) label.insert(0, kMinus);
    axis.ticks.push_back({static_cast<double>(k) * step, std::move(label)});
  }
  axis.decimals = magnitude > 14 || magnitude < -6 ? -1 : std::clamp(3 - unit.exponent, 0, 12);
  return axis;
}

std::string_view name_of(DatePrecision precision) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"year", "month", "day", "minute", "second"};
  return kNames[static_cast<std::size_t>(precision)];
}

DatePrecision date_precision(std::span<const std::int64_t> times) {
  DatePrecision finest = DatePrecision::year;
  for (const std::int64_t time : times) {
    const CivilTime civil = civil_time(time);
    const DatePrecision needed = civil.second != 0                      ? DatePrecision::second
                                 : civil.hour != 0 || civil.minute != 0 ? DatePrecision::minute
                                 : civil.day != 1                       ? DatePrecision::day
                                 : civil.month != 1                     ? DatePrecision::month
                                                                        : DatePrecision::year;
    finest = std::max(finest, needed);
  }
  return finest;
}

std::string format_date(std::int64_t time, DatePrecision precision) {
  const CivilTime civil = civil_time(time);
  const std::string_view month = month_name(civil.month);
  switch (precision) {
    case DatePrecision::year:
      return fmt::format("{}", civil.year);
    case DatePrecision::month:
      return fmt::format("{} {}", month, civil.year);
    case DatePrecision::day:
      return fmt::format("{} {} {}", civil.day, month, civil.year);
    case DatePrecision::minute:
      return fmt::format("{} {} {} {:02}:{:02}", civil.day, month, civil.year, civil.hour,
                         civil.minute);
    case DatePrecision::second:
      break;
  }
  return fmt::format("{} {} {} {:02}:{:02}:{:02}", civil.day, month, civil.year, civil.hour,
                     civil.minute, civil.second);
}

std::vector<StepTick> calendar_ticks(std::span<const std::int64_t> times, double step_width,
                                     double font_size) {
  if (times.empty()) return {};
  const Unit finest = finest_unit(date_precision(times));
  const std::size_t least = times.front() == times.back() ? 1 : 2;  // one tick tells no distance
  // Regular times fit some calendar step exactly. For irregular ones a few ticks without room may
  // be left out, and at the very worst any number of them.
  for (const double droppable : {0.0, 0.25, 1.0}) {
    for (const CalendarStep& step : kCalendarSteps) {
      if (step.unit < finest) continue;
      const std::vector<std::size_t> steps = boundaries(times, step);
      std::vector<StepTick> ticks = spaced_ticks(steps, times, step.unit, step_width, font_size);
      const auto dropped = static_cast<double>(steps.size() - ticks.size());
      if (ticks.size() < (droppable == 1 ? 1 : least) ||
          dropped > droppable * static_cast<double>(steps.size()))
        continue;
      const bool fits = add_contexts(ticks, times, step.unit, step_width, font_size);
      if (fits || droppable == 1) return ticks;
    }
  }
  return {};
}

std::vector<StepTick> number_ticks(std::size_t first, std::size_t count, double step_width,
                                   double font_size) {
  const double widest =
      text_width(fixed_label({static_cast<std::int64_t>(first + count), 0}, 0), font_size);
  const double least = std::max(kLeastGap, widest + kLabelAir) / std::max(step_width, 1e-9);
  const Decimal nice = nice_step(std::max(least, 1.0));
  const auto step = static_cast<std::size_t>(
      std::llround(static_cast<double>(nice.mantissa) * std::pow(10.0, nice.exponent)));
  std::vector<StepTick> ticks;
  for (std::size_t number = (first + step - 1) / step * step; number < first + count;
       number += step) {
    ticks.push_back({number - first, fixed_label({static_cast<std::int64_t>(number), 0}, 0), {}});
  }
  return ticks;
}

}  // namespace toto::report
