// `toto forecast` over folders, several files and long files: which series there are, what they are
// called, the same bits as one by one, and memory that does not grow with their number.
#include <sys/resource.h>
#include <sys/stat.h>

#include "cli_fixture.h"
#include "sanitized.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

class StreamTest : public CliTest {
 protected:
  // A column of `rows` days; other numbers for each seed.
  static std::string column(int rows, int seed, const std::string& name = "x") {
    std::string text = "date," + name + "\n";
    for (int i = 0; i < rows; ++i) text += day(i) + "," + number(i, seed) + "\n";
    return text;
  }
  static std::string day(int i) {
    return tables::format_time(tables::midnight({.year = 2020}) + i * tables::kDay, {});
  }
  static std::string number(int i, int seed) {
    return fmt::format("{:.3f}", 50 + seed % 13 + 10 * std::sin(0.1 * i * (1 + seed % 7)));
  }
  static std::string json_line(int rows, int seed) {
    std::string text = "{\"start\": \"2020-01-01\", \"freq\": \"D\", \"item_id\": \"s" +
                       std::to_string(seed) + "\", \"target\": [";
    for (int i = 0; i < rows; ++i) text += (i == 0 ? "" : ",") + number(i, seed);
    return text + "]}\n";
  }
  void in_folder(const std::string& name, std::string_view text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    file(name, text);
  }
  Result forecast(std::vector<std::string> words) {
    words.insert(words.begin(), "forecast");
    words.insert(words.end(), {"--horizon", "3"});
    return run(words);
  }
  io::Json answer(std::vector<std::string> words) {
    words.insert(words.end(), {"--json", "-"});
    return json_of(forecast(words));
  }
  static std::vector<std::string> ids_of(const io::Json& json) {
    std::vector<std::string> ids;
    for (const io::Json& series : at(json, "series").array) ids.push_back(at(series, "id").string);
    return ids;
  }
  // Everything of a series but its id.
  static std::string numbers_of(const io::Json& series) {
    io::JsonWriter writer;
    writer.begin_object();
    for (const auto& [name, value] : series.object) {
      if (name != "id") writer.key(name).value(value);
    }
    return writer.end_object().take();
  }
  using Ids = std::vector<std::string>;
};

TEST_F(StreamTest, AFolderIsReadByName) {
  in_folder("d/b.csv", column(40, 1));
  in_folder("d/a.csv", wide_csv(40));
  in_folder("d/C.JSONL", json_line(30, 2));
  in_folder("d/long.csv", "unique_id,ds,y\nlong,1,5\nlong,2,6\n");
  in_folder("d/.hidden.csv", "no table");
  in_folder("d/notes.txt", "no table");
  in_folder("d/below/e.csv", "no table");
  const Result result = forecast({"d", "--json", "-"});
  EXPECT_EQ(ids_of(json_of(result)), (Ids{"C/s2", "a/a", "a/b", "b", "long"}));
  EXPECT_TRUE(has(result.err, "d/a.csv: 2 daily series of 40 points")) << result.err;
  EXPECT_TRUE(has(result.err, "\nd: 4 files, 5 series\n")) << result.err;
  EXPECT_EQ(ids_of(answer({"d/"})).size(), 5U);
  // One file in a folder is called as it would be among others.
  in_folder("one/b.csv", column(40, 1));
  EXPECT_EQ(ids_of(answer({"one"})), Ids{"b"});
  EXPECT_EQ(ids_of(answer({"one/b.csv"})), Ids{"x"});
}

TEST_F(StreamTest, SeveralFilesKeepTheirSeriesApart) {
  in_folder("a.csv", column(40, 1));
  in_folder("d/a.csv", column(30, 2));
  in_folder("d/b.csv", wide_csv(40));
  EXPECT_EQ(ids_of(answer({"d/b.csv", "a.csv"})), (Ids{"b/a", "b/b", "a"})) << "in this order";
  EXPECT_EQ(ids_of(answer({"a.csv", "d"})), (Ids{"a.csv", "d/a.csv", "d/b.csv/a", "d/b.csv/b"}))
      << "by their paths where names alone are not enough";
}

