
#include "io/csv.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "io_fixture.h"
#include "slow_source.h"

namespace toto::io {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Endless generated text; counts the bytes read.
class EndlessSource final : public ByteSource {
 public:
  EndlessSource(std::string start, std::string repeated)
      : pending_(std::move(start)), repeated_(std::move(repeated)) {}
  std::size_t read(char* dst, std::size_t size) override {
    while (pending_.size() < size) pending_ += repeated_;
    const std::size_t count = pending_.copy(dst, size);
    pending_.erase(0, count);
    taken_ += count;
    return count;
  }
  std::size_t taken() const { return taken_; }

 private:
  std::string pending_;
  std::string repeated_;
  std::size_t taken_ = 0;
};

Rows read_rows(ByteSource& source) {
  TextInput input(source, "data.csv");
  CsvReader reader(input, detect_delimiter(input));
  Rows rows;
  while (reader.next_row()) {
    rows.emplace_back();
    while (reader.next_field()) rows.back().emplace_back(reader.field());
  }
  return rows;
}

Rows rows_of(std::string_view text) {
  MemorySource source(text);
  return read_rows(source);
}

void expect_refused(std::string_view text, std::initializer_list<std::string_view> fragments) {
  expect_error(ErrorCode::corrupt_file, fragments, [&] { rows_of(text); });
}

TEST(CsvReader, SplitsRowsAndFields) {
  EXPECT_EQ(rows_of("a,b\n1,2\n"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a,b\n1,2"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a,,\n,,\n,"), (Rows{{"a", "", ""}, {"", "", ""}, {"", ""}}));
  EXPECT_EQ(rows_of(" a\t, b c \n"), (Rows{{"a", "b c"}}));
  EXPECT_EQ(rows_of(""), Rows{});
  EXPECT_EQ(rows_of("\n\r\n\r"), Rows{});
  EXPECT_EQ(rows_of("a"), (Rows{{"a"}}));
}

TEST(CsvReader, AcceptsEveryLineEnd) {
  const Rows expected = {{"a", "b"}, {"1", "2"}, {"3", "4"}};
  EXPECT_EQ(rows_of("a,b\n1,2\n3,4\n"), expected);
  EXPECT_EQ(rows_of("a,b\r\n1,2\r\n3,4\r\n"), expected);
  EXPECT_EQ(rows_of("a,b\r1,2\r3,4\r"), expected);
  EXPECT_EQ(rows_of("a,b\r\n1,2\n\n\r\r\n3,4"), expected);
}

TEST(CsvReader, RemovesQuotes) {
  EXPECT_EQ(rows_of("\"a,b\",\"c\"\"d\"\n"), (Rows{{"a,b", "c\"d"}}));
  EXPECT_EQ(rows_of("\"\",\"\"\"\"\n"), (Rows{{"", "\""}}));
  EXPECT_EQ(rows_of("x,\"two\r\nlines\"\ny,\" blanks \" \n"),
            (Rows{{"x", "two\r\nlines"}, {"y", " blanks "}}));
  EXPECT_EQ(rows_of("a, \"b\" ,c"), (Rows{{"a", "b", "c"}}));
  EXPECT_EQ(rows_of("\"a\""), (Rows{{"a"}}));
}

TEST(CsvReader, CountsLinesAndColumnsFromOne) {
  MemorySource source("a,b\r\n\"x\ny\",2\r\r3,\"4\n\"\n5,6");
  TextInput input(source, "data.csv");
  CsvReader reader(input, ',');
  std::string places;
  while (reader.next_row()) {
    while (reader.next_field()) {
      places += std::to_string(reader.line()) + ":" + std::to_string(reader.column()) + " ";
    }
  }
  EXPECT_EQ(places, "1:1 1:2 2:1 3:2 5:1 5:2 7:1 7:2 ");
  EXPECT_EQ(reader.where(), "data.csv: line 7, column 2");
  EXPECT_EQ(reader.where("b"), "data.csv: line 7, column 2 (\"b\")");
}

TEST(CsvReader, SkipsTheRestOfARow) {
  MemorySource source("a,b,\"c\nd\"\n1,2,3\n");
  TextInput input(source, "data.csv");
  CsvReader reader(input, ',');
  ASSERT_TRUE(reader.next_row());
  ASSERT_TRUE(reader.next_field());
  ASSERT_TRUE(reader.next_row());
  ASSERT_TRUE(reader.next_field());
  EXPECT_EQ(reader.field(), "1");
  EXPECT_EQ(reader.line(), 3);
}

TEST(CsvReader, RefusesInvalidCsv) {
  expect_refused("a,b\n1,x\"y\n", {"data.csv: line 2, column 2", "quote inside", "\"x\""});
  expect_refused("a,b\n1,\"x\"y\n", {"data.csv: line 2, column 2", "after the closing quote"});
  expect_refused("a,b\n1,2\n\"3,4\n5,6\n", {"data.csv: line 3, column 1", "never closed"});
  expect_refused(std::string_view("a,b\n1,2\0\n", 9), {"data.csv: line 2, column 2", "NUL"});
  expect_refused(std::string_view("a,b\n1,\"\0\"\n", 10), {"data.csv: line 2, column 2", "NUL"});
}

TEST(CsvReader, FieldsMayHave64Kilobytes) {
  const std::string largest(kMaxFieldBytes, 'x');
  EXPECT_EQ(rows_of("a," + largest + ",b\n").at(0).at(1), largest);
  EXPECT_EQ(rows_of("a,\"" + largest + "\",b\n").at(0).at(1), largest);
  expect_refused("a\n" + largest + "x\n", {"data.csv: line 2, column 1", "65536 bytes"});
  expect_refused("a\n\"" + largest + "x\"\n", {"data.csv: line 2, column 1", "65536 bytes"});
}

TEST(CsvReader, RefusesAGigabyteFieldAfterItsBeginning) {
  for (const std::string start : {"date,a\n2024-01-01,", "date,a\n2024-01-01,\""}) {
    EndlessSource source(start, "1234567890");
    expect_error(ErrorCode::corrupt_file, {"data.csv: line 2, column 2", "65536 bytes"},
                 [&] { read_rows(source); });
    EXPECT_LE(source.taken(), std::size_t{4} << 20);
  }
}

TEST(CsvReader, RefusesEndlessColumnsAfter100000) {
  EndlessSource source("", "c,");
  expect_error(ErrorCode::corrupt_file, {"data.csv: line 1, column 100001", "100000 columns"},
               [&] { read_rows(source); });
  EXPECT_LE(source.taken(), std::size_t{4} << 20);

  std::string most = "0";
  for (std::size_t i = 1; i < kMaxColumns; ++i) most += ",0";
  EXPECT_EQ(rows_of(most + "\n").at(0).size(), kMaxColumns);
  expect_refused(most + ",0\n", {"line 1, column 100001"});
}

// The same text in chunks of any size gives the same fields, including those at buffer boundaries.
TEST(CsvReader, DoesNotDependOnTheChunkSize) {
  std::mt19937 random(7);
  constexpr std::string_view kAlphabet = "ab ,,\"\"\n\r\t;1.";
  std::size_t num_accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t i = random() % 40; i > 0; --i) text += kAlphabet[random() % kAlphabet.size()];
    const auto outcome = [&text](std::size_t step) -> std::pair<Rows, std::string> {
      SlowSource source(text, step);
      try {
        return {read_rows(source), ""};
      } catch (const Error& error) {
        return {Rows{}, error.what()};
      }
    };
    const auto whole = outcome(1000);
    num_accepted += whole.second.empty() ? 1 : 0;
    ASSERT_EQ(outcome(1), whole) << text;
    ASSERT_EQ(outcome(3), whole) << text;
  }
  EXPECT_GT(num_accepted, 500U);

  Rows expected;
  std::string large;
  while (large.size() < (std::size_t{5} << 20)) {
    std::vector<std::string>& row = expected.emplace_back();
    for (int i = 0; i < 3; ++i) {
      row.emplace_back(random() % 50'000, static_cast<char>('a' + i));
      const std::string_view quote = random() % 2 == 0 ? "\"" : "";
      large.append(quote).append(row.back()).append(quote) += i < 2 ? ',' : '\n';
    }
  }
  EXPECT_EQ(rows_of(large), expected);
}

