// Reading bars: accepted files, errors with their line, and notes.
#include <gtest/gtest.h>

#include "backtest_fixture.h"
#include "io_fixture.h"
#include "tables/bars.h"
#include "tables/calendar.h"
#include "tables/currency.h"

namespace toto::tables {
namespace {

class BarsTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    io::put(folder_ / name, text);
    return folder_ / name;
  }
  void expect_refused(const std::string& rows, std::initializer_list<std::string_view> fragments) {
    const std::string path = file("x.csv", "date,open,high,low,close,volume\n" + rows);
    io::expect_error(ErrorCode::corrupt_file, fragments, [&] { read_bars(path); });
  }
  io::TemporaryFolder folder_;
};

TEST_F(BarsTest, PricesAreDoublesAndTheSymbolIsTheFile) {
  const auto all = read_bars(
      file("AAPL.csv", "Date,Open,High,Low,Close,Volume\n2024-01-02,0.1,0.3,0.05,0.2,7\n"));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].symbol, "AAPL");
  EXPECT_EQ(all[0].open[0], 0.1);
  EXPECT_EQ(all[0].high[0], 0.3);
  EXPECT_EQ(all[0].low[0], 0.05);
  EXPECT_EQ(all[0].close[0], 0.2);
  EXPECT_EQ(all[0].volume[0], 7);
  EXPECT_EQ(all[0].lines[0], 2);
  EXPECT_EQ(all[0].time_text(0), "2024-01-02");
}

TEST_F(BarsTest, ReadsASymbolColumn) {
  const auto all = read_bars(file("many.csv",
                                  "date,symbol,open,high,low,close\n"
                                  "2024-01-02,A,1,1,1,1\n2024-01-02,B,2,2,2,2\n"
                                  "2024-01-03,A,3,3,3,3\n"));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].symbol, "A");
  EXPECT_EQ(all[0].close, (std::vector<double>{1, 3}));
  EXPECT_EQ(all[0].lines, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(all[1].symbol, "B");
}

TEST_F(BarsTest, RefusesBadRowsWithTheirLine) {
  const std::string good = "2024-01-02,1,1,1,1,5\n";
  expect_refused(good + "2024-01-03,1,1,1,,5\n", {"line 3, column 5 (\"close\")", "missing"});
  expect_refused(good + "2024-01-03,1,1,NaN,1,5\n", {"line 3, column 4 (\"low\")", "missing"});
  expect_refused(good + "2024-01-03,-1,1,1,1,5\n", {"line 3, column 2", "-1", "above 0"});
  expect_refused(good + "2024-01-03,1,0,1,1,5\n", {"line 3, column 3", "0", "above 0"});
  expect_refused(good + "2024-01-03,1,1,1,$1,5\n", {"line 3", "\"$1\" is text"});
  expect_refused(good + "2024-01-03,1,1,1,\"1,5\",5\n", {"line 3", "decimal comma"});
  expect_refused(good + "2024-01-03,1,1,1,inf,5\n", {"line 3", "not finite"});
  expect_refused(good + "2024-01-03,1,1,1,1e99,5\n", {"line 3", "beyond float32"});
  expect_refused(good + "2024-01-03,1,1,1,1e-99,5\n", {"line 3", "1e-99", "above 0"});
  expect_refused(good + "2024-01-03,1,1\n", {"line 3", "3 fields, expected 6"});
  expect_refused(good + "2024-01-02,1,1,1,1,6\n", {"line 3", "appears twice"});
  const std::string next = "2024-01-03,1,1,1,1,5\n", before = "2024-01-01,1,1,1,1,5\n";
  expect_refused(good + next + before, {"line 4", "increasing"});
  expect_refused(good + next + good, {"line 4", "increasing"});
  expect_refused(next + good + next, {"line 4", "increasing"});
  expect_refused("", {"line 1", "no row"});
  const std::string closes = file("AMD.csv", "date,close,volume\n2024-01-02,1,2\n");
  io::expect_error(ErrorCode::corrupt_file, {"AMD.csv", "open, high, low and close"},
                   [&] { read_bars(closes); });
  EXPECT_EQ(
      read_bars(file("y.csv", "date,open,high,low,close,volume\n2024-01-02,1,1,1,1,12K\n")).size(),
      1u)
      << "volume may hold anything";
}

