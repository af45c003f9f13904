// Known future values, and joining series as variates.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "io_fixture.h"
#include "series_fixture.h"
#include "tables/series_file.h"

namespace toto::tables {
namespace {

using Texts = std::vector<std::string>;

const std::string_view kHistory =
    "date,sales,price,holiday\n2024-01-01,1,10,0\n2024-01-02,2,11,0\n2024-01-03,3,12,1\n";

KnownFuture known(std::string_view text, int horizon, const InputData& input = read(kHistory)) {
  io::MemorySource source(text);
  io::TextInput file(source, "known.csv");
  return read_known_future(file, input, horizon);
}

TEST(ReadKnownFuture, MatchesRowsToTheForecastSteps) {
  const KnownFuture future = known(
      "date,holiday,price\n2024-01-03,0,1\n2024-01-04,1,13\n2024-01-05,0,14\n2024-01-06,0,15\n", 2);
  EXPECT_EQ(future.names, (Texts{"holiday", "price"}));
  EXPECT_EQ(future.values, (std::vector<float>{1, 0, 13, 14}));
}

TEST(ReadKnownFuture, NamesMissingRowsAndValues) {
  const auto refused = [](std::string_view text,
                          std::initializer_list<std::string_view> fragments) {
    io::expect_error(ErrorCode::corrupt_file, fragments, [&] { known(text, 2); });
  };
  refused("date,price\n2024-01-04,1\n",
          {"known.csv: 1 of the 2 forecast steps have no row", "the first is 2024-01-05"});
  refused("date,price\n2024-01-04,1\n2024-01-05,\n",
          {"known.csv: line 3, column 2 (\"price\")", "missing"});
  refused("date,weather\n2024-01-04,1\n2024-01-05,1\n",
          {"known.csv: line 1", "\"weather\" is not a series of the input"});
  refused("day,price\n2024-01-04,1\n2024-01-05,1\n", {"known.csv: line 1", "time column \"date\""});
  refused("date,price\n2024-01-04T00:00Z,1\n", {"known.csv: line 2", "another kind or zone"});
  refused("date,price\n1,1\n", {"known.csv: line 2", "another kind or zone"});
  refused("date,price\n2024-01-04,x\n", {"known.csv: line 2, column 2", "is text"});
  io::expect_error(ErrorCode::invalid_argument, {"known.csv", "--freq"}, [] {
    known("date,price\n2024-01-04,1\n", 1, read("date,price\n2024-01-03,1\n"));
  });
  refused("date,price,PRICE\n2024-01-04,1,1\n2024-01-05,1,1\n",
          {"known.csv: line 1", "\"price\" is known twice"});
}

TEST(ReadKnownFuture, ReadsTheHistoryOfItsColumns) {
  const auto ids = [](std::string_view table, const ReadOptions& options) {
    Texts names;
    for (const InputSeries& series : read(table, options).series) names.push_back(series.id);
    return names;
  };
  const auto header = [](std::string_view table) {
    io::MemorySource source(table);
    return header_names(io::TextInput(source, "known.csv"));
  };
  EXPECT_EQ(header("date,price,\"a,b\"\n2024-01-04,1,2\n"), (Texts{"date", "price", "a,b"}));
  EXPECT_EQ(header("date;price\n"), (Texts{"date", "price"}));
  EXPECT_EQ(header(""), Texts{});

  const Texts also = {"date", "price", "weather"};
  EXPECT_EQ(ids(kHistory, {.columns = {"sales"}, .also = also}), (Texts{"sales", "price"}));
  EXPECT_EQ(ids(kHistory, {.columns = {"price", "sales"}, .also = also}),
            (Texts{"price", "sales"}));
  EXPECT_EQ(ids(kHistory, {.also = also}), (Texts{"sales", "price", "holiday"}));
  // Bars read only their close unless other columns are known.
  const std::string_view bars =
      "Date,Open,High,Low,Close,Volume\n2024-01-01,1,2,0,1,70\n2024-01-02,1,2,0,1,80\n";
  EXPECT_EQ(ids(bars, {.also = {"date", "volume"}}), (Texts{"Close", "Volume"}));
  const KnownFuture future =
      known("Date,volume\n2024-01-03,90\n", 1, read(bars, {.also = {"date", "volume"}}));
  EXPECT_EQ(future.names, Texts{"Volume"});
  // An exact match wins over a case-insensitive one.
  EXPECT_EQ(ids("t,a,B,b\n2024-01-01,1,2,3\n", {.columns = {"a"}, .also = {"b"}}),
            (Texts{"a", "b"}));
  // Series with ids are known by id, not by column.
  EXPECT_EQ(ids("unique_id,ds,y,x\ns,2024-01-01,1,2\n", {.also = {"ds", "x"}}), Texts{"s"});
}

TEST(JoinVariates, PutsKnownVariatesLast) {
  const InputData input = read(kHistory);
  const KnownFuture future = known("date,price\n2024-01-04,13\n2024-01-05,14\n", 2);
  const JoinedSeries joined = join_variates(input, future, 2, "shop");
  EXPECT_EQ(joined.order, (std::vector<std::size_t>{0, 2, 1}));
  EXPECT_EQ(joined.series.id, "shop");
  EXPECT_EQ(joined.series.num_variates, 3);
  EXPECT_EQ(joined.series.num_exogenous, 1);
  EXPECT_EQ(joined.series.values, (std::vector<float>{2, 3, 0, 1, 11, 12}));
  EXPECT_EQ(joined.series.future_exogenous, (std::vector<float>{13, 14}));
}

TEST(JoinVariates, AlignsVariatesAtTheirEnd) {
  const InputData input =
      read("date,a,b\n2024-01-01,,1\n2024-01-02,,2\n2024-01-03,3,3\n2024-01-04,4,4\n");
  const JoinedSeries joined = join_variates(input, {}, 4096, "");
  ASSERT_EQ(joined.series.length(), 4U);
  EXPECT_TRUE(std::isnan(joined.series.values[0]) && std::isnan(joined.series.values[1]));
  EXPECT_EQ(joined.series.values[2], 3);
  EXPECT_EQ(joined.series.values[4], 1);

  const std::string_view together = "unique_id,ds,y\na,1,1\na,2,2\nb,1,1\nb,2,2\n";
  EXPECT_EQ(join_variates(read(together), {}, 4096, "").series.length(), 2U);
  const std::string_view apart = "unique_id,ds,y\na,1,1\na,2,2\nb,2,1\nb,3,2\n";
  io::expect_error(ErrorCode::corrupt_file,
                   {"data.csv: the series \"b\" has other times than \"a\""},
                   [&] { join_variates(read(apart), {}, 4096, ""); });
  io::expect_error(ErrorCode::corrupt_file, {"\"b\" has other times than \"a\""},
                   [&] { check_same_times(read(apart), std::array<std::size_t, 2>{0, 1}); });
  check_same_times(read(apart), std::array<std::size_t, 1>{1});
}

}  // namespace
}  // namespace toto::tables