TEST(CsvReader, ReadsBackWhatCsvFieldWrites) {
  const std::vector<std::string> fields = {"plain", "a,b", "say \"hi\"", "two\nlines", "cr\rlf\r\n",
                                           "=1+1",  "+1",  "-1",         "@sum",       " blank",
                                           "tab\t", "",    "\"",         "semi;colon", "x"};
  std::string line;
  for (const std::string& field : fields) line += csv_field(field) + ",";
  line.pop_back();
  EXPECT_EQ(rows_of(line + "\n"), Rows{fields});
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("=cmd"), "\"=cmd\"");
}

TEST(TextInput, RefusesUtf16AndDropsTheByteOrderMark) {
  const std::string_view texts[] = {{"\xFF\xFE"
                                     "a\0",
                                     4},
                                    {"\xFE\xFF\0a", 4},
                                    {"a\0,\0", 4},
                                    {"\0a\0,", 4}};
  for (const std::string_view text : texts) {
    expect_refused(text, {"data.csv: line 1, column 1", "UTF-16", "save the file as UTF-8"});
  }
  EXPECT_EQ(rows_of("\xEF\xBB\xBF"
                    "a,b\n"),
            (Rows{{"a", "b"}}));
}

TEST(TextInput, BuffersTheFirstLine) {
  SlowSource source("\n \r\na,b\n1,2\n", 1);
  TextInput input(source, "data.csv");
  EXPECT_EQ(input.head(), "\n \r\na,b\n");
  EndlessSource blank("", " ");
  EXPECT_EQ(TextInput(blank, "data.csv").head().size(), std::size_t{1} << 20);
}