TEST_F(BarsTest, FoldersAndRepeatedSymbols) {
  const std::string row = "date,open,high,low,close\n2024-01-02,1,1,1,1\n";
  std::filesystem::create_directory(folder_ / "data");
  file("data/B.csv", row);
  file("data/A.CSV", row);
  file("data/readme.txt", "x");
  const auto all = read_all_bars({folder_ / "data"});
  ASSERT_EQ(all.bars.size(), 2u);
  EXPECT_TRUE(all.notes.empty());
  EXPECT_EQ(all.bars[0].symbol, "A");
  EXPECT_EQ(all.bars[1].symbol, "B");
  const std::string other = file("A.csv", row);
  io::expect_error(ErrorCode::corrupt_file, {"\"A\"", "is also in"},
                   [&] { read_all_bars({folder_ / "data", other}); });
  std::filesystem::create_directory(folder_ / "empty");
  io::expect_error(ErrorCode::corrupt_file, {"no .csv"},
                   [&] { read_all_bars({folder_ / "empty"}); });
  io::expect_error(ErrorCode::not_found, {"gone.csv"},
                   [&] { read_all_bars({folder_ / "gone.csv"}); });
}

TEST_F(BarsTest, NewestFirstIsReadInReverseAndRepeatedRowsAreDropped) {
  const std::string header = "date,symbol,open,high,low,close\n";
  const std::string path = file("x.csv", header +
                                             "2024-01-04,A,4,4,4,4\n2024-01-04,B,7,7,7,7\n"
                                             "2024-01-03,A,3,3,3,3\n2024-01-03,A,3,3,3,3\n"
                                             "2024-01-02,A,2,2,2,2\n2024-01-05,B,8,8,8,8\n");
  const BarFiles all = read_all_bars({path});
  ASSERT_EQ(all.bars.size(), 2u);
  EXPECT_EQ(all.bars[0].close, (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(all.bars[0].open, (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(all.bars[0].lines, (std::vector<std::int64_t>{6, 4, 2}));
  EXPECT_EQ(all.bars[0].time_text(0), "2024-01-02");
  EXPECT_EQ(all.bars[1].close, (std::vector<double>{7, 8})) << "each symbol has its own order";
  EXPECT_EQ(all.notes, (std::vector<std::string>{
                           path + ": the rows are newest first: read in reverse",
                           path + ": line 5: the row repeats the one before it: dropped"}));
}

TEST_F(BarsTest, FilesWithoutBarsAreSkipped) {
  const std::string bars = file("A.csv", "date,open,high,low,close\n2024-01-02,1,1,1,1\n");
  const std::string closes = file("AMD.csv", "date,close,volume\n2024-01-02,1,2\n");
  const BarFiles all = read_all_bars({closes, bars});
  ASSERT_EQ(all.bars.size(), 1u);
  EXPECT_EQ(all.bars[0].symbol, "A");
  EXPECT_EQ(all.notes,
            std::vector<std::string>{
                closes + ": has no columns open, high, low and close: not bars, skipped"});
  io::expect_error(ErrorCode::corrupt_file, {"no bars", "AMD.csv"},
                   [&] { read_all_bars({closes}); });
  // A file that has them but is broken stops everything, as does an empty one.
  const std::string broken = file("B.csv", "date,open,high,low,close\n2024-01-02,1,1,1,0\n");
  io::expect_error(ErrorCode::corrupt_file, {"B.csv", "line 2"},
                   [&] { read_all_bars({bars, broken}); });
  io::expect_error(ErrorCode::corrupt_file, {"empty.csv", "empty"},
                   [&] { read_all_bars({bars, file("empty.csv", "")}); });
}

// --------------------------------------------------------------------------------------- calendar

Bars daily(int count, bool weekends) {
  Bars bars = backtest::make_bars(
      std::vector<backtest::Row>(static_cast<std::size_t>(count), {1, 1, 1, 1}));
  if (weekends) return bars;
  Ticks time = bars.times.front();
  for (Ticks& slot : bars.times) {
    while (weekday(time) >= 5) time += kDay;
    slot = time;
    time += kDay;
  }
  return bars;
}

// Bars at 9, 10, ..., 15 o'clock.
Bars hourly(int num_days) {
  Bars bars = backtest::make_bars(
      std::vector<backtest::Row>(static_cast<std::size_t>(num_days) * 7, {1, 1, 1, 1}));
  const Bars days = daily(num_days, false);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    bars.times[i] = days.times[i / 7] + static_cast<Ticks>(9 + i % 7) * kHour;
  }
  bars.style.has_clock = true;
  return bars;
}

void remove_bar(Bars& bars, std::size_t bar) {
  const auto drop = [&](auto& values) {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(bar));
  };
  drop(bars.times);
  drop(bars.lines);
  drop(bars.open);
  drop(bars.high);
  drop(bars.low);
  drop(bars.close);
}

bool has_note(const std::vector<std::string>& notes,
              std::initializer_list<std::string_view> fragments) {
  for (const std::string& note : notes) {
    bool all = true;
    for (const std::string_view fragment : fragments) {
      all &= note.find(fragment) != std::string::npos;
    }
    if (all) return true;
  }
  return false;
}

TEST(Calendar, AssetAndBarsAYear) {
  EXPECT_EQ(detect_asset(daily(20, false)).asset, Asset::stock);
  EXPECT_EQ(detect_asset(daily(20, false)).reason, "no bar on a weekend");
  EXPECT_EQ(detect_asset(daily(20, true)).asset, Asset::crypto);
  EXPECT_EQ(detect_asset(daily(20, true)).reason, "bars on weekends");
  EXPECT_EQ(bars_per_year(daily(20, false), Asset::stock), 252);
  EXPECT_EQ(bars_per_year(daily(20, true), Asset::crypto), 365);
  EXPECT_EQ(bars_per_year(hourly(5), Asset::stock), 252 * 7);
  Bars steps = daily(20, true);
  steps.style.steps = true;
  EXPECT_EQ(detect_asset(steps).asset, Asset::stock);
  EXPECT_EQ(detect_asset(steps).reason, "no dates");
  EXPECT_EQ(bars_per_year(steps, Asset::stock), 252);
}

TEST(Calendar, CurrencyPairsAreKnownByTheirNames) {
  for (const char* name :
       {"EURUSD", "GBP/JPY", "eur_usd", "USD-CNH", "AUD.NZD", "EURUSD=X", "XOFUSD"}) {
    EXPECT_TRUE(is_currency_pair(name)) << name;
  }
  for (const char* name : {"BTCUSD", "USDT", "XAUUSD", "EUREUR", "EURUSDT", "GOOGLE", "AAPL", "EUR",
                           "", "EUR+USD", "EURUSD=F"}) {
    EXPECT_FALSE(is_currency_pair(name)) << name;
  }
  // Currencies trade on Sunday evenings: a weekend does not make them crypto.
  Bars pair = daily(20, true);
  pair.symbol = "EURUSD";
  EXPECT_EQ(detect_asset(pair).asset, Asset::fx);
  EXPECT_EQ(detect_asset(pair).reason, "named by two currencies");
  EXPECT_EQ(bars_per_year(pair, Asset::fx), 260);
  EXPECT_EQ(bars_per_year(hourly(5), Asset::fx), 260 * 7);
  EXPECT_TRUE(calendar_notes(pair, {}, {}).empty());
  // Weekends are not gaps.
  Bars weekdays = daily(20, false);
  weekdays.symbol = "GBPJPY";
  EXPECT_TRUE(data_notes(weekdays, Asset::fx).empty());
}

Bars every(int days, int count) {
  Bars bars = daily(count, true);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    bars.times[i] = bars.times.front() + static_cast<Ticks>(i) * days * kDay;
  }
  return bars;
}

TEST(Calendar, NotesTheAssumedBarsPerYear) {
  const auto notes = [](const Bars& bars) { return calendar_notes(bars, {}, {}); };
  EXPECT_TRUE(notes(daily(40, false)).empty());
  EXPECT_TRUE(notes(daily(40, true)).empty());
  EXPECT_TRUE(notes(daily(1, true)).empty());
  EXPECT_TRUE(has_note(notes(every(7, 30)), {"TEST.csv: TEST has weekly bars, 7 days apart",
                                             "assume 252 bars a year", "--bars-per-year 52"}));
  EXPECT_EQ(notes(every(7, 30)).size(), 1u) << "Mondays: no weekend";
  EXPECT_TRUE(has_note(notes(hourly(12)), {"intraday", "60 minutes apart", "1764 bars a year"}));
  // Every thirtieth day: some fall on a weekend, which proves nothing for monthly bars.
  const auto monthly = notes(every(30, 24));
  EXPECT_TRUE(has_note(monthly, {"monthly", "365 bars a year", "--bars-per-year 12"}));
  EXPECT_TRUE(has_note(monthly, {"line ", "classified as crypto",
                                 "of its 24 bars fall on a weekend", "--asset stock"}));
  // The user's own choice is not questioned.
  EXPECT_TRUE(calendar_notes(every(30, 24), Asset::stock, 12).empty());
}

TEST(Calendar, NotesStrayWeekendBars) {
  Bars stray = daily(60, false);
  stray.times[4] += kDay;  // the first Friday
  EXPECT_EQ(detect_asset(stray).asset, Asset::crypto);
  EXPECT_TRUE(has_note(calendar_notes(stray, {}, {}),
                       {"TEST.csv: line 6", "1 of its 60 bars falls on a weekend",
                        "2024-01-06: probably stray bars", "--asset stock"}));
  EXPECT_TRUE(calendar_notes(stray, Asset::crypto, {}).empty());
}

TEST(Calendar, HasNoNotesForCleanData) {
  EXPECT_TRUE(data_notes(daily(40, false), Asset::stock).empty());
  EXPECT_TRUE(data_notes(daily(40, true), Asset::crypto).empty());
  EXPECT_TRUE(data_notes(hourly(12), Asset::stock).empty());
  EXPECT_TRUE(data_notes(daily(1, false), Asset::stock).empty());
}

TEST(Calendar, HolidaysGapsAndHalfDays) {
  Bars stock = daily(40, false);
  remove_bar(stock, 7);
  EXPECT_TRUE(has_note(data_notes(stock, Asset::stock), {"TEST.csv: line 10", "holiday"}));
  for (int i = 0; i < 4; ++i) remove_bar(stock, 20);
  EXPECT_TRUE(has_note(data_notes(stock, Asset::stock), {"TEST.csv: line 27", "gap"}));
  Bars crypto = daily(40, true);
  remove_bar(crypto, 7);
  EXPECT_TRUE(has_note(data_notes(crypto, Asset::crypto), {"line 10", "gap"}));
  Bars hours = hourly(12);
  remove_bar(hours, 10);  // in the middle of the second day
  EXPECT_TRUE(has_note(data_notes(hours, Asset::stock), {"line 13", "gap"}));
  Bars half = hourly(12);
  for (int i = 0; i < 3; ++i) remove_bar(half, 11);
  EXPECT_TRUE(has_note(data_notes(half, Asset::stock), {"line 9", "4 bars, 7 are usual", "half"}));
}

TEST(Calendar, SplitsOddBarsAndEmptyVolume) {
  Bars bars = backtest::make_bars(
      {{100, 101, 99, 100}, {50, 52, 49, 51}, {51, 50, 52, 51}, {50, 52, 49, 51}});
  bars.volume = {5, 0, 5, 0};
  const auto notes = data_notes(bars, Asset::stock);
  EXPECT_TRUE(has_note(notes, {"line 3", "split", "51 after 100"}));
  EXPECT_TRUE(has_note(notes, {"line 4", "high 50", "used as it is"}));
  EXPECT_TRUE(has_note(notes, {"line 3", "volume of 0", "1 more like it, at lines 5"}));
  EXPECT_FALSE(has_note(notes, {"line 5: TEST closes"}));
  const Bars up = backtest::make_bars({{1, 1, 1, 1}, {10, 10, 10, 10.2}});
  EXPECT_TRUE(has_note(data_notes(up, Asset::stock), {"line 3", "split"}));
  const Bars steady = backtest::make_bars({{1, 1, 1, 1}, {1, 1.6, 1, 1.5}});
  EXPECT_TRUE(data_notes(steady, Asset::stock).empty());
}

TEST(Calendar, CountsThousandsOfOneKind) {
  std::vector<backtest::Row> rows(100, {1, 0.5, 1, 1});
  EXPECT_EQ(data_notes(backtest::make_bars(rows), Asset::crypto).size(), 20u);
  EXPECT_TRUE(
      has_note(data_notes(backtest::make_bars(rows), Asset::crypto), {"80 more", "line 101"}));
}

}  // namespace
}  // namespace toto::tables
