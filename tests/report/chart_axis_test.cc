// The parts of every chart: ticks, dates, safe text and paths.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "fan_chart_examples.h"
#include "report/axis.h"
#include "report/plot.h"
#include "report/svg.h"
#include "special_values.h"
#include "toto/toto.h"

namespace toto::report {
namespace {

constexpr std::int64_t kHour = 3600;

std::int64_t at(int year, unsigned month, unsigned day, int hour = 0, int minute = 0) {
  using namespace std::chrono;
  const sys_days date = std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day);
  return date.time_since_epoch().count() * kDay + hour * kHour + minute * 60;
}

std::vector<std::int64_t> every(std::int64_t start, std::int64_t step, std::size_t count) {
  std::vector<std::int64_t> times(count);
  for (std::size_t i = 0; i < count; ++i) times[i] = start + static_cast<std::int64_t>(i) * step;
  return times;
}

std::vector<std::int64_t> every_month(int year, unsigned step, std::size_t count) {
  std::vector<std::int64_t> times(count);
  for (unsigned i = 0; i < count; ++i) {
    times[i] = at(year + static_cast<int>(i * step / 12), i * step % 12 + 1, 1);
  }
  return times;
}

std::vector<std::int64_t> business_days(std::int64_t start, std::size_t count) {
  std::vector<std::int64_t> times;
  for (std::int64_t time = start; times.size() < count; time += kDay) {
    const auto weekday = (time / kDay + 4) % 7;  // 0: Sunday
    if (weekday != 0 && weekday != 6) times.push_back(time);
  }
  return times;
}

// "2 Jan/2024, 3 Jan, ..." for a plot 800 wide.
std::string ticks_of(const std::vector<std::int64_t>& times, double width = 800) {
  std::string text;
  const double step_width = width / static_cast<double>(std::max<std::size_t>(times.size() - 1, 1));
  for (const StepTick& tick : calendar_ticks(times, step_width, 12)) {
    if (!text.empty()) text += ", ";
    text += tick.label;
    if (!tick.context.empty()) text += '/' + tick.context;
  }
  return text;
}

std::string labels_of(const ValueAxis& axis) {
  std::string text;
  for (const ValueTick& tick : axis.ticks) text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

// ---------------------------------------------------------------------------------------- values

TEST(ValueAxis, LabelsSuitTheirMagnitude) {
  EXPECT_EQ(labels_of(value_axis(177, 251, 8)), "180 200 220 240");
  EXPECT_EQ(labels_of(value_axis(0, 1, 8)), "0 0.2 0.4 0.6 0.8 1.0");
  EXPECT_EQ(labels_of(value_axis(24'000, 41'000, 5)), "25,000 30,000 35,000 40,000");
  EXPECT_EQ(labels_of(value_axis(0.011, 0.018, 5)), "0.012 0.014 0.016 0.018");
  EXPECT_EQ(labels_of(value_axis(0, 2.4e6, 6)), "0 0.5M 1.0M 1.5M 2.0M 2.5M");
  EXPECT_EQ(labels_of(value_axis(-5e9, 5e9, 8)), "−4G −2G 0 2G 4G");
  EXPECT_EQ(labels_of(value_axis(0, 4e-5, 5)), "0 10µ 20µ 30µ 40µ");
  EXPECT_EQ(labels_of(value_axis(-1, 1, 5)), "−1.0 −0.5 0 0.5 1.0");
  EXPECT_EQ(labels_of(value_axis(1e30, 3e30, 5)), "1.0×10³⁰ 1.5×10³⁰ 2.0×10³⁰ 2.5×10³⁰ 3.0×10³⁰");
  EXPECT_EQ(labels_of(value_axis(0, 3e-31, 4)), "0 1×10⁻³¹ 2×10⁻³¹ 3×10⁻³¹");
  // Far from zero and close together: with a suffix a few digits could not distinguish them.
  EXPECT_EQ(labels_of(value_axis(1'234'567, 1'234'568, 5)), "1,234,567.0 1,234,567.5 1,234,568.0");
}

TEST(ValueAxis, StaysOnItsSideOfZero) {
  EXPECT_EQ(value_axis(0.1, 100, 8).low, 0);
  EXPECT_EQ(value_axis(-100, -0.1, 8).high, 0);
  EXPECT_LT(value_axis(-1, 100, 8).low, -1);
}

TEST(ValueAxis, SurvivesConstantsAndNothing) {
  for (const double value : {0.0, 42.0, -1e-45, 1e30, -3.4e38}) {
    const ValueAxis axis = value_axis(value, value, 8);
    EXPECT_LT(axis.low, value);
    EXPECT_GT(axis.high, value);
    EXPECT_GE(axis.ticks.size(), 2U) << value;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const ValueAxis nothing = value_axis(infinity, -infinity, 8);
  EXPECT_LT(nothing.low, nothing.high);
}

TEST(ValueAxis, EveryRangeGetsEvenDistinctTicks) {
  for (const double offset : {0.0, 1.0, -3.0, 1000.0}) {
    for (int exponent = -44; exponent <= 35; ++exponent) {
      for (const double width : {1.0, 1.7, 2.3, 4.4, 6.1, 9.9}) {
        const double scale = std::pow(10.0, exponent);
        const double min = offset * scale, max = min + width * scale;
        const ValueAxis axis = value_axis(min, max, 8);
        SCOPED_TRACE(labels_of(axis));
        ASSERT_GE(axis.ticks.size(), 3U);
        ASSERT_LE(axis.ticks.size(), 9U);
        const double step = axis.ticks[1].value - axis.ticks[0].value;
        const double mantissa = step / std::pow(10.0, std::floor(std::log10(step * 1.0001)));
        EXPECT_LT(
            std::min({std::abs(mantissa - 1), std::abs(mantissa - 2), std::abs(mantissa - 5)}),
            1e-6);
        for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
          EXPECT_GE(axis.ticks[i].value, axis.low - step * 1e-9);
          EXPECT_LE(axis.ticks[i].value, axis.high + step * 1e-9);
          EXPECT_LE(axis.ticks[i].label.size(), 24U);
          if (i > 0) {
            EXPECT_NE(axis.ticks[i].label, axis.ticks[i - 1].label);
          }
        }
      }
    }
  }
}

// ----------------------------------------------------------------------------------------- times

TEST(Dates, HaveTheNeededPrecision) {
  const std::vector<std::int64_t> years = {at(1700, 1, 1), at(1701, 1, 1)};
  EXPECT_EQ(date_precision(years), DatePrecision::year);
  EXPECT_EQ(date_precision(std::vector{at(2024, 1, 1), at(2024, 2, 1)}), DatePrecision::month);
  EXPECT_EQ(date_precision(std::vector{at(2024, 1, 31), at(2024, 2, 29)}), DatePrecision::day);
  EXPECT_EQ(date_precision(std::vector{at(2024, 1, 1, 9, 30)}), DatePrecision::minute);
  EXPECT_EQ(date_precision(std::vector{at(2024, 1, 1) + 1}), DatePrecision::second);
  EXPECT_EQ(format_date(at(1700, 1, 1), DatePrecision::year), "1700");
  EXPECT_EQ(format_date(at(2024, 2, 1), DatePrecision::month), "Feb 2024");
  EXPECT_EQ(format_date(at(2024, 2, 29), DatePrecision::day), "29 Feb 2024");
  EXPECT_EQ(format_date(at(1969, 12, 31, 23, 59), DatePrecision::minute), "31 Dec 1969 23:59");
  EXPECT_EQ(format_date(-1, DatePrecision::second), "31 Dec 1969 23:59:59");
  EXPECT_EQ(format_date(kEarliestTime, DatePrecision::day), "1 Jan 1");
  EXPECT_EQ(format_date(kLatestTime, DatePrecision::day), "31 Dec 9999");
}

TEST(CalendarTicks, FollowTheSpan) {
  EXPECT_EQ(ticks_of(every(at(2024, 3, 4, 10), 1, 61)),
            "10:00:00/4 Mar 2024, 10:00:10, 10:00:20, 10:00:30, 10:00:40, 10:00:50, 10:01:00");
  EXPECT_EQ(ticks_of(every(at(2024, 3, 4, 10), 60, 61)),
            "10:00/4 Mar 2024, 10:05, 10:10, 10:15, 10:20, 10:25, 10:30, 10:35, 10:40, 10:45, "
            "10:50, 10:55, 11:00");
  EXPECT_EQ(ticks_of(every(at(2024, 3, 4, 20), kHour, 31)),
            "21:00, 00:00/5 Mar 2024, 03:00, 06:00, 09:00, 12:00, 15:00, 18:00, 21:00, "
            "00:00/6 Mar 2024");
  EXPECT_EQ(ticks_of(every(at(2023, 12, 27), kDay, 10)),
            "27 Dec/2023, 28 Dec, 29 Dec, 30 Dec, 31 Dec, 1 Jan/2024, 2 Jan, 3 Jan, 4 Jan, 5 Jan");
  EXPECT_EQ(ticks_of(every(at(2024, 1, 1), kDay, 50)),
            "1 Jan/2024, 8 Jan, 15 Jan, 22 Jan, 29 Jan, 5 Feb, 12 Feb, 19 Feb");
  EXPECT_EQ(ticks_of(every(at(2024, 1, 1), kDay, 300)),
            "Jan/2024, Feb, Mar, Apr, May, Jun, Jul, Aug, Sep, Oct");
  EXPECT_EQ(ticks_of(every(at(2022, 1, 1), kDay, 800)),
            "Jan/2022, Apr, Jul, Oct, Jan/2023, Apr, Jul, Oct, Jan/2024");
  EXPECT_EQ(ticks_of(every_month(1949, 1, 144)),
            "1949, 1950, 1951, 1952, 1953, 1954, 1955, 1956, 1957, 1958, 1959, 1960");
  EXPECT_EQ(ticks_of(every_month(2020, 3, 12)),
            "Jan/2020, Apr, Jul, Oct, Jan/2021, Apr, Jul, Oct, Jan/2022, Apr, Jul, Oct");
  EXPECT_EQ(ticks_of(every_month(1700, 12, 331)), "1700, 1750, 1800, 1850, 1900, 1950, 2000");
}

TEST(CalendarTicks, MonthEndsAndSingleTimes) {
  EXPECT_EQ(ticks_of({at(2024, 1, 31), at(2024, 2, 29), at(2024, 3, 31), at(2024, 4, 30)}),
            "31 Jan/2024, 29 Feb, 31 Mar, 30 Apr");
  EXPECT_EQ(ticks_of({at(2024, 1, 31)}), "31 Jan/2024");
  EXPECT_EQ(ticks_of({at(2024, 1, 1)}), "2024");
  EXPECT_EQ(ticks_of({at(2024, 1, 1, 9, 30)}), "09:30/1 Jan 2024");
  EXPECT_TRUE(calendar_ticks({}, 10, 12).empty());
}

TEST(CalendarTicks, WeekendsTakeNoRoomAndMonthsBeginOnTheFirstTradingDay) {
  const std::vector<std::int64_t> times = business_days(at(2024, 5, 20), 60);
  const std::vector<StepTick> ticks = calendar_ticks(times, 5, 12);
  ASSERT_GE(ticks.size(), 2U);
  EXPECT_EQ(ticks[0].label, "Jun");
  EXPECT_EQ(times[ticks[0].step], at(2024, 6, 3));  // the 1st was a Saturday
  EXPECT_EQ(ticks[0].step, 10U);
  const std::vector<StepTick> weeks = calendar_ticks(times, 14, 12);
  for (std::size_t i = 1; i < weeks.size(); ++i) {
    EXPECT_EQ(weeks[i].step - weeks[i - 1].step, 5U);  // Monday to Monday is five steps
  }
  EXPECT_EQ(weeks[1].label, "27 May");
}

TEST(CalendarTicks, SessionsAreLabelledWithTheirOwnTimes) {
  std::vector<std::int64_t> times;  // 09:30 to 15:55 on two days
  for (const unsigned day : {4U, 5U}) {
    for (int i = 0; i < 78; ++i) times.push_back(at(2024, 3, day, 9, 30) + i * 300);
  }
  EXPECT_EQ(ticks_of(times), "12:00/4 Mar 2024, 15:00, 09:30/5 Mar 2024, 12:00, 15:00");
}

// From ten seconds to seven millennia, at several numbers of points and two widths of plot.
TEST(CalendarTicks, NoSpanLeavesThemCrowdedOrAlone) {
  for (const double width : {340.0, 800.0}) {
    for (const std::size_t count : {11U, 100U, 1000U}) {
      for (double span = 10; span < 2.2e11; span *= 1.37) {
        const auto step = std::max<std::int64_t>(
            1, static_cast<std::int64_t>(span / static_cast<double>(count - 1)));
        const std::vector<std::int64_t> times = every(at(1969, 7, 20, 20, 17) + 40, step, count);
        if (times.back() > kLatestTime) continue;
        SCOPED_TRACE(ticks_of(times, width));
        const double step_width = width / static_cast<double>(count - 1);
        const std::vector<StepTick> ticks = calendar_ticks(times, step_width, 12);
        ASSERT_GE(ticks.size(), 2U) << "step " << step << " count " << count;
        ASSERT_LE(ticks.size(), static_cast<std::size_t>(width / 48) + 1);
        EXPECT_FALSE(ticks[0].context.empty() && ticks[1].context.empty() &&
                     ticks[0].label.size() > 4);
        const StepTick* previous = nullptr;
        for (const StepTick& tick : ticks) {
          if (previous != nullptr) {
            const double gap = static_cast<double>(tick.step - previous->step) * step_width;
            const double room = text_width(tick.label, 12) + text_width(previous->label, 12);
            EXPECT_GE(gap, room / 2);
          }
          previous = &tick;
        }
      }
    }
  }
}

TEST(CalendarTicks, IrregularTimesAreThinnedOut) {
  // Forty points in one week of 2020, then one point in each of three far years.
  std::vector<std::int64_t> times = every(at(2020, 3, 2, 8), 4 * kHour, 40);
  for (const int year : {2100, 2101, 2102}) times.push_back(at(year, 1, 1));
  const std::vector<StepTick> ticks = calendar_ticks(times, 800.0 / 42, 12);
  ASSERT_GE(ticks.size(), 2U);
  for (std::size_t i = 1; i < ticks.size(); ++i) EXPECT_GE(ticks[i].step, ticks[i - 1].step + 3);
  const std::vector<std::int64_t> same(50, at(2024, 1, 1));  // finer than a second
  EXPECT_EQ(calendar_ticks(same, 16, 12).size(), 1U);
  std::vector<std::int64_t> early(1000, at(2024, 1, 2));  // the only change is in the first pixel
  early[0] = at(2024, 1, 1);
  EXPECT_EQ(calendar_ticks(early, 0.8, 12).size(), 1U);
}

TEST(NumberTicks, CountFromTheFirstStepShown) {
  const std::vector<StepTick> ticks = number_ticks(981, 60, 800.0 / 59, 12);
  ASSERT_FALSE(ticks.empty());
  EXPECT_EQ(ticks.front().label, "985");
  EXPECT_EQ(ticks.front().step, 4U);
  EXPECT_EQ(ticks.back().label, "1,040");
  EXPECT_EQ(number_ticks(1, 1, 800, 12).size(), 1U);
  EXPECT_LE(number_ticks(1, 1'000'000, 0.0008, 12).size(), 13U);
}

// ------------------------------------------------------------------------------------------ text

TEST(SafeText, NothingFromAFileIsMarkup) {
  EXPECT_EQ(escape_xml("<a href=\"x\" b='y'>&amp;"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(escape_script_json(R"({"a":"</script><!-- & -->"})"),
            R"({"a":"\u003c/script\u003e\u003c!-- \u0026 --\u003e"})");
}

TEST(SafeText, ControlsAndBrokenBytesAreShownAsSuch) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(clean_text(std::string("a\0b", 3)), "a" + bad + "b");
  EXPECT_EQ(clean_text("a\tb\r\nc"), "a b  c");
  EXPECT_EQ(clean_text("\x1b[31m\x7f"), bad + "[31m" + bad);
  EXPECT_EQ(clean_text("\xC2\x85"), bad);  // a C1 control
  EXPECT_EQ(clean_text("\xE2\x80\xAE"
                       "cod.exe"),
            bad + "cod.exe");                              // right-to-left override
  EXPECT_EQ(clean_text("\xEF\xBF\xBE"), bad);              // U+FFFE is not allowed in XML
  EXPECT_EQ(clean_text("\xED\xA0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(clean_text("\xFF\xC3"), bad + bad);
  EXPECT_EQ(clean_text("Übergröße 日本 €"), "Übergröße 日本 €");
}

TEST(MeasuredText, IsCutAtWholeCharacters) {
  EXPECT_EQ(fit_text("short", 12, 100), "short");
  const std::string cut = fit_text("日本日本日本日本日本", 10, 60);
  EXPECT_EQ(cut, "日本日本…");
  EXPECT_LE(text_width(fit_text(std::string(4000, 'W'), 12, 200), 12), 200);
  EXPECT_EQ(fit_text("abc", 12, 0), "…");
}

TEST(MeasuredText, WrapsAtSpaces) {
  EXPECT_TRUE(wrap_text("", 12, 100, 2).empty());
  EXPECT_TRUE(wrap_text("  \n ", 12, 100, 2).empty());
  const std::vector<std::string> lines = wrap_text("one two three four five six", 10, 60, 2);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "one two");
  EXPECT_TRUE(lines[1].ends_with("…")) << lines[1];
  for (const std::string& line : wrap_text(std::string(300, 'x') + " y", 10, 80, 3)) {
    EXPECT_LE(text_width(line, 10), 80);
  }
}

TEST(Coordinates, AreShortAndFinite) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.34), "12.3");
  EXPECT_EQ(coordinate(-0.04), "0");
  EXPECT_THROW(coordinate(std::nan("")), Error);
  EXPECT_THROW(coordinate(1 / 0.0), Error);
}

// ----------------------------------------------------------------------------------------- paths

TEST(Paths, EveryPointIsDrawnWhileThereIsRoom) {
  const Frame frame{
      .left = 0, .top = 0, .right = 320, .bottom = 100, .steps = 6, .low = 0, .high = 10};
  const std::vector<float> values = {0, 5, kMissing, 10, kMissing, 5};
  const auto runs = visible_runs(values, frame, 0);
  const std::vector<std::vector<std::size_t>> expected = {{0, 1}, {3}, {5}};
  EXPECT_EQ(runs, expected);
  const LinePaths paths = line_paths(values, frame, 0);
  EXPECT_EQ(paths.line.text(), "M10 100L70 50");
  EXPECT_EQ(paths.dots.text(), "M190 0L190 0M310 50L310 50");
}

TEST(Paths, ALongSeriesKeepsItsExtremesAndNothingElse) {
  std::vector<float> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.7));
  }
  values[31'234] = 9;
  values[77'777] = -9;
  const Frame frame{.left = 0,
                    .top = 0,
                    .right = 800,
                    .bottom = 300,
                    .steps = values.size(),
                    .low = -9,
                    .high = 9};
  const auto runs = visible_runs(values, frame, 0);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_LE(runs[0].size(), 1600U);
  EXPECT_TRUE(std::is_sorted(runs[0].begin(), runs[0].end()));
  EXPECT_NE(std::find(runs[0].begin(), runs[0].end(), 31'234U), runs[0].end());
  EXPECT_NE(std::find(runs[0].begin(), runs[0].end(), 77'777U), runs[0].end());
  // A hole of one missing value per pixel changes nothing; one of many pixels breaks the line.
  for (std::size_t i = 0; i < values.size(); i += 2) values[i] = kMissing;
  EXPECT_EQ(visible_runs(values, frame, 0).size(), 1U);
  std::fill(values.begin() + 50'000, values.begin() + 60'000, kMissing);
  EXPECT_EQ(visible_runs(values, frame, 0).size(), 2U);
}

TEST(Paths, ALoneBandStepIsABarAndAGapInEitherEdgeIsAGap) {
  const Frame frame{
      .left = 0, .top = 0, .right = 320, .bottom = 100, .steps = 4, .low = 0, .high = 10};
  const std::vector<float> low = {2, kMissing, 4, 4}, high = {8, 8, 6, 6};
  EXPECT_EQ(band_path(low, high, frame, 0).text(),
            "M0 20L20 20L20 80L0 80Z"
            "M210 40L310 40L310 60L210 60Z");
  const std::vector<float> flat = {5};
  EXPECT_EQ(band_path(flat, flat, frame, 3).text(), "M300 50L320 50L320 51L300 51Z");
}

}  // namespace
}  // namespace toto::report
