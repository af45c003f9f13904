// Streaming a file gives the same series as reading it completely.
#include <filesystem>

#include "io_fixture.h"
#include "series_fixture.h"
#include "tables/series_file.h"
#include "tables/series_folder.h"
#include "tables/series_table.h"

namespace toto::tables {
namespace {

// The streamed data including its series.
std::optional<InputData> stream(std::string_view text, const ReadOptions& options = {},
                                const std::optional<TimeStyle>& style = {}) {
  io::MemorySource source(text);
  std::vector<InputSeries> series;

  std::optional<InputData> data = stream_series(
      source, "data.csv", options, [&series](InputSeries one) { series.push_back(std::move(one)); },
      style);
  if (data) data->series = std::move(series);
  return data;
}

void expect_same(const InputData& a, const InputData& b) {
  EXPECT_EQ(a.description, b.description);
  EXPECT_EQ(a.warnings, b.warnings);
  EXPECT_EQ(a.columns, b.columns);
  EXPECT_EQ(a.time_name, b.time_name);
  EXPECT_EQ(a.format, b.format);
  EXPECT_EQ(a.style, b.style);
  EXPECT_EQ(a.num_series, b.num_series);
  ASSERT_EQ(a.series.size(), b.series.size());
  EXPECT_EQ(a.series.size(), a.num_series);
  for (std::size_t i = 0; i < a.series.size(); ++i) {
    const InputSeries &x = a.series[i], &y = b.series[i];
    EXPECT_EQ(x.id, y.id);
    EXPECT_EQ(x.column, y.column);
    ASSERT_EQ(x.values.size(), y.values.size());
    EXPECT_TRUE(std::equal(x.values.begin(), x.values.end(), y.values.begin(),
                           [](float v, float w) { return v == w || (v != v && w != w); }));
    EXPECT_EQ(x.axis->times, y.axis->times);
    EXPECT_EQ(x.axis->frequency, y.axis->frequency);
    EXPECT_EQ(x.axis->style, y.axis->style);
  }
}

TEST(StreamSeries, AgreesWithReadingTheWholeFile) {
  std::size_t num_streamed = 0;
  for (const char* kind : {"csv", "jsonl"}) {
    const std::string corpus = std::string(TOTO_SOURCE_DIR) + "/tests/corpus/" + kind;
    for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
      SCOPED_TRACE(entry.path().string());
      const std::string text = io::contents_of(entry.path().string());
      std::optional<InputData> whole;
      try {
        whole = read(text);
      } catch (const Error&) {
        EXPECT_FALSE([&] {
          try {
            return stream(text).has_value();
          } catch (const Error&) {
            return false;
          }
        }()) << "what is wrong in a file does not pass";
        continue;
      }
      const std::optional<InputData> first = stream(text);
      if (!first) continue;
      ++num_streamed;
      const std::optional<InputData> second = stream(text, {}, first->style);
      ASSERT_TRUE(second);
      expect_same(*second, *whole);
    }
  }
  EXPECT_GT(num_streamed, 20U);
}

// A series is handed over when the next id begins, not at the end of the file.
TEST(StreamSeries, HandsOverEachIdAsSoonAsItEnds) {
  std::string text = "unique_id,ds,y\n";
  for (const char* id : {"a", "b", "c"}) {
    for (int day = 1; day <= 3; ++day) text += std::string(id) + "," + std::to_string(day) + ",5\n";
  }
  text += "c,4,no number\n";
  io::MemorySource source(text);
  std::vector<std::string> ids;
  io::expect_error(ErrorCode::corrupt_file, {"data.csv: line 11", "no number"}, [&] {
    stream_series(source, "data.csv", {}, [&ids](InputSeries series) { ids.push_back(series.id); });
  });
  EXPECT_EQ(ids, (std::vector<std::string>{"a", "b"}));
}

TEST(StreamSeries, RefusesMixedIds) {
  EXPECT_FALSE(stream("unique_id,ds,y\na,1,1\nb,1,2\na,2,3\nb,2,4\n"));
  // A later row may give a series its first value.
  const std::string late = "unique_id,ds,y\na,1,NA\nb,1,2\na,2,3\nb,2,4\n";
  EXPECT_FALSE(stream(late));
  EXPECT_EQ(read(late).series.size(), 2U);
  // If none does, reading the whole file reports it.
  const std::string never = "unique_id,ds,y\na,1,NA\nb,1,2\n";
  EXPECT_FALSE(stream(never));
  io::expect_error(ErrorCode::corrupt_file, {"line 2", "\"a\" has no value"}, [&] { read(never); });
}

// A later line may need a time of day that earlier ones lack.
TEST(StreamSeries, UsesTheStyleOfAnEarlierPass) {
  const std::string text =
      "{\"start\": \"2024-01-01\", \"target\": [1, 2], \"item_id\": \"a\", \"freq\": \"D\"}\n"
      "{\"start\": \"2024-01-01 12:30\", \"target\": [1, 2], \"item_id\": \"b\", \"freq\": "
      "\"D\"}\n";
  const InputData whole = read(text);
  EXPECT_EQ(future_timestamps(whole.series[0], 1)[0], "2024-01-03 00:00");
  const std::optional<InputData> first = stream(text);
  ASSERT_TRUE(first);
  EXPECT_EQ(future_timestamps(first->series[0], 1)[0], "2024-01-03");
  EXPECT_EQ(first->style, whole.style);
  expect_same(*stream(text, {}, first->style), whole);
}

TEST(SeriesFiles, AreThoseOfTheFolderByName) {
  const io::TemporaryFolder folder;
  for (const char* name :
       {"b.csv", "a.JSONL", "c.CSV", ".hidden.csv", "notes.txt", "csv", "d.json"}) {
    io::put(folder / name, "x");
  }
  std::filesystem::create_directories(folder / "below.csv");
  io::put(folder / "below.csv/e.csv", "x");
  std::filesystem::create_symlink("b.csv", folder / "link.csv");
  EXPECT_EQ(series_files(folder.path()),
            (std::vector<std::string>{folder / "a.JSONL", folder / "b.csv", folder / "c.CSV",
                                      folder / "link.csv"}));
  EXPECT_TRUE(series_files(folder / "below.csv/").size() == 1);
  io::expect_error(ErrorCode::not_found, {"absent", "No such file"},
                   [&] { series_files(folder / "absent"); });
  EXPECT_TRUE(is_regular_file(folder / "link.csv"));
  EXPECT_FALSE(is_regular_file(folder.path()));
  EXPECT_FALSE(is_regular_file("/dev/null"));
  EXPECT_FALSE(is_regular_file("-"));
}

}  // namespace
}  // namespace toto::tables
