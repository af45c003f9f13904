#include "tables/series_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io_fixture.h"
#include "series_fixture.h"

namespace toto::tables {
namespace {

void expect_refused(std::string_view text, const ReadOptions& options,
                    std::initializer_list<std::string_view> fragments) {
  io::expect_error(ErrorCode::corrupt_file, fragments, [&] { read(text, options); });
}

// Values as text, so that missing ones compare equal.
std::string values_of(const InputSeries& series) {
  std::string text;
  for (const float value : series.values) {
    text += (text.empty() ? "" : " ") + (std::isnan(value) ? "-" : fmt::format("{}", value));
  }
  return text;
}

std::vector<std::string> ids_of(const InputData& data) {
  std::vector<std::string> ids;
  for (const InputSeries& series : data.series) ids.push_back(series.id);
  return ids;
}

using Texts = std::vector<std::string>;

// ---------------------------------------------------------------------------------------- corpus

struct Refusal {
  std::string_view place;
  std::string_view reason;
};

const std::map<std::string, Refusal> kBadCsv = {
    {"bad_empty", {"line 1, column 1", "the file is empty"}},
    {"bad_blank", {"line 2, column 1", "expected a time column"}},
    {"bad_header_only", {"line 1, column 1", "no row of data"}},
    {"bad_no_header", {"line 1, column 1", "add a header line"}},
    {"bad_one_column", {"line 1, column 1", "at least one named column"}},
    {"bad_nul", {"line 3, column 2", "NUL"}},
    {"bad_nul_in_quotes", {"line 2, column 2", "NUL"}},
    {"bad_utf16_le", {"line 1, column 1", "save the file as UTF-8"}},
    {"bad_utf16_be", {"line 1, column 1", "save the file as UTF-8"}},
    {"bad_utf16_unmarked", {"line 1, column 1", "save the file as UTF-8"}},
    {"bad_latin1_name", {"line 1, column 2", "not valid UTF-8"}},
    {"bad_latin1_id", {"line 3, column 1", "not valid UTF-8"}},
    {"bad_unclosed_quote", {"line 3, column 2", "never closed"}},
    {"bad_quote_inside", {"line 2, column 2", "a quote inside the unquoted field"}},
    {"bad_text_after_quote", {"line 2, column 2", "text after the closing quote"}},
    {"bad_semicolons_and_tabs", {"line 1, column 1", "one kind of delimiter"}},
    {"bad_short_row", {"line 3, column 2", "the row has 2 fields, expected 3"}},
    {"bad_long_row", {"line 3, column 4", "more than 3 fields, expected 3"}},
    {"bad_thousands_unquoted", {"line 2, column 3", "a comma inside a value needs quotes"}},
    {"bad_duplicate_column", {"line 1, column 3", "\"a\" appears twice"}},
    {"bad_duplicate_time", {"line 4, column 1", "2024-01-02 appears twice"}},
    {"bad_duplicate_time_of_id", {"line 4, column 2", "2024-01-01 of \"A\" appears twice"}},
    {"bad_unsorted", {"line 4, column 1", "2024-01-02 comes after 2024-01-03"}},
    {"bad_descending", {"line 3, column 1", "sort the file by time"}},
    {"bad_blank_time", {"line 3, column 1", "the time is blank"}},
    {"bad_not_a_time_time", {"line 3, column 1", "the time is blank"}},
    {"bad_american_date", {"line 2, column 1", "expected ISO 8601"}},
    {"bad_day_31", {"line 2, column 1", "\"2024-04-31\" is not a time"}},
    {"bad_leap_day", {"line 3, column 1", "\"2023-02-29\" is not a time"}},
    {"bad_hour_24", {"line 2, column 1", "is not a time"}},
    {"bad_mixed_zones", {"line 3, column 1", "has zone +02:00"}},
    {"bad_zone_then_none", {"line 3, column 1", "has no zone"}},
    {"bad_date_then_integer", {"line 3, column 1", "\"5\" is not a time"}},
    {"bad_steps_then_date", {"line 3, column 1", "expected an integer"}},
    {"bad_year_before_1", {"line 4, column 2", "\"-62325072000\" is in the year -6"}},
    {"bad_year_0",
     {"line 2, column 1", "is in the year 0, expected a time of the years 1 to 9999"}},
    {"bad_year_after_9999", {"line 3, column 1", "is in the year 30489"}},
    {"bad_1e999", {"line 3, column 2", "\"1e999\" is beyond float32"}},
    {"bad_1e39", {"line 2, column 2", "\"1e39\" is beyond float32"}},
    {"bad_inf", {"line 2, column 2", "\"inf\" is not finite"}},
    {"bad_minus_infinity", {"line 2, column 2", "\"-Infinity\" is not finite"}},
    {"bad_dash", {"line 2, column 2", "\"-\" is text"}},
    {"bad_decimal_comma", {"line 2, column 2", "decimal comma"}},
    {"bad_thousands_separator", {"line 2, column 2", "thousands separator"}},
    {"bad_hex", {"line 2, column 2", "\"0x10\" is text"}},
    {"bad_text", {"line 2, column 2 (\"name\")", "--columns can leave this column out"}},
    {"bad_long_other_names",
     {"line 2, column 2 (\"ticker\")",
      "a long table names its columns unique_id, ds and y (or item_id, timestamp, target)"}},
    {"bad_long_without_ids",
     {"line 3, column 1", "expected it once; if a row belongs to one of several series: a long"}},
    {"bad_bars_without_symbols",
     {"line 3, column 1", "bars of several symbols have a symbol column"}},
    {"bad_currency", {"line 2, column 2", "\"$5\" is text"}},
    {"bad_no_value", {"line 1, column 3", "\"b\" has no value"}},
    {"bad_no_value_of_id", {"line 3, column 3", "\"B\" has no value"}},
    {"bad_blank_id", {"line 3, column 1", "the id is blank"}},
    {"bad_id_on_two_lines", {"line 2, column 1", "has a control character"}},
    {"bad_name_too_long", {"line 1, column 2", "4097 bytes, expected at most 4096"}},
    {"bad_field_too_long", {"line 2, column 2", "65536 bytes"}},
};

// JSON errors name the field or element instead of a column.
const std::map<std::string, Refusal> kBadJsonLines = {
    {"bad_empty", {"line 1", "the file is empty"}},
    {"bad_json", {"line 3, column 40", "not valid JSON"}},
    {"bad_literal_nan", {"line 2, column 39", "\"NaN\" is not a JSON value"}},
    {"bad_two_on_a_line", {"line 1, column 58", "more text"}},
    {"bad_array", {"line 2", "instead of a series"}},
    {"bad_array_document",
     {"line 1", "looks like a JSON array, expected JSON lines: one object per"}},
    {"bad_array_on_a_line", {"line 1", "looks like a JSON array"}},
    {"bad_pretty_printed",
     {"line 1", "looks like one pretty-printed JSON document, expected JSON"}},
    {"bad_damaged_first_line", {"line 1, column 40", "closing bracket"}},
    {"bad_no_target", {"line 2", "\"target\" is missing"}},
    {"bad_no_start", {"line 1", "\"start\" is missing"}},
    {"bad_start", {"line 2", "\"yesterday\" is not a time"}},
    {"bad_start_year", {"line 2", "\"start\": \"-62319974400\" is in the year -5"}},
    {"bad_start_number", {"line 1", "expected a time such as"}},
    {"bad_mixed_zones", {"line 2", "has no zone"}},
    {"bad_freq", {"line 2", "\"freq\" is \"fortnight\""}},
    {"bad_freq_number", {"line 1", "expected a code such as \"1h\""}},
    {"bad_id_with_control", {"line 1", "has a control character"}},
    {"bad_freq_too_far", {"line 1", "pass the year 9999"}},
    {"bad_steps_with_freq", {"line 1", "\"start\" is a step number"}},
    {"bad_item_id", {"line 1", "the item_id is"}},
    {"bad_item_id_blank", {"line 1", "the item_id is blank"}},
    {"bad_duplicate_item_id", {"line 3", "\"A\" appears twice"}},
    {"bad_duplicate_key", {"line 2, column 40", "duplicate key \"target\""}},
    {"bad_target_text", {"line 2", "\"target\" element 2 is"}},
    {"bad_target_boolean", {"line 1", "\"target\" element 1 is"}},
    {"bad_target_beyond_float32", {"line 1", "element 1: \"1e+39\" is beyond float32"}},
    {"bad_target_1e999", {"line 2, column 39", "\"1e999\" is too large"}},
    {"bad_target_number", {"line 1", "expected an array of numbers"}},
    {"bad_target_empty", {"line 2", "\"B\" has no value"}},
    {"bad_target_all_null", {"line 1", "\"line_1\" has no value"}},
    {"bad_target_ragged", {"line 1", "\"target\" row 1 is"}},
    {"bad_target_mixed_dimensions", {"line 1", "\"target\" row 1 is"}},
    {"bad_utf16", {"line 1, column 1", "save the file as UTF-8"}},
    {"bad_utf8", {"line 1, column 52", "not valid UTF-8"}},
};

// Every file of a corpus folder: ok_* is read, bad_* is refused with place and reason.
void check_corpus(const std::string& kind, const std::map<std::string, Refusal>& refusals,
                  const ReadOptions& options) {
  std::size_t num_bad = 0;
  const std::string folder = std::string(TOTO_SOURCE_DIR) + "/tests/corpus/" + kind;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    if (name.starts_with("ok_")) {
      EXPECT_FALSE(read_series(entry.path().string(), options).series.empty());
      continue;
    }
    const auto refusal = refusals.find(name);
    ASSERT_NE(refusal, refusals.end()) << "no refusal is written down for this file";
    ++num_bad;
    io::expect_error(
        ErrorCode::corrupt_file,
        {entry.path().filename().string(), refusal->second.place, refusal->second.reason},
        [&] { read_series(entry.path().string(), options); });
  }
  EXPECT_EQ(num_bad, refusals.size()) << "a refusal has lost its file";
}

TEST(Corpus, EveryCsvIsReadOrRefusedWithItsPlace) { check_corpus("csv", kBadCsv, {}); }

TEST(Corpus, EveryJsonLinesFileIsReadOrRefusedWithItsPlace) {
  check_corpus("jsonl", kBadJsonLines, {.format = InputFormat::jsonl});
}

InputData read_corpus(const std::string& name, const ReadOptions& options = {}) {
  return read_series(std::string(TOTO_SOURCE_DIR) + "/tests/corpus/" + name, options);
}

TEST(Corpus, SpellingsOfOneTableGiveOneTable) {
  for (const std::string name : {"wide", "crlf", "cr", "mixed_line_ends", "byte_order_mark",
                                 "semicolons", "tabs", "quotes", "blanks"}) {
    SCOPED_TRACE(name);
    const InputData data = read_corpus("csv/ok_" + name + ".csv");
    EXPECT_EQ(data.description, "2 daily series of 3 points, 2024-01-01 to 2024-01-03");
    EXPECT_TRUE(data.warnings.empty());
    ASSERT_EQ(ids_of(data), (Texts{"a", "b"}));
    EXPECT_EQ(values_of(data.series[0]), "1 2 3");
    EXPECT_EQ(values_of(data.series[1]), "10 20 30");
  }
}

TEST(Corpus, KeepsUnusualNames) {
  EXPECT_EQ(ids_of(read_corpus("csv/ok_formula_names.csv")), (Texts{"=cmd|' /C calc'!A0", "@sum"}));
  EXPECT_EQ(ids_of(read_corpus("csv/ok_script_names.csv")),
            (Texts{"<script>alert(1)</script>", "</script><img src=x onerror=\"alert(2)\">"}));
}

// ----------------------------------------------------------------------------------------- kinds

TEST(ReadSeries, DetectsTheKindOfTable) {
  const auto kind = [](std::string_view text) { return read(text).format; };
  EXPECT_EQ(kind("unique_id,ds,y\na,2024-01-01,1\n"), InputFormat::csv_long);
  EXPECT_EQ(kind("y,DS,Unique_ID\n1,2024-01-01,a\n"), InputFormat::csv_long);
  EXPECT_EQ(kind("item_id, timestamp, target\na,2024-01-01,1\n"), InputFormat::csv_long);
  EXPECT_EQ(kind("ds,y\n2024-01-01,1\n"), InputFormat::csv_wide);
  EXPECT_EQ(kind("timestamp,OPEN,HIGH,LOW,CLOSE\n2024-01-01,1,2,0,1\n"), InputFormat::csv_ohlcv);
  EXPECT_EQ(kind("Date,Close,Volume\n2024-01-01,1,2\n"), InputFormat::csv_wide);
  EXPECT_EQ(kind(" \n {\"start\": \"2024-01-01\", \"target\": [1]}"), InputFormat::jsonl);
}

TEST(ReadSeries, WholeBarsAreFourSeriesUnlessTheyHaveSymbols) {
  const std::string_view bars = "date,volume,close,Open,high,low\n2024-01-01,9,1.5,1,2,0\n";
  const InputData data = read(bars, {.whole_bars = true});
  EXPECT_EQ(ids_of(data), (Texts{"Open", "high", "low", "close"}));
  EXPECT_EQ(data.columns, (Texts{"Open", "high", "low", "close"}));
  EXPECT_EQ(data.series[3].column, 3U);
  EXPECT_EQ(ids_of(read(bars, {.columns = {"volume"}, .whole_bars = true})), Texts{"volume"});
  EXPECT_EQ(ids_of(read("date,symbol,open,high,low,close\n2024-01-01,AMD,1,2,0,1\n",
                        {.whole_bars = true})),
            Texts{"AMD"});
  EXPECT_EQ(ids_of(read("date,a\n2024-01-01,1\n", {.whole_bars = true})), Texts{"a"});
}

TEST(ReadSeries, StoresTheColumnOfASeries) {
  const InputData values = read("item_id,timestamp,target\na,2024-01-01,1\nb,2024-01-01,2\n");
  EXPECT_EQ(values.columns, Texts{"target"});
  EXPECT_EQ(values.series[1].column, 0U);
  const InputData two = read("unique_id,ds,y,z\na,2024-01-01,1,2\n", {.columns = {"z", "y"}});
  EXPECT_EQ(two.columns, (Texts{"z", "y"}));
  EXPECT_EQ(two.columns[two.series[1].column], "y");
  EXPECT_EQ(read("{\"start\": \"2024-01-01\", \"target\": [1]}").columns, Texts{"target"});
}

TEST(ReadSeries, FormatOverridesDetection) {
  const std::string_view bars = "date,open,high,low,close\n2024-01-01,1,2,0,1.5\n";
  EXPECT_EQ(ids_of(read(bars)), Texts{"close"});
  EXPECT_EQ(ids_of(read(bars, {.format = InputFormat::csv_wide})),
            (Texts{"open", "high", "low", "close"}));
  expect_refused(bars, {.format = InputFormat::csv_long},
                 {"data.csv: line 1", "\"open\"", "expected a long table", "rename the columns"});
  expect_refused("date,a\n2024-01-01,1\n", {.format = InputFormat::csv_ohlcv},
                 {"data.csv: line 1", "expected bars"});
  expect_refused(bars, {.format = InputFormat::jsonl}, {"data.csv: line 1", "not a JSON value"});
  EXPECT_EQ(parse_input_format("ohlcv"), InputFormat::csv_ohlcv);
  for (const InputFormat format :
       {InputFormat::automatic, InputFormat::csv_long, InputFormat::csv_wide,
        InputFormat::csv_ohlcv, InputFormat::jsonl}) {
    EXPECT_EQ(parse_input_format(name_of(format)), format);
  }
  io::expect_error(ErrorCode::invalid_argument, {"\"xml\"", "auto, jsonl, long, ohlcv or wide"},
                   [] { parse_input_format("xml"); });
}

TEST(ReadSeries, ReadsLongTables) {
  const InputData data = read_corpus("csv/ok_long.csv");
  EXPECT_EQ(data.description, "2 daily series of 3 points, 2024-01-01 to 2024-01-03");
  ASSERT_EQ(ids_of(data), (Texts{"A", "B"}));
  EXPECT_EQ(values_of(data.series[0]), "1 2 3");
  EXPECT_EQ(values_of(data.series[1]), "10 20 30");
  const InputData other = read("unique_id,ds,y,x\na,1,5,6\na,2,7,8\n");
  EXPECT_EQ(values_of(other.series.at(0)), "5 7");
  EXPECT_EQ(other.warnings, Texts{"data.csv: columns that are not used: \"x\""});
  const InputData both = read("unique_id,ds,y,x\na,1,5,6\na,2,7,8\n", {.columns = {"x", "y"}});
  EXPECT_EQ(ids_of(both), (Texts{"a.x", "a.y"}));
  EXPECT_TRUE(both.warnings.empty());
}

TEST(ReadSeries, ReadsBars) {
  const InputData data = read_corpus("csv/ok_ohlcv.csv");
  EXPECT_EQ(data.description,
            "4 daily bars (business days), 2024-01-04 to 2024-01-09; forecasting Close");
  ASSERT_EQ(ids_of(data), Texts{"Close"});
  EXPECT_EQ(values_of(data.series[0]), "2 3 4 5");
  EXPECT_EQ(future_timestamps(data.series[0], 4),
            (Texts{"2024-01-10", "2024-01-11", "2024-01-12", "2024-01-15"}));
  EXPECT_EQ(ids_of(read_corpus("csv/ok_ohlcv.csv", {.columns = {"volume", "OPEN"}})),
            (Texts{"Volume", "Open"}));

  const InputData symbols = read_corpus("csv/ok_ohlcv_symbols.csv");
  ASSERT_EQ(ids_of(symbols), (Texts{"BTC", "ETH"}));
  EXPECT_EQ(values_of(symbols.series[1]), "20 30");
  EXPECT_EQ(ids_of(read_corpus("csv/ok_ohlcv_symbols.csv", {.columns = {"close", "open"}})),
            (Texts{"BTC.close", "BTC.open", "ETH.close", "ETH.open"}));
}

TEST(ReadSeries, ReadsOnlyTheColumnsAskedFor) {
  const std::string_view text = "name,date,a,b\nx,2024-01-01,1,bad\ny,2024-01-02,2,bad\n";
  EXPECT_EQ(values_of(read(text, {.columns = {"a"}}).series.at(0)), "1 2");
  const auto refused = [&](const Texts& columns, std::string_view fragment) {
    io::expect_error(ErrorCode::invalid_argument, {"data.csv", fragment},
                     [&] { read(text, {.columns = columns}); });
  };
  refused({"c"}, "has no column \"c\", expected one of \"name\", \"date\", \"a\", \"b\"");
  refused({"date"}, "holds the times");
  refused({"a", "A"}, "asked for twice");
  refused({""}, "has no column \"\"");
  io::expect_error(ErrorCode::invalid_argument, {"JSON lines", "no columns"}, [] {
    read("{\"start\": \"2024-01-01\", \"target\": [1]}", {.columns = {"a"}});
  });
  std::string many = "date";
  for (int i = 0; i < 30; ++i) many += fmt::format(",c{}", i);
  io::expect_error(ErrorCode::invalid_argument, {"\"c8\" and 21 more"},
                   [&] { read(many + "\n", {.columns = {"x"}}); });
}

TEST(ReadSeries, FindsTheTimeColumnByNameThenFirst) {
  EXPECT_EQ(read("a,date\n1,2024-01-01\n").time_name, "date");
  EXPECT_EQ(read("month,a\n2024-01,1\n").time_name, "month");
  EXPECT_EQ(read(",a\n2024-01-01,1\n").time_name, "");
  EXPECT_EQ(read("symbol,Open time,open,high,low,close\nX,2024-01-01,1,2,0,1\n").time_name,
            "Open time");
  expect_refused("symbol,open,high,low,close\nX,1,2,0,1\n", {}, {"line 1", "bars with a time"});
  const InputData data = read_corpus("csv/ok_unnamed_index.csv");
  EXPECT_EQ(ids_of(data), Texts{"a"});
  ASSERT_EQ(data.warnings.size(), 1U);
  EXPECT_NE(data.warnings[0].find("without a name are ignored: 1"), std::string::npos);
}

TEST(ReadSeries, ReadsJsonLines) {
  const InputData data = read_corpus("jsonl/ok_plain.jsonl");
  EXPECT_EQ(data.description,
            "2 hourly series of up to 4 points, 2024-01-01 00:00:00 to 2024-01-02 03:00:00");
  ASSERT_EQ(ids_of(data), (Texts{"A", "B"}));
  EXPECT_EQ(values_of(data.series[0]), "1 2.5 3");
  EXPECT_EQ(values_of(data.series[1]), "4 - - 7");
  EXPECT_EQ(future_timestamps(data.series[1], 1), Texts{"2024-01-02 04:00:00"});
  EXPECT_EQ(ids_of(read_corpus("jsonl/ok_no_item_id.jsonl")), Texts{"line_2"});
  EXPECT_EQ(ids_of(read_corpus("jsonl/ok_integer_item_id.jsonl")), Texts{"7"});
  EXPECT_EQ(ids_of(read_corpus("jsonl/ok_crlf.jsonl")), (Texts{"line_1", "line_3"}));
  EXPECT_EQ(ids_of(read_corpus("jsonl/ok_cr.jsonl")), (Texts{"line_1", "line_2"}));
}

TEST(ReadSeries, ReadsTwoDimensionalTargets) {
  const InputData data = read_corpus("jsonl/ok_two_dimensions.jsonl");
  ASSERT_EQ(ids_of(data), (Texts{"m.0", "m.1"}));
  EXPECT_EQ(values_of(data.series[1]), "4 5 6");
  EXPECT_EQ(future_timestamps(data.series[0], 2), (Texts{"2024-04-30", "2024-05-31"}));
  expect_refused(
      "{\"start\": \"2024-01-01\", \"target\": [[1]], \"item_id\": \"a\"}\n"
      "{\"start\": \"2024-01-01\", \"target\": [1], \"item_id\": \"a.0\"}\n",
      {}, {"data.csv: line 2", "\"a.0\" appears twice"});
}

TEST(ReadSeries, WarnsOnceAboutUnusedJsonFields) {
  const InputData data = read_corpus("jsonl/ok_features.jsonl");
  ASSERT_EQ(data.warnings.size(), 1U);
  EXPECT_NE(data.warnings[0].find("\"feat_dynamic_real\", \"feat_static_cat\""), std::string::npos);
}

// JSON lines that end exactly at the end of the buffer, and lines longer than the buffer.
TEST(ReadSeries, ReadsJsonLinesOfAnyLength) {
  std::string text;
  for (int line = 0; line < 40; ++line) {
    text += fmt::format("{{\"start\": \"2024-01-01\", \"item_id\": \"{}\", \"target\": [{}", line,
                        line);
    for (int i = 1; i < 30'000; ++i) text += ",1";
    text += line % 2 == 0 ? "]}\n" : "]}\r\n";
  }
  const InputData data = read(text);
  ASSERT_EQ(data.series.size(), 40U);
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(data.series[i].values.size(), 30'000U);
    EXPECT_EQ(data.series[i].values[0], static_cast<float>(i));
  }
}

// Endless input without a line end.
class EndlessLine final : public io::ByteSource {
 public:
  std::size_t read(char* dst, std::size_t size) override {
    std::fill_n(dst, size, '1');
    if (taken_ == 0) *dst = '{';
    taken_ += size;
    return size;
  }
  std::size_t taken() const { return taken_; }

 private:
  std::size_t taken_ = 0;
};

TEST(ReadSeries, RefusesAJsonLineOfMoreThan64Megabytes) {
  EndlessLine source;
  io::expect_error(ErrorCode::corrupt_file, {"data.jsonl: line 1", "67108864 bytes"},
                   [&] { read_series(source, "data.jsonl", {}); });
  EXPECT_LE(source.taken(), std::size_t{66} << 20);
}

// --------------------------------------------------------------------------------- missing, grid

TEST(ReadSeries, KeepsMissingValuesExceptLeadingOnes) {
  const InputData spellings = read_corpus("csv/ok_missing_spellings.csv");
  EXPECT_EQ(values_of(spellings.series.at(0)), "1 - - - - - - - 9");
  EXPECT_TRUE(spellings.warnings.empty());
  const InputData data = read_corpus("csv/ok_leading_missing.csv");
  EXPECT_EQ(values_of(data.series.at(0)), "3 -");
  EXPECT_EQ(values_of(data.series.at(1)), "1 2 3 4");
  EXPECT_EQ(format_time(data.series[0].time(0), data.series[0].axis->style), "2024-01-03");
  ASSERT_EQ(data.warnings.size(), 1U);
  EXPECT_NE(data.warnings[0].find("leading missing values are dropped: 2 (series \"a\")"),
            std::string::npos);
}

TEST(ReadSeries, InsertsAbsentTimesAsMissing) {
  const InputData data = read_corpus("csv/ok_missing_timestamps.csv");
  EXPECT_EQ(values_of(data.series.at(0)), "1 2 - 4 5");
  ASSERT_EQ(data.warnings.size(), 1U);
  EXPECT_NE(data.warnings[0].find(": 1, the first is 2024-01-01T02:00Z"), std::string::npos);
  EXPECT_EQ(values_of(read_corpus("csv/ok_steps.csv").series.at(0)), "1 2 - 4 5");
  const InputData months = read("date,a\n2024-01-01,1\n2024-02-01,2\n2024-04-01,4\n");
  EXPECT_EQ(values_of(months.series.at(0)), "1 2 - 4");
  const InputData many = read(
      "unique_id,ds,y\na,1,1\na,2,2\na,4,4\nb,1,1\nb,2,2\nb,4,4\nb,5,5\nb,7,7\nc,1,1\nc,2,2\n");
  ASSERT_EQ(many.warnings.size(), 1U);
  EXPECT_NE(many.warnings[0].find("missing: 3, the first is 3 (series \"a\" and 1 more)"),
            std::string::npos);
}

TEST(ReadSeries, ReadsExtremeNumbers) {
  EXPECT_EQ(values_of(read_corpus("csv/ok_extreme_numbers.csv").series.at(0)),
            "3.4028235e+38 -3.4028235e+38 1e-45 1.1754942e-38 0 -0 1.5 0.5 5 1e+30");
}

TEST(ReadSeries, UsesIrregularTimesInOrder) {
  const InputData data = read("t,a\n2024-01-01T00:00,1\n2024-01-01T00:07,2\n2024-01-01T00:17,3\n");
  EXPECT_EQ(values_of(data.series.at(0)), "1 2 3");
  EXPECT_EQ(future_timestamps(data.series[0], 2), (Texts{"2024-01-01T00:27", "2024-01-01T00:37"}));
  ASSERT_EQ(data.warnings.size(), 1U);
  EXPECT_NE(data.warnings[0].find("median distance 10min"), std::string::npos);
}

TEST(ReadSeries, AcceptsAGivenFrequency) {
  const std::string_view text = "date,a\n2024-01-31,1\n2024-02-29,2\n2024-03-28,3\n";
  const InputData months = read(text, {.frequency = "ME"});
  EXPECT_EQ(future_timestamps(months.series.at(0), 2), (Texts{"2024-04-30", "2024-05-31"}));
  ASSERT_EQ(months.warnings.size(), 1U);
  EXPECT_NE(months.warnings[0].find("moved to its nearest step: 1"), std::string::npos);

  const InputData hours = read("date,a\n2024-01-01,1\n", {.frequency = "6h"});
  EXPECT_EQ(future_timestamps(hours.series.at(0), 2),
            (Texts{"2024-01-01T06:00", "2024-01-01T12:00"}));
  EXPECT_TRUE(hours.warnings.empty());
  const InputData json = read_corpus("jsonl/ok_no_freq.jsonl", {.frequency = "B"});
  EXPECT_EQ(future_timestamps(json.series.at(0), 1), Texts{"2024-01-03"});

  const auto refused = [](std::string_view table, const std::string& frequency,
                          std::string_view fragment) {
    io::expect_error(ErrorCode::invalid_argument, {fragment},
                     [&] { read(table, {.frequency = frequency}); });
  };
  refused(text, "fortnight", "the frequency is \"fortnight\"");
  refused(text, "Y",
          "the frequency Y does not fit data.csv: 2024-01-31 and 2024-02-29 fall into one");
  refused("unique_id,ds,y\na,2024-01-06,1\n", "B", "does not fit series \"a\" of data.csv");
  refused("t,a\n1,5\n2,6\n", "D", "its times are step numbers");
}

// Holidays have no row and need none; longer gaps give a warning, and --freq B inserts them.
TEST(ReadSeries, TreatsAbsentWeekdaysAsHolidaysUnlessBIsGiven) {
  const InputData closed = read_corpus("csv/ok_weekdays_absent.csv");
  EXPECT_EQ(closed.series.at(0).values.size(), 44U);
  ASSERT_EQ(closed.warnings.size(), 1U);
  EXPECT_NE(closed.warnings[0].find("absent weekdays are treated as holidays: 7 in "
                                    "gaps longer than a week, the first is 2024-02-05"),
            std::string::npos)
      << closed.warnings[0];
  const InputData inserted = read_corpus("csv/ok_weekdays_absent.csv", {.frequency = "B"});
  EXPECT_EQ(inserted.series.at(0).values.size(), 52U);
  EXPECT_TRUE(std::isnan(inserted.series[0].values[10])) << "the holiday, a Monday";
  ASSERT_EQ(inserted.warnings.size(), 1U);
  EXPECT_NE(
      inserted.warnings[0].find("absent timestamps are inserted as missing: 8, the first is 2024-"
                                "01-15"),
      std::string::npos)
      << inserted.warnings[0];
  EXPECT_EQ(future_timestamps(closed.series[0], 3), future_timestamps(inserted.series[0], 3));
}

TEST(FutureTimestamps, AreStepNumbersWithoutAFrequency) {
  const InputData row = read_corpus("csv/ok_one_row.csv");
  EXPECT_EQ(future_timestamps(row.series.at(0), 3), (Texts{"1", "2", "3"}));
  ASSERT_EQ(row.warnings.size(), 1U);
  EXPECT_NE(row.warnings[0].find("--freq makes them dates"), std::string::npos);
  EXPECT_EQ(future_timestamps(read_corpus("csv/ok_steps.csv").series.at(0), 2),
            (Texts{"20", "22"}));
}

TEST(FutureTimestamps, FollowTheStyleOfTheInput) {
  const auto next = [](const std::string& a, const std::string& b) {
    return future_timestamps(read("t,x\n" + a + ",1\n" + b + ",2\n").series.at(0), 1).at(0);
  };
  EXPECT_EQ(next("2024-01", "2024-02"), "2024-03");
  EXPECT_EQ(next("2024-01-01", "2024-01-02"), "2024-01-03");
  EXPECT_EQ(next("2024-01-01 00:00", "2024-01-01 12:00"), "2024-01-02 00:00");
  EXPECT_EQ(next("2024-01-01T00:00:00Z", "2024-01-01T12:00:00Z"), "2024-01-02T00:00:00Z");
  EXPECT_EQ(next("2024-01-31T00:00+05:30", "2024-02-29T00:00+05:30"), "2024-03-31T00:00+05:30");
  EXPECT_EQ(next("2024-01-01T00:00:00.000", "2024-01-01T00:00:00.250"), "2024-01-01T00:00:00.500");
  EXPECT_EQ(next("1704067200", "1704070800"), "2024-01-01T02:00:00Z");
  EXPECT_EQ(next("20240101", "20240102"), "2024-01-03");
  EXPECT_EQ(next("2023", "2024"), "2025");
}

TEST(FutureTimestamps, ReachTheLongestHorizon) {
  const InputData data = read("date,a\n2023-12-31,1\n2024-12-31,2\n");
  const Texts times = future_timestamps(data.series.at(0), 9999 - 2024);
  EXPECT_EQ(times.back(), "9999-12-31");
  check_last_time(data.series.at(0), 9999 - 2024);
  io::expect_error(ErrorCode::corrupt_file, {"pass the year 9999"},
                   [&] { check_last_time(data.series.at(0), 9999 - 2023); });
  const InputData days = read("date,a\n2023-12-31,1\n2024-01-01,2\n");
  EXPECT_EQ(future_timestamps(days.series.at(0), kMaxHorizon).size(),
            static_cast<std::size_t>(kMaxHorizon));
}

// ------------------------------------------------------------------------------- tables and scale

TEST(ReadTable, KeepsLineNumbers) {
  io::MemorySource source(
      "\nsymbol,date,close,open,high,low\n\nA,1,5,,2,3\nB,1,6,7,8,9\nA,2,5,1,\"1\n\",1\n");
  io::TextInput input(source, "bars.csv");
  const SeriesTable table = read_table(
      input, {.format = InputFormat::csv_ohlcv, .columns = {"open", "close"}, .keep_lines = true});
  EXPECT_EQ(table.header_line, 2);
  EXPECT_EQ(table.columns, (Texts{"open", "close"}));
  EXPECT_EQ(table.column_numbers, (std::vector<std::size_t>{4, 3}));
  ASSERT_EQ(table.groups.size(), 2U);
  EXPECT_EQ(table.groups[0].id, "A");
  EXPECT_EQ(table.groups[0].lines, (std::vector<std::int64_t>{4, 6}));
  EXPECT_TRUE(std::isnan(table.groups[0].values[0][0]));
  EXPECT_EQ(table.groups[1].first_line, 5);
}

TEST(ReadSeries, LimitsTheNumberOfColumns) {
  std::string header = "date";
  std::string row = "2024-01-01";
  for (std::size_t i = 1; i < io::kMaxColumns; ++i) {
    header += fmt::format(",c{}", i);
    row += ",1";
  }
  EXPECT_EQ(read(header + "\n" + row + "\n").series.size(), io::kMaxColumns - 1);
  expect_refused(header + ",last\n" + row + ",1\n", {}, {"data.csv: line 1, column 100001"});
}

TEST(ReadSeries, ReadsFiles) {
  const io::TemporaryFolder folder;
  io::put(folder / "data.csv", "date,a\n2024-01-01,1\n2024-01-02,x\n");
  io::expect_error(ErrorCode::corrupt_file, {folder / "data.csv", ": line 3, column 2 (\"a\")"},
                   [&] { read_series(folder / "data.csv", {}); });
  io::expect_error(ErrorCode::not_found, {"absent.csv"},
                   [&] { read_series(folder / "absent.csv", {}); });
  io::expect_error(ErrorCode::corrupt_file, {"is a folder"},
                   [&] { read_series(folder.path(), {}); });
}

// Published: at least 200 MB/s.
TEST(ReadSeries, IsNotSlow) {
  std::string text = "unique_id,ds,y\n";
  for (int i = 0; i < 100'000; ++i) {
    text += fmt::format("series_1,{},{}.25\n", format_time(i * kHour, {.has_clock = true}), i);
  }
  const double start = io::cpu_seconds();
  EXPECT_EQ(read(text).series.at(0).values.size(), 100'000U);
  const double seconds = io::cpu_seconds() - start;
  RecordProperty("megabytes_per_second",
                 static_cast<int>(1e-6 * static_cast<double>(text.size()) / seconds));
  EXPECT_LT(seconds, io::kHangSeconds);
}

}  // namespace
}  // namespace toto::tables