TEST(DetectDelimiter, AcceptsSemicolonsAndTabsUnlessAmbiguous) {
  const auto detect = [](std::string_view text) {
    MemorySource source(text);
    return detect_delimiter(TextInput(source, "data.csv"));
  };
  EXPECT_EQ(detect("a,b\n"), ',');
  EXPECT_EQ(detect("a;b\n"), ';');
  EXPECT_EQ(detect("a\tb\n"), '\t');
  EXPECT_EQ(detect("a;b,c\n"), ',');
  EXPECT_EQ(detect("\"a,b\";c\n"), ';');
  EXPECT_EQ(detect("\n\na;b\n1,2\n"), ';');
  EXPECT_EQ(detect("a\n1;2\n"), ',');
  expect_refused("a;b\tc\n", {"data.csv: line 1", "semicolons and tabs"});
}

TEST(OpenSource, NamesWhatCannotBeRead) {
  const TemporaryFolder folder;
  expect_error(ErrorCode::not_found, {"absent.csv", "no such file; check the path"},
               [&] { open_source(folder / "absent.csv"); });
  expect_error(ErrorCode::corrupt_file, {folder.path(), "is a folder"}, [&] {
    char byte = 0;
    open_source(folder.path())->read(&byte, 1);
  });
  put(folder / "data.csv", "a,b\n");
  EXPECT_EQ(read_rows(*open_source(folder / "data.csv")), (Rows{{"a", "b"}}));
}

TEST(OpenSource, ReadsStandardInputAndLeavesItOpen) {
  const TemporaryFolder folder;
  put(folder / "data.csv", "a,b\n");
  const int before = ::dup(STDIN_FILENO);
  const int file = ::open((folder / "data.csv").c_str(), O_RDONLY);
  ASSERT_EQ(::dup2(file, STDIN_FILENO), STDIN_FILENO);
  ::close(file);
  EXPECT_EQ(read_rows(*open_source("-")), (Rows{{"a", "b"}}));
  EXPECT_EQ(::lseek(STDIN_FILENO, 0, SEEK_CUR), 4);
  ::dup2(before, STDIN_FILENO);
  ::close(before);
}

