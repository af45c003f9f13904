#include "tables/timestamps.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io_fixture.h"
#include "tables/series_frequency.h"
#include "tables/series_grid.h"

namespace toto::tables {
namespace {

// ------------------------------------------------------------------------------------- calendar

TEST(Calendar, AgreesWithTheStandardLibrary) {
  for (std::int64_t day = -800'000; day <= 3'000'000; day += 13) {
    const std::chrono::sys_days expected{std::chrono::days{day}};
    const std::chrono::year_month_day ymd{expected};
    const CivilDate date = civil_date(day * kDay + 5 * kHour);
    ASSERT_EQ(date.year, static_cast<int>(ymd.year())) << day;
    ASSERT_EQ(date.month, static_cast<int>(static_cast<unsigned>(ymd.month()))) << day;
    ASSERT_EQ(date.day, static_cast<int>(static_cast<unsigned>(ymd.day()))) << day;
    ASSERT_EQ(midnight(date), day * kDay);
    ASSERT_EQ(
        weekday(day * kDay - 1) + 1,
        static_cast<int>(std::chrono::weekday{expected - std::chrono::days{1}}.iso_encoding()));
  }
  EXPECT_EQ(days_in_month(2000, 2), 29);
  EXPECT_EQ(days_in_month(1900, 2), 28);
  EXPECT_EQ(days_in_month(2023, 12), 31);
  EXPECT_EQ(time_of_day(-kSecond), kDay - kSecond);
}

// ------------------------------------------------------------------------------------- spelling

// How a column of these times prints the last one.
std::string rewritten(const std::vector<std::string>& texts) {
  TimeColumn column;
  Ticks time = 0;
  for (const std::string& text : texts) {
    const std::string complaint = column.read(text, time);
    if (!complaint.empty()) return complaint;
  }
  return format_time(time, column.style());
}

TEST(TimeColumn, PrintsTimesInTheFilesStyle) {
  for (const std::string text :
       {"2024-02-29", "1750-01-01", "0001-01-01", "9999-12-31", "2024-01", "2024-01-31T23:59",
        "2024-01-31 23:59", "2024-01-31T23:59:58", "2024-01-31 23:59:58.5", "2024-01-31T00:00:00Z",
        "2024-01-31T00:00:00.123456Z", "2024-01-31T00:00:00+02:00", "2024-01-31 00:00-03:30",
        "2024-01-31T00:00:00.000", "0", "-5", "12345", "1999"}) {
    EXPECT_EQ(rewritten({text}), text);
  }
}

TEST(TimeColumn, PrintsOtherSpellingsAsIso8601) {
  EXPECT_EQ(rewritten({"20240131"}), "2024-01-31");
  EXPECT_EQ(rewritten({"2024/01/31"}), "2024-01-31");
  EXPECT_EQ(rewritten({"2024/01/31 10:00"}), "2024-01-31 10:00");
  EXPECT_EQ(rewritten({"2024-01-31T00:00:00+0200"}), "2024-01-31T00:00:00+02:00");
  EXPECT_EQ(rewritten({"2024-01-31T00:00:00+02"}), "2024-01-31T00:00:00+02:00");
  EXPECT_EQ(rewritten({"2024-01-31T00:00:00.123456000"}), "2024-01-31T00:00:00.123456");
  EXPECT_EQ(rewritten({"1704067200"}), "2024-01-01T00:00:00Z");
  EXPECT_EQ(rewritten({"1704067200000"}), "2024-01-01T00:00:00Z");
  EXPECT_EQ(rewritten({"1704067200250"}), "2024-01-01T00:00:00.250Z");
  EXPECT_EQ(rewritten({"1704067200000001"}), "2024-01-01T00:00:00.000001Z");
  EXPECT_EQ(rewritten({"1704067200000000000"}), "2024-01-01T00:00:00Z");
}

TEST(TimeColumn, UsesAStyleForAllTimes) {
  EXPECT_EQ(rewritten({"2024-01-01", "2024-01-01 12:30"}), "2024-01-01 12:30");
  EXPECT_EQ(rewritten({"2024-01-01 00:00:30", "2024-01-02"}), "2024-01-02 00:00:00");
  EXPECT_EQ(rewritten({"2024-01-01T00:00:00Z", "2024-01-01T00:00:01+00:00"}),
            "2024-01-01T00:00:01Z");
  EXPECT_EQ(rewritten({"2024-01", "2024-02-15"}), "2024-02-15");
  EXPECT_EQ(rewritten({"1", "20240131"}), "20240131");
  EXPECT_EQ(rewritten({"20240131", "20240201"}), "2024-02-01");
}

TEST(TimeColumn, RefusesTextThatIsNotATime) {
  for (const std::string text : {"",
                                 "x",
                                 "2024",
                                 "2024-",
                                 "2024-13-01",
                                 "2024-00-01",
                                 "2024-02-30",
                                 "2023-02-29",
                                 "2024-1-1",
                                 "24-01-01",
                                 "01/31/2024",
                                 "31.01.2024",
                                 "2024-01-31T",
                                 "2024-01-31T24:00",
                                 "2024-01-31T12:60",
                                 "2024-01-31T12:00:60",
                                 "2024-01-31T12",
                                 "2024-01-31 12:00:00.",
                                 "2024-01-31T12:00:00.1234567",
                                 "2024-01-31T12:00:00.1234560001",
                                 "2024-01-31T12:00:00X",
                                 "2024-01-31T12:00:00+",
                                 "2024-01Z",
                                 "2024-01-31T12:00:00+2",
                                 "2024-01-31T12:00:00+24:00",
                                 "2024-01-31T12:00:00+02:60",
                                 "2024-01-31T12:00:00Z ",
                                 "2024-01-31t12:00",
                                 "2024-01/31",
                                 "1.5",
                                 "1e9",
                                 "Jan 1 2024",
                                 "99999999999999999999",
                                 "202401",
                                 "+5"}) {
    TimeColumn column;
    Ticks time = 0;
    if (text == "2024" || text == "202401") {  // integers: step numbers, not dates
      EXPECT_TRUE(column.read(text, time).empty());
      EXPECT_TRUE(column.style().steps);
    } else {
      EXPECT_NE(column.read(text, time).find("is not a time, expected ISO 8601"), std::string::npos)
          << text;
    }
  }
}

TEST(TimeColumn, RefusesAMixture) {
  const auto lacks = [](const std::vector<std::string>& texts, std::string_view fragment) {
    return rewritten(texts).find(fragment) == std::string::npos;
  };
  EXPECT_FALSE(lacks({"2024-01-01T00:00Z", "2024-01-01T01:00"}, "has no zone"));
  EXPECT_FALSE(lacks({"2024-01-01", "2024-01-02T00:00Z"}, "has zone Z"));
  EXPECT_FALSE(lacks({"2024-01-01T00:00+01:00", "2024-01-01T01:00-02:30"}, "has zone -02:30"));
  EXPECT_FALSE(lacks({"2024-01-01", "5"}, "not a time"));
  EXPECT_FALSE(lacks({"5", "2024-01-01"}, "expected an integer"));
  EXPECT_FALSE(lacks({"5", "9223372036854775807"}, "expected an integer"));
  EXPECT_FALSE(lacks({"5", "-9223372036854775808"}, "expected an integer"));
  EXPECT_FALSE(lacks({"1704067200", "2024-01-01"}, "expected an integer"));
  EXPECT_FALSE(lacks({"1704067200", "9223372036854775807"}, "expected an integer"));
  EXPECT_FALSE(lacks({"1704067200000000000", "1704067200000000001"}, "microsecond"));
}

TEST(FormatTime, ExtendsTheStyle) {
  EXPECT_EQ(format_time(kHour, {}), "1970-01-01T01:00");
  EXPECT_EQ(format_time(-kSecond, {}), "1969-12-31T23:59:59");
  EXPECT_EQ(format_time(1, {}), "1970-01-01T00:00:00.000001");
  EXPECT_EQ(format_time(kDay, {.month_only = true}), "1970-01-02");
  EXPECT_EQ(format_time(midnight({.year = 102'024}), {}), "+102024-01-01");
  EXPECT_EQ(format_time(17, {.steps = true}), "17");
}

TEST(UtcSeconds, SubtractsTheZone) {
  const TimeStyle east{.zone = TimeStyle::Zone::offset, .offset_minutes = 120};
  EXPECT_EQ(utc_seconds(3 * kHour, east), 3600);
  EXPECT_EQ(utc_seconds(-1, {}), -1);
  EXPECT_EQ(utc_seconds(17, {.steps = true}), 17);
}

// ------------------------------------------------------------------------------------- frequency

Ticks at(const std::string& text) {
  Ticks time = 0;
  EXPECT_EQ(TimeColumn().read(text, time), "");
  return time;
}

std::vector<Ticks> at(const std::vector<std::string>& texts) {
  std::vector<Ticks> times;
  for (const std::string& text : texts) times.push_back(at(text));
  return times;
}

std::string after(const std::string& code, const std::string& from, int steps) {
  return format_time(advance(parse_frequency(code, "--freq"), at(from), steps), {});
}

TEST(Frequency, NamesAndParsesCodes) {
  const std::pair<std::string, std::string> codes[] = {
      {"s", "s"},       {"S", "s"},         {"min", "min"}, {"T", "min"},       {"15min", "15min"},
      {"30T", "30min"}, {"h", "h"},         {"1H", "h"},    {"D", "D"},         {"24h", "D"},
      {"7D", "W"},      {"W", "W"},         {"W-SUN", "W"}, {"B", "B"},         {"2B", "2B"},
      {"M", "M"},       {"MS", "M"},        {"ME", "M"},    {"3M", "Q"},        {"QS", "Q"},
      {"Q-DEC", "Q"},   {"Y", "Y"},         {"A-DEC", "Y"}, {"YS-JAN", "Y"},    {"12M", "Y"},
      {"ms", "ms"},     {"500ms", "500ms"}, {"us", "us"},   {"90min", "90min"}, {"2W", "2W"},
  };
  for (const auto& [code, name] : codes) {
    EXPECT_EQ(name_of(parse_frequency(code, "--freq"), false), name) << code;
  }
  EXPECT_EQ(name_of({.unit = Frequency::Unit::fixed, .count = 1}, true), "1 step");
  EXPECT_EQ(name_of({.unit = Frequency::Unit::fixed, .count = 3}, true), "3 steps");
  EXPECT_EQ(name_of({}, false), "unknown");
}

TEST(Frequency, RefusesOtherCodes) {
  for (const std::string code :
       {"", "0D", "-1D", "1000001D", "99999999999999999999D", "m", "x", "D D", "15", "1.5h", "H1",
        "W-", "W-SU", "W-sun", "fortnight", "-SUN"}) {
    io::expect_error(ErrorCode::invalid_argument, {"--freq is", "such as 15min"},
                     [&] { parse_frequency(code, "--freq"); });
  }
}

TEST(Frequency, AdvancesThroughTheCalendar) {
  EXPECT_EQ(after("15min", "2024-02-28T23:50", 2), "2024-02-29T00:20");
  EXPECT_EQ(after("W", "2024-02-26", 1), "2024-03-04");
  EXPECT_EQ(after("M", "2024-01-15", 1), "2024-02-15");
  EXPECT_EQ(after("M", "2024-01-31", 1), "2024-02-29");  // counted from the 31st each time
  EXPECT_EQ(after("M", "2024-01-31", 2), "2024-03-31");
  EXPECT_EQ(after("Q", "2023-11-30", 1), "2024-02-29");
  EXPECT_EQ(after("Y", "2024-02-29", 1), "2025-02-28");
  EXPECT_EQ(after("Y", "2024-02-29", 4), "2028-02-29");
  EXPECT_EQ(after("2Y", "1969-12-31", 1), "1971-12-31");
  const Frequency month_end{.unit = Frequency::Unit::month, .count = 1, .day = 31};
  EXPECT_EQ(format_time(advance(month_end, at("2024-02-29"), 1), {}), "2024-03-31");
}

TEST(Frequency, CountsMonthsBeforeTheYearZero) {
  for (std::int64_t month = -120; month < 120; ++month) {
    const CivilDate date = first_of_month(month);
    ASSERT_TRUE(date.month >= 1 && date.month <= 12) << month;
    EXPECT_EQ(month_number(date), month);
  }
  const Ticks start = midnight({.year = -5, .month = 1, .day = 31});
  const CivilDate next = civil_date(advance(parse_frequency("M", ""), start, 1));
  EXPECT_EQ(next.year, -5);
  EXPECT_EQ(next.month, 2);
  EXPECT_EQ(next.day, 28);
}

TEST(Frequency, SkipsWeekends) {
  EXPECT_EQ(after("B", "2024-01-04", 1), "2024-01-05");  // Thursday
  EXPECT_EQ(after("B", "2024-01-05", 1), "2024-01-08");
  EXPECT_EQ(after("B", "2024-01-06", 1), "2024-01-08");  // from a Saturday
  EXPECT_EQ(after("B", "2024-01-05", 5), "2024-01-12");
  EXPECT_EQ(after("B", "2024-01-05", 260), "2025-01-03");
  EXPECT_EQ(after("2B", "2024-01-04", 1), "2024-01-08");
  EXPECT_EQ(after("B", "1965-01-01T10:00", 1), "1965-01-04T10:00");
  for (int steps = 1; steps < 50; ++steps) {
    Ticks slow = at("2024-01-03");
    for (int left = steps; left > 0; left -= weekday(slow) < 5 ? 1 : 0) slow += kDay;
    EXPECT_EQ(advance(parse_frequency("B", ""), at("2024-01-03"), steps), slow);
  }
}

TEST(Frequency, ReachesTheLongestHorizonAndNoFurther) {
  EXPECT_EQ(after("M", "2024-01-01", 12 * 7976 - 1), "9999-12-01");
  EXPECT_EQ(after("Y", "2024-01-01", 7975), "9999-01-01");
  EXPECT_EQ(after("D", "9999-12-30", 1), "9999-12-31");
  EXPECT_EQ(after("B", "2024-01-01", 2'000'000), "9690-02-20");
  EXPECT_EQ(after("h", "9999-12-31T22:00", 1), "9999-12-31T23:00");
  for (const auto& [code, from] : {std::pair{"D", "9999-12-31"},
                                   {"h", "9999-12-31T23:00"},
                                   {"B", "9999-12-31"},
                                   {"M", "9999-12-01"},
                                   {"Y", "9999-01-01"}}) {
    io::expect_error(ErrorCode::corrupt_file, {"1 steps of", "pass the year 9999"},
                     [&] { after(code, from, 1); });
  }
  for (const std::string code : {"1000000Y", "10Y", "1000000W", "1000000B", "250000M"}) {
    io::expect_error(ErrorCode::corrupt_file, {"100000 steps of", "pass the year 9999"},
                     [&] { after(code, "2024-01-01", 100'000); });
  }
  io::expect_error(ErrorCode::internal, {"unknown"}, [] { advance({}, 0, 1); });
}

// ------------------------------------------------------------------------------------------ grid

Grid inferred(const std::vector<std::string>& texts) { return infer_grid(at(texts), false); }

std::string frequency_of(const std::vector<std::string>& texts) {
  const Grid grid = inferred(texts);
  return (grid.irregular ? "irregular " : "") + name_of(grid.frequency, false);
}

TEST(InferGrid, FindsFixedSteps) {
  EXPECT_EQ(frequency_of({"2024-01-01T00:00:00", "2024-01-01T00:00:01"}), "s");
  EXPECT_EQ(frequency_of({"2024-01-01T00:00", "2024-01-01T00:15", "2024-01-01T00:30"}), "15min");
  EXPECT_EQ(frequency_of({"2024-01-05", "2024-01-06", "2024-01-07"}), "D");
  EXPECT_EQ(frequency_of({"2024-01-01", "2024-01-08", "2024-01-15"}), "W");
  EXPECT_EQ(frequency_of({"2024-01-01"}), "unknown");
}

TEST(InferGrid, FindsMonthsQuartersAndYears) {
  EXPECT_EQ(frequency_of({"2024-01-01", "2024-02-01", "2024-03-01"}), "M");
  EXPECT_EQ(frequency_of({"2024-01-15", "2024-02-15"}), "M");
  EXPECT_EQ(frequency_of({"2023-02-28", "2023-03-31", "2023-04-30"}), "M");
  EXPECT_EQ(frequency_of({"2023-01-30", "2023-02-28", "2023-03-30"}), "M");
  EXPECT_EQ(frequency_of({"2023-03-31", "2023-06-30", "2023-09-30"}), "Q");
  EXPECT_EQ(frequency_of({"2021-01-01", "2022-01-01", "2023-01-01"}), "Y");
  EXPECT_EQ(frequency_of({"2024-01-01", "2024-01-29", "2024-02-26"}), "4W");
  EXPECT_EQ(inferred({"2023-02-28", "2023-03-31"}).frequency.day, 31);
  EXPECT_EQ(inferred({"2023-01-30", "2023-02-28", "2023-03-30"}).frequency.day, 30);
  EXPECT_EQ(frequency_of({"2024-01-31", "2024-02-28", "2024-03-29"}).substr(0, 9), "irregular");
}

TEST(InferGrid, InsertsAbsentPoints) {
  const Grid hours = inferred({"2024-01-01T00:00", "2024-01-01T01:00", "2024-01-01T03:00"});
  EXPECT_EQ(hours.times.size(), 4U);
  EXPECT_EQ(hours.positions, (std::vector<std::size_t>{0, 1, 3}));
  const Grid months = inferred({"2023-12-31", "2024-01-31", "2024-03-31"});
  EXPECT_EQ(months.times.at(2), at("2024-02-29"));
  EXPECT_EQ(months.positions, (std::vector<std::size_t>{0, 1, 3}));
  EXPECT_TRUE(inferred({"2024-01-01", "2024-01-02"}).positions.empty());
}

// Bars during market hours: nights are most of the time and have no data.
TEST(InferGrid, KeepsTradingSessions) {
  std::vector<Ticks> times;
  for (int day = 0; day < 5; ++day) {
    for (int bar = 0; bar < 7; ++bar) {
      times.push_back(at("2024-01-01T09:30") + day * kDay + bar * kHour);
    }
  }
  const Grid grid = infer_grid(times, false);
  EXPECT_TRUE(grid.irregular);
  EXPECT_EQ(grid.times, times);
  EXPECT_EQ(name_of(grid.frequency, false), "h");
  // A gap of 300 years must not create a grid of 10^10 points.
  EXPECT_TRUE(infer_grid({0, kSecond, 300 * 365 * kDay}, false).irregular);
  EXPECT_TRUE(infer_grid({0, 7, 11, 25}, true).irregular);
}

TEST(InferGrid, KnowsBusinessDaysAndTheirHolidays) {
  std::vector<Ticks> days;
  for (Ticks day = at("2023-12-01"); day < at("2024-03-01"); day += kDay) {
    const bool holiday =
        day == at("2023-12-25") || day == at("2024-01-01") || day == at("2024-01-15");
    if (weekday(day) < 5 && !holiday) days.push_back(day);
  }
  const Grid grid = infer_grid(days, false);
  EXPECT_EQ(name_of(grid.frequency, false), "B");
  EXPECT_EQ(grid.times, days);
  EXPECT_TRUE(grid.positions.empty());
  EXPECT_EQ(frequency_of({"2024-01-04", "2024-01-05", "2024-01-08"}), "B");
  // One Saturday makes it daily with gaps; a single week proves nothing about weekends.
  EXPECT_EQ(frequency_of({"2024-01-04", "2024-01-05", "2024-01-06", "2024-01-08"}), "D");
  EXPECT_EQ(frequency_of({"2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"}),
            "D");
  EXPECT_EQ(grid.num_closed_up, 0U);
  // Too many weekdays absent for a calendar of business days.
  EXPECT_NE(frequency_of({"2024-01-01", "2024-01-02", "2024-01-10", "2024-01-17"}), "B");
}

TEST(InferGrid, CountsGapsLongerThanHolidays) {
  const auto without = [](const std::string& first, const std::string& last) {
    std::vector<Ticks> days;
    for (Ticks day = at("2024-01-01"); day < at("2024-04-01"); day += kDay) {
      if (weekday(day) < 5 && (day < at(first) || day > at(last))) days.push_back(day);
    }
    return infer_grid(days, false);
  };
  const Grid week = without("2024-02-05", "2024-02-09");
  EXPECT_EQ(name_of(week.frequency, false), "B");
  EXPECT_EQ(week.num_closed_up, 0U) << "a week without trading is a holiday somewhere";
  const Grid longer = without("2024-02-03", "2024-02-12");
  EXPECT_EQ(name_of(longer.frequency, false), "B");
  EXPECT_EQ(longer.num_closed_up, 6U);
  EXPECT_EQ(longer.first_closed_up, at("2024-02-05"));
  EXPECT_TRUE(longer.positions.empty());
}

Grid imposed(const std::string& code, const std::vector<std::string>& texts) {
  return impose_grid(at(texts), parse_frequency(code, "--freq"), {}, "data.csv");
}

TEST(ImposeGrid, MovesRowsToTheirSteps) {
  const Grid hours = imposed("h", {"2024-01-01T00:00", "2024-01-01T01:02", "2024-01-01T03:58"});
  EXPECT_EQ(hours.num_moved, 2U);
  EXPECT_EQ(hours.positions, (std::vector<std::size_t>{0, 1, 4}));
  // The last trading day of each month.
  const Grid months = imposed("M", {"2024-01-31", "2024-02-29", "2024-03-28"});
  EXPECT_EQ(months.times, at({"2024-01-31", "2024-02-29", "2024-03-31"}));
  EXPECT_EQ(months.num_moved, 1U);
  const Grid starts = imposed("MS", {"2024-01-02", "2024-02-01", "2024-03-01"});
  EXPECT_EQ(starts.times.back(), at("2024-03-01"));
  const Grid days = imposed("B", {"2024-01-05", "2024-01-09"});
  EXPECT_EQ(days.times, at({"2024-01-05", "2024-01-08", "2024-01-09"}));
  EXPECT_EQ(days.positions, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(imposed("2B", {"2024-01-05", "2024-01-09", "2024-01-15"}).positions,
            (std::vector<std::size_t>{0, 1, 3}));
  EXPECT_EQ(imposed("M", {"2024-01-31"}).frequency.day, 31);
}

TEST(ImposeGrid, RefusesFrequenciesThatDoNotFit) {
  io::expect_error(ErrorCode::invalid_argument,
                   {"the frequency D does not fit data.csv", "2024-01-01T01:00", "one step"},
                   [] { imposed("D", {"2024-01-01", "2024-01-01T01:00"}); });
  io::expect_error(ErrorCode::invalid_argument, {"2024-01-06 is on a weekend"},
                   [] { imposed("B", {"2024-01-05", "2024-01-06"}); });
  io::expect_error(ErrorCode::invalid_argument, {"at most ten a row", "steps of 2 rows"},
                   [] { imposed("s", {"2024-01-01", "2024-01-02"}); });
  io::expect_error(ErrorCode::internal, {"unknown frequency"},
                   [] { impose_grid({0}, {}, {}, "data.csv"); });
}

}  // namespace
}  // namespace toto::tables