TEST_F(StreamTest, WhatCannotBeReadIsRefused) {
  fs::create_directories(path("empty/below"));
  in_folder("empty/notes.txt", "x");
  expect_refusal(3, {"empty: the folder holds no .csv or .jsonl file", "not searched"},
                 {"forecast", "empty"});
  in_folder("d/a.csv", column(40, 1));
  expect_refusal(2, {"INPUT names ./d/a.csv twice"}, {"forecast", "d", "./d/a.csv"});
  expect_refusal(2, {"INPUT names - twice"}, {"forecast", "-", "-"});
  expect_refusal(3, {"absent.csv"}, {"forecast", "d", "absent.csv"});
  expect_refusal(2, {"--known-future is -", "2 files"},
                 {"forecast", "d/a.csv", "absent.csv", "--known-future", "-"});
  expect_refusal(2, {"--output is d/a.csv", "INPUT"},
                 {"forecast", "d/a.csv", "--output", "d/a.csv"});
}

TEST_F(StreamTest, ABadFileStopsEverythingBeforeTheModelIsLoaded) {
  for (const char* name : {"a", "b", "c"})
    in_folder(std::string("d/") + name + ".csv", column(9, 1));
  in_folder("d/bad.csv", "date,x\n2024-01-01,1\n2024-01-02,oops\n");
  file("out.csv", "old");
  const Result result = forecast({"d", "--output", "out.csv", "--json", "-", "--model", "absent"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(has(error_line(result), "d/bad.csv: line 3")) << result.err;
  EXPECT_EQ(contents_of(path("out.csv")), "old");
  EXPECT_EQ(folder_.num_entries(), 2U);
}

TEST_F(StreamTest, TheSameBitsAsOneByOne) {
  constexpr int kFiles = 300;  // more than one group
  for (int i = 0; i < kFiles; ++i) {
    in_folder(fmt::format("d/f{:03}.csv", i), column(1 + (i * 37) % 90, i));
  }
  const io::Json together = answer({"d"});
  ASSERT_EQ(at(together, "series").array.size(), static_cast<std::size_t>(kFiles));
  for (const int i : {0, 1, 17, 255, 256, 299}) {
    const io::Json alone = answer({fmt::format("d/f{:03}.csv", i)});
    const io::Json& in_batch = at(together, "series").array.at(static_cast<std::size_t>(i));
    EXPECT_EQ(at(in_batch, "id").string, fmt::format("f{:03}", i));
    EXPECT_EQ(numbers_of(in_batch), numbers_of(at(alone, "series").array.at(0))) << i;
  }
  // All outputs of one run, each complete.
  ASSERT_EQ(forecast({"d", "--output", "out.csv", "--json", "out.json"}).exit_code, 0);
  const std::string csv = contents_of(path("out.csv"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 3 * kFiles);
  EXPECT_EQ(at(io::parse_json(contents_of(path("out.json")), "out.json"), "series").array.size(),
            static_cast<std::size_t>(kFiles));
  ASSERT_EQ(forecast({"d", "--output", "out.jsonl"}).exit_code, 0);
  const std::string lines = contents_of(path("out.jsonl"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), kFiles);
}

TEST_F(StreamTest, RowsOfALongTableMayBeMixed) {
  std::string sorted = "unique_id,ds,y\n", mixed = sorted;
  for (int id = 0; id < 3; ++id) {
    for (int i = 0; i < 40; ++i) {
      sorted += fmt::format("s{},{},{}\n", id, day(i), number(i, id));
    }
  }
  for (int i = 0; i < 40; ++i) {
    for (int id = 0; id < 3; ++id) mixed += fmt::format("s{},{},{}\n", id, day(i), number(i, id));
  }
  file("sorted.csv", sorted);
  file("mixed.csv", mixed);
  const io::Json a = answer({"sorted.csv"}), b = answer({"mixed.csv"});
  EXPECT_EQ(ids_of(a), (Ids{"s0", "s1", "s2"}));
  EXPECT_EQ(ids_of(b), ids_of(a));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(numbers_of(at(a, "series").array[i]), numbers_of(at(b, "series").array[i]));
  }
  EXPECT_EQ(ids_of(answer({"sorted.csv", "mixed.csv"})).size(), 6U);
}

TEST_F(StreamTest, AnOutputNextToTheDataIsNotReadByTheNextRun) {
  in_folder("d/a.csv", column(40, 1));
  for (int run_number = 0; run_number < 2; ++run_number) {
    ASSERT_EQ(forecast({"d", "--output", "d/out.csv", "--json", "d/out.jsonl"}).exit_code, 0);
    EXPECT_TRUE(has(contents_of(path("d/out.csv")), "\na,2020-02-10,"));
    EXPECT_FALSE(has(contents_of(path("d/out.csv")), "out"));
  }
}

TEST_F(StreamTest, VariatesAndKnownFuturesBelongToTheirFile) {
  in_folder("d/a.csv", wide_csv(40));
  in_folder("d/b.csv", wide_csv(40));
  in_folder("d/c.csv", "date,a\n2024-02-08,1\n2024-02-09,2\n");
  const Result joined = forecast({"d", "--multivariate", "--json", "-"});
  EXPECT_EQ(ids_of(json_of(joined)), (Ids{"a/a", "a/b", "b/a", "b/b", "c"}));
  EXPECT_TRUE(has(joined.err, "--multivariate changes nothing: d/c.csv has one series, \"a\""))
      << joined.err;
  const io::Json alone = answer({"d/b.csv", "--multivariate"});
  EXPECT_EQ(numbers_of(at(json_of(joined), "series").array[2]),
            numbers_of(at(alone, "series").array[0]));
  fs::remove(path("d/c.csv"));
  file("known.csv", "date,b\n2024-02-10,1\n2024-02-11,2\n2024-02-12,3\n");
  EXPECT_EQ(ids_of(answer({"d", "--known-future", "known.csv"})), (Ids{"a", "b"}));
}

TEST_F(StreamTest, PipesAreReadOnce) {
  file("a.csv", column(40, 1));
  file("b.csv", column(40, 2));
  const io::Json expected = answer({"a.csv", "b.csv"});
  const Result piped = shell("cat a.csv | toto forecast - b.csv --horizon 3 --json -");
  EXPECT_EQ(ids_of(json_of(piped)), (Ids{"stdin", "b"})) << piped.err;
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(numbers_of(at(json_of(piped), "series").array[i]),
              numbers_of(at(expected, "series").array[i]));
  }
}

// The first file is checked, then changes while the second one, a pipe, is waited for.
TEST_F(StreamTest, AFileThatChangesMeanwhileIsAnError) {
  file("a.csv", column(40, 1));
  file("out.csv", "old");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const Running running =
      start({"forecast", "a.csv", "pipe", "--horizon", "3", "--output", "out.csv"});
  const int pipe = open(path("pipe").c_str(), O_WRONLY);  // returns when the command reads it
  ASSERT_GE(pipe, 0);
  file("a.csv", wide_csv(40));
  const std::string text = column(40, 2);
  EXPECT_EQ(write(pipe, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(pipe);
  const Result result = running.wait();
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_TRUE(has(error_line(result), "a.csv: the file changed while it was forecast"))
      << result.err;
  EXPECT_EQ(contents_of(path("out.csv")), "old");
}

TEST_F(StreamTest, ProgressTellsRateAndTimeLeft) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += json_line(4, i);
  file("many.jsonl", text);
  const Result result = forecast({"many.jsonl", "--progress"});
  EXPECT_TRUE(has(result.err, "forecast: 100 %, 600 of 600 series, ")) << result.err;
  EXPECT_TRUE(has(result.err, "/s, ")) << result.err;
  EXPECT_TRUE(has(result.err, " s left\n")) << result.err;
  in_folder("d/a.csv", column(9, 1));
  in_folder("d/b.csv", column(9, 1));
  const Result folder = forecast({"d", "--progress"});
  EXPECT_TRUE(has(folder.err, "read: 100 %, 2 of 2 files")) << folder.err;
}

TEST_F(StreamTest, ManyFilesAreFewLines) {
  for (int i = 0; i < 60; ++i) {  // each with a warning of its own
    in_folder(fmt::format("d/f{:02}.csv", i), "date,x\n2024-01-01,\n2024-01-02,1\n2024-01-03,2\n");
  }
  const Result result = forecast({"d", "--plot", "p.html"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(std::count(result.err.begin(), result.err.end(), '\n'), 40) << result.err;
  EXPECT_TRUE(has(result.err, "warning: 50 more warnings about other files are not shown"))
      << result.err;
  EXPECT_TRUE(has(result.err, "d: 60 files, 60 series")) << result.err;
  EXPECT_TRUE(has(result.err, "p.html: shows the first 50 of 60 series")) << result.err;
  const std::string page = contents_of(path("p.html"));
  EXPECT_TRUE(has(page, "d: 50 forecasts"));
  EXPECT_TRUE(has(page, "f49, next 3 days"));
  EXPECT_FALSE(has(page, "f50, next 3 days"));
  EXPECT_TRUE(has(result.out, "40 more series are not shown")) << result.out;
}

TEST_F(StreamTest, AnInterruptLeavesTheOldFile) {
  std::string lines;
  for (int i = 0; i < 512; ++i) lines += json_line(60, i);
  in_folder("d/a.jsonl", lines);
  in_folder("d/b.jsonl", lines);
  file("out.csv", "old");
  const Running running = start(
      {"forecast", "d", "--horizon", "40", "--samples", "50", "--output", "out.csv", "--progress"});
  EXPECT_TRUE(testing::eventually([&] { return has(running.err_so_far(), "forecast: "); }));
  kill(running.pid(), SIGINT);
  const Result result = running.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_EQ(contents_of(path("out.csv")), "old");
  EXPECT_EQ(folder_.num_entries(), 2U) << "nothing unfinished is left";
}

class StreamMemoryTest : public StreamTest {
 protected:
  static constexpr int kRows = 1000, kFew = 300, kMany = 1200;
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  }
  // Peak memory of forecasting `input`; the short context keeps the network's share small.
  double peak_megabytes(const std::string& input, std::size_t num_series) {
    const Running running =
        start({"forecast", input, "--horizon", "16", "--context", "64", "--threads", "1",
               "--no-cache", "--output", "out.csv", "--json", "out.json"});
    int status = 0;
    rusage usage{};
    wait4(running.pid(), &status, 0, &usage);
    EXPECT_EQ(status, 0) << running.err_so_far();
    const std::string csv = contents_of(path("out.csv"));
    EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')),
              1 + 16 * num_series);
    return static_cast<double>(usage.ru_maxrss) / 1024;
  }
  // Both have more series than a group. 900 series more are 11 MB as they are read: a value has 4
  // bytes, its time 8.
  void expect_bounded(double of_few, double of_many) {
    RecordProperty("peak_mb_of_few", std::to_string(of_few));
    RecordProperty("peak_mb_of_many", std::to_string(of_many));
    EXPECT_GT(of_few, own_megabytes()) << "a child begins with what its parent had";
    EXPECT_LT(of_many - of_few, 4) << of_few << " MB, " << of_many << " MB";
  }
  static double own_megabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
  }
  // Files of few and of many parts, written as they are made.
  template <typename Part>
  void write_parts(const std::string& extension, const std::string& head, const Part& part) const {
    std::ofstream few(path("few" + extension)), many(path("many" + extension));
    few << head;
    many << head;
    for (int id = 0; id < kMany; ++id) {
      const std::string text = part(id);
      many << text;
      if (id < kFew) few << text;
    }
  }
};

TEST_F(StreamMemoryTest, DoesNotGrowWithTheFilesOfAFolder) {
  for (int i = 0; i < kMany; ++i) {
    in_folder(fmt::format("many/f{:04}.csv", i), column(kRows, i));
    if (i < kFew) in_folder(fmt::format("few/f{:04}.csv", i), column(kRows, i));
  }
  expect_bounded(peak_megabytes("few", kFew), peak_megabytes("many", kMany));
}

TEST_F(StreamMemoryTest, DoesNotGrowWithTheSeriesOfALongTable) {
  write_parts(".csv", "unique_id,ds,y\n", [](int id) {
    std::string rows;
    for (int i = 0; i < kRows; ++i) rows += fmt::format("s{},{},{}\n", id, day(i), number(i, id));
    return rows;
  });
  expect_bounded(peak_megabytes("few.csv", kFew), peak_megabytes("many.csv", kMany));
}

TEST_F(StreamMemoryTest, DoesNotGrowWithTheLinesOfJson) {
  write_parts(".jsonl", "", [](int id) { return json_line(kRows, id); });
  expect_bounded(peak_megabytes("few.jsonl", kFew), peak_megabytes("many.jsonl", kMany));
}

}  // namespace
}  // namespace toto::cli