CellKind cell_of(std::string_view text) {
  float value = 0;
  return parse_cell(text, value);
}

float value_of(std::string_view text) {
  float value = 0;
  EXPECT_EQ(parse_cell(text, value), CellKind::number) << text;
  return value;
}

TEST(ParseCell, ReadsNumbers) {
  EXPECT_EQ(value_of("1"), 1.0F);
  EXPECT_EQ(value_of("-1.5e3"), -1500.0F);
  EXPECT_EQ(value_of("+2"), 2.0F);
  EXPECT_EQ(value_of(".5"), 0.5F);
  EXPECT_EQ(value_of("5."), 5.0F);
  EXPECT_EQ(value_of("1E2"), 100.0F);
  EXPECT_EQ(value_of("007"), 7.0F);
  EXPECT_TRUE(std::signbit(value_of("-0")));
  EXPECT_EQ(value_of("3.4028235e38"), FLT_MAX);
  EXPECT_EQ(value_of("-340282356779733661637539395458142568447"), -FLT_MAX);
  EXPECT_EQ(value_of("1e-45"), FLT_TRUE_MIN);
  EXPECT_EQ(value_of("1.17549421e-38"), 1.17549421e-38F);
  EXPECT_EQ(value_of("1e-46"), 0.0F);
  EXPECT_TRUE(std::signbit(value_of("-1e-300")));
}

// Through a double, this number would be rounded twice and end one float lower.
TEST(ParseCell, RoundsOnce) {
  EXPECT_EQ(value_of("1.00000017881393432617187499"), 1.0000001192092896F);
  EXPECT_EQ(value_of("1.00000017881393432617187501"), 1.0000002384185791F);
  std::mt19937 random(11);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text =
        fmt::format("{}.{}e{}", random() % 100'000, random(), static_cast<int>(random() % 60) - 30);
    ASSERT_EQ(value_of(text), std::strtof(text.c_str(), nullptr)) << text;
  }
}

TEST(ParseCell, KnowsTheSpellingsOfMissing) {
  for (const std::string_view text :
       {"", "NA", "na", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none", "NONE"}) {
    EXPECT_EQ(cell_of(text), CellKind::missing) << text;
  }
}

TEST(ParseCell, ExplainsWhyACellIsNotANumber) {
  for (const std::string_view text : {"inf", "-inf", "+Infinity", "INF"}) {
    EXPECT_EQ(cell_of(text), CellKind::infinite) << text;
  }
  for (const std::string_view text : {"1e39", "-1e39", "1e999", "3.4028236e38", "1e-999"}) {
    EXPECT_EQ(cell_of(text), CellKind::beyond_float) << text;
  }
  for (const std::string_view text : {"1,5", "1,234.5", "-1,5"}) {
    EXPECT_EQ(cell_of(text), CellKind::decimal_comma) << text;
  }
  for (const std::string_view text :
       {"-",     "+",     ".",      "abc",  "0x10", "1e",       "1e+", "1 000",
        "1_000", "1.2.3", "$5",     "5%",   "N/A",  "-nan",     "+NA", "nan(1)",
        "--1",   "+-1",   "1e999x", "true", "=1+1", "<script>", "\xE9"}) {
    EXPECT_EQ(cell_of(text), CellKind::text) << text;
  }
  EXPECT_EQ(complaint(CellKind::text, "abc"),
            "\"abc\" is text, expected a number or an empty cell");
  EXPECT_NE(complaint(CellKind::decimal_comma, "1,5").find("such as 1234.5"), std::string::npos);
}

TEST(ToFloat, RefusesNumbersThatRoundToInfinity) {
  float value = 0;
  EXPECT_TRUE(to_float(3.4028235677973362e38, value));  // just below the border
  EXPECT_EQ(value, FLT_MAX);
  EXPECT_FALSE(to_float(0x1.ffffffp127, value));
  EXPECT_FALSE(to_float(-1e39, value));
  EXPECT_FALSE(to_float(std::nan(""), value));
}

}  // namespace
}  // namespace toto::io
