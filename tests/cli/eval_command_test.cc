// `toto eval`: what goes in, what is refused, what the answer holds, and what it costs.
#include <sys/resource.h>

#include "cli_fixture.h"
#include "sanitized.h"

namespace toto::cli {
namespace {

class EvalTest : public CliTest {
 protected:
  void SetUp() override {
    file("in.csv", wide_csv(60));
    ASSERT_EQ(run({"make-model", "model", "--config", "mini", "--seed", "3"}).exit_code, 0);
  }
  static std::vector<std::string> words_for(std::vector<std::string> words) {
    words.insert(words.begin(), "eval");
    words.insert(words.end(), {"--model", "model"});
    return words;
  }
  Result eval(const std::vector<std::string>& words, std::string_view input = {}) {
    return run(words_for(words), {}, input);
  }
  io::Json answer(std::vector<std::string> words) {
    words.insert(words.end(), {"--json", "-"});
    return json_of(eval(words));
  }
  void refuse(int code, std::initializer_list<std::string_view> fragments,
              const std::vector<std::string>& words) {
    expect_refusal(code, fragments, words_for(words));
  }
  // One line of JSON a series, `length` values each.
  void write_series(std::string_view name, int count, int length) const {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += fmt::format("{{\"item_id\": \"s{}\", \"start\": \"1\", \"target\": [", i);
      for (int t = 0; t < length; ++t)
        text += fmt::format("{}{}", t == 0 ? "" : ",", (t * 7 + i) % 13);
      text += "]}\n";
    }
    file(name, text);
  }
};

TEST_F(EvalTest, TableByDefault) {
  const Result result = eval({"in.csv", "--horizon", "5", "--windows", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "in: 2 series, 6 windows of 5 steps, season 7")) << result.out;
  EXPECT_TRUE(has(result.out, "note: model is untrained")) << result.out;
  for (const char* label : {"seasonal naive  ", "seasonal naive, bands", "persistence", "\n  a ",
                            "\n  b ", "geometric mean of series", "MASE", "WQL", "sMAPE"}) {
    EXPECT_TRUE(has(result.out, label)) << label << "\n" << result.out;
  }
  EXPECT_FALSE(has(result.out, "geometric mean of 1")) << "one data set needs no mean";
  EXPECT_TRUE(has(result.err, "in.csv: 2 daily series of ")) << result.err;
  EXPECT_EQ(folder_.num_entries(), 2u) << "nothing but the input and the model";
}

TEST_F(EvalTest, JsonHoldsTheWholeContract) {
  const io::Json json = answer({"in.csv", "--horizon", "5", "--windows", "3", "--context", "30"});
  EXPECT_EQ(keys_of(json),
            (std::vector<std::string>{"engine", "horizon", "windows", "stride", "context",
                                      "samples", "paths", "scale", "missing", "datasets",
                                      "geometric_mean", "warnings"}));
  EXPECT_EQ(at(json, "paths").integer, 256);
  EXPECT_EQ(at(json, "scale").string, "auto");
  EXPECT_EQ(at(json, "samples").kind, io::Json::Kind::null);
  EXPECT_EQ(at(json, "missing").string, "ffill");
  const io::Json sampled =
      answer({"in.csv", "--horizon", "5", "--samples", "8", "--missing", "linear", "--scale", "2"});
  EXPECT_EQ(at(sampled, "samples").integer, 8);
  EXPECT_EQ(at(sampled, "paths").kind, io::Json::Kind::null);
  EXPECT_EQ(at(sampled, "scale").real, 2);
  EXPECT_EQ(at(sampled, "missing").string, "linear");
  EXPECT_EQ(at(json, "stride").integer, 5);
  EXPECT_EQ(at(json, "context").integer, 30);
  const io::Json& dataset = at(json, "datasets").array.at(0);
  EXPECT_EQ(keys_of(dataset),
            (std::vector<std::string>{"name", "file", "description", "num_series", "windows",
                                      "steps", "metrics", "ratios", "series_geometric_mean",
                                      "skipped", "series"}));
  EXPECT_EQ(at(dataset, "windows").integer, 6);
  EXPECT_EQ(at(dataset, "steps").integer, 30);
  const std::vector<std::string> contenders = {"model", "seasonal_naive", "seasonal_naive_bands",
                                               "persistence"};
  EXPECT_EQ(keys_of(at(dataset, "metrics")), contenders);
  EXPECT_EQ(keys_of(at(at(dataset, "metrics"), "model")),
            (std::vector<std::string>{"mase", "wql", "crps", "mae", "smape", "coverage_50",
                                      "coverage_80"}));
  EXPECT_EQ(at(at(at(dataset, "metrics"), "persistence"), "coverage_80").kind,
            io::Json::Kind::null);
  EXPECT_EQ(keys_of(at(dataset, "ratios")),
            std::vector<std::string>(contenders.begin() + 1, contenders.end()));
  EXPECT_EQ(keys_of(at(at(dataset, "ratios"), "persistence")),
            (std::vector<std::string>{"mase", "wql", "crps", "mae"}));
  const io::Json& series = at(dataset, "series").array.at(1);
  EXPECT_EQ(keys_of(series),
            (std::vector<std::string>{"id", "season", "windows", "steps", "metrics", "ratios"}));
  EXPECT_EQ(at(series, "id").string, "b");
  EXPECT_EQ(at(series, "season").integer, 7);
  EXPECT_EQ(at(at(at(json, "geometric_mean"), "seasonal_naive"), "count").integer, 1);
}

// "a" repeats every 7 days: seasonal naive is never wrong, so nothing can be divided by it.
TEST_F(EvalTest, AnUndefinedRatioIsNullAndNotCounted) {
  const io::Json json = answer({"in.csv", "--columns", "a", "--horizon", "5"});
  const io::Json& dataset = at(json, "datasets").array.at(0);
  EXPECT_EQ(at(at(at(dataset, "metrics"), "model"), "mase").kind, io::Json::Kind::null);
  EXPECT_EQ(at(at(at(dataset, "metrics"), "seasonal_naive"), "wql").real, 0);
  EXPECT_EQ(at(at(at(dataset, "ratios"), "seasonal_naive"), "wql").kind, io::Json::Kind::null);
  const io::Json& mean = at(at(json, "geometric_mean"), "seasonal_naive");
  EXPECT_EQ(at(mean, "wql").kind, io::Json::Kind::null);
  EXPECT_EQ(at(mean, "count").integer, 0);
  const Result table =
      eval({"in.csv", data("AirPassengers.csv"), "--columns", "a", "--horizon", "5"});
  EXPECT_EQ(table.exit_code, 2) << "a column that one of the files lacks";
}

TEST_F(EvalTest, SeveralFilesAreSeveralDataSets) {
  std::filesystem::create_directory(path("other"));
  file("other/in.csv", wide_csv(50));
  const Result result =
      eval({"in.csv", "other/in.csv", data("AAPL.csv"), "--horizon", "5", "--json", "out.json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "geometric mean of 3")) << result.out;
  const io::Json json = io::parse_json(contents_of(path("out.json")), "out.json");
  ASSERT_EQ(at(json, "datasets").array.size(), 3u);
  EXPECT_EQ(at(at(json, "datasets").array[0], "name").string, "in.csv") << "stems alone are alike";
  EXPECT_EQ(at(at(json, "datasets").array[1], "name").string, "other/in.csv");
  EXPECT_EQ(at(at(json, "datasets").array[2], "name").string, "AAPL");
  EXPECT_EQ(at(at(at(json, "datasets").array[2], "series").array[0], "season").integer, 1)
      << "prices have no season";
}

TEST_F(EvalTest, ShortSeriesAreNamedAndSkipped) {
  file("mixed.jsonl",
       "{\"item_id\": \"short\", \"start\": \"1\", \"target\": [1,2,3]}\n"
       "{\"item_id\": \"long\", \"start\": \"1\", \"target\": [1,2,3,5,4,6,7,8,7,9,9,8]}\n");
  const Result result =
      eval({"mixed.jsonl", "--horizon", "4", "--windows", "9", "--json", "out.json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.err,
                  "warning: mixed.jsonl: the series \"short\" is skipped: it has 3 "
                  "values, expected at least 6"))
      << result.err;
  EXPECT_TRUE(has(result.err, "2 of 9 windows are evaluated")) << result.err;
  const io::Json json = io::parse_json(contents_of(path("out.json")), "out.json");
  const io::Json& dataset = at(json, "datasets").array.at(0);
  ASSERT_EQ(at(dataset, "skipped").array.size(), 1u);
  EXPECT_EQ(at(at(dataset, "skipped").array[0], "id").string, "short");
  EXPECT_EQ(at(dataset, "series").array.size(), 1u);
}

TEST_F(EvalTest, WrongUsageIsRefusedBeforeAnyWork) {
  refuse(2, {"--horizon is missing"}, {"in.csv"});
  for (const char* number : {"0", "-1", "x", "1.5", "10000000"}) {
    refuse(2, {"--horizon"}, {"absent.csv", "--horizon", number});
    refuse(2, {"--windows"}, {"absent.csv", "--horizon", "5", "--windows", number});
    refuse(2, {"--stride"}, {"absent.csv", "--horizon", "5", "--stride", number});
    refuse(2, {"--season"}, {"absent.csv", "--horizon", "5", "--season", number});
  }
  refuse(2, {"--context"}, {"in.csv", "--horizon", "5", "--context", "0"});
  refuse(2, {"--samples"}, {"in.csv", "--horizon", "5", "--samples", "0"});
  refuse(2, {"--missing"}, {"in.csv", "--horizon", "5", "--missing", "zero"});
  refuse(2, {"--format"}, {"in.csv", "--horizon", "5", "--format", "parquet"});
  refuse(2, {"--freq"}, {"in.csv", "--horizon", "5", "--freq", "fortnight"});
  refuse(2, {"--report is -"}, {"in.csv", "--horizon", "5", "--report", "-"});
  refuse(2, {"- twice"}, {"-", "-", "--horizon", "5"});
  refuse(2, {"--json is in.csv", "DATA"}, {"in.csv", "--horizon", "5", "--json", "in.csv"});
  refuse(2, {"--report is \"r.txt\"", ".html"}, {"in.csv", "--horizon", "5", "--report", "r.txt"});
  refuse(2, {"--report is a.html", "--json"},
         {"in.csv", "--horizon", "5", "--json", "a.html", "--report", "a.html"});
  refuse(2, {"--plots is \"in.csv\", a file"}, {"in.csv", "--horizon", "5", "--plots", "in.csv"});
  refuse(2, {"DATA"}, {"--horizon", "5"});
}

TEST_F(EvalTest, NothingToEvaluateIsAnError) {
  refuse(3, {"in.csv: nothing can be evaluated", "has 60 values", "--horizon"},
         {"in.csv", "--horizon", "60"});
  refuse(3, {"in.csv", "a season of 59"}, {"in.csv", "--horizon", "5", "--season", "59"});
  refuse(3, {"absent.csv"}, {"in.csv", "absent.csv", "--horizon", "5"});
  file("bad.csv", "date,a\n2024-01-01,oops\n");
  refuse(3, {"bad.csv: line 2"}, {"in.csv", "bad.csv", "--horizon", "5"});
}

TEST_F(EvalTest, ReportAndPlotsShowTheNotableWindows) {
  file(
      "odd.csv", "date,<script>alert(1)</script>\n" + [] {
        std::string rows;
        for (int i = 0; i < 40; ++i) {
          rows += fmt::format(
              "{},{}\n",
              tables::format_time(tables::midnight({.year = 2024}) + i * tables::kDay, {}),
              (i * 37) % 11);
        }
        return rows;
      }());
  const Result result = eval({"odd.csv", "--horizon", "4", "--windows", "3", "--report",
                              "new/folder/page.html", "--plots", "plots"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "written: new/folder/page.html\n")) << result.err;
  const std::string page = contents_of(path("new/folder/page.html"));
  EXPECT_FALSE(has(page, "<script>alert")) << "text from the file is escaped";
  EXPECT_TRUE(has(page, "&lt;script&gt;alert(1)&lt;/script&gt;, 4 days: the best of 3 windows"));
  EXPECT_TRUE(has(page, "the median of 3 windows") && has(page, "the worst of 3 windows"));
  EXPECT_TRUE(has(page, "<table>") && has(page, "class=\"t-bar\"") && has(page, ">Actual<"));
  EXPECT_TRUE(has(page, "default-src &#39;none&#39;") || has(page, "default-src 'none'"));
  for (const char* outside : {"src=", "href=", "@import", "url(", "style="}) {
    EXPECT_FALSE(has(page, outside)) << outside;
  }
  for (const char* label : {"best", "median", "worst"}) {
    const std::string chart = contents_of(path(fmt::format("plots/odd-{}.svg", label)));
    EXPECT_TRUE(has(chart, "<svg") && has(chart, label) && has(chart, "t-actual")) << label;
    EXPECT_FALSE(has(chart, "<script")) << label;
  }
}

TEST_F(EvalTest, ChartsWithoutDatesNumberTheStepsOfTheSeries) {
  write_series("many.jsonl", 1, 300);
  const Result result = eval({"many.jsonl", "--horizon", "4", "--plots", "plots"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string chart = contents_of(path("plots/many-only.svg"));
  EXPECT_TRUE(has(chart, "many s0, 4 steps: the only window")) << chart.substr(0, 400);
  EXPECT_TRUE(has(chart, "Forecast after step 296"));
}

TEST_F(EvalTest, TheSameBytesForAnyNumberOfThreads) {
  const std::vector<std::string> words = {"in.csv", "--horizon", "40", "--windows", "1"};
  const auto figures = [&](const char* threads) {
    std::vector<std::string> more = words;
    more.insert(more.end(), {"--threads", threads, "--json", "-"});
    const Result result = eval(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out.substr(result.out.find("\"horizon\""));  // behind the engine block
  };
  EXPECT_EQ(figures("1"), figures("2"));
}

TEST_F(EvalTest, StandardInputAndMissingValues) {
  std::string text = wide_csv(60);
  const std::size_t row = text.find("2024-02-10");
  text.replace(row, text.find('\n', row) - row, "2024-02-10,,");
  const Result result = eval({"-", "--horizon", "20", "--json", "-", "--missing", "mask"}, text);
  const io::Json json = json_of(result);
  const io::Json& dataset = at(json, "datasets").array.at(0);
  EXPECT_EQ(at(dataset, "name").string, "standard input");
  EXPECT_EQ(at(dataset, "steps").integer, 38) << "two actual values are missing";
}

TEST_F(EvalTest, AFolderStandsForItsFiles) {
  std::filesystem::create_directory(path("data"));
  file("data/b.csv", wide_csv(60));
  file("data/a.csv", wide_csv(50));
  file("data/notes.txt", "no series");
  const io::Json json = answer({"data", "in.csv", "--horizon", "5"});
  std::vector<std::string> names;
  for (const io::Json& item : at(json, "datasets").array) names.push_back(at(item, "name").string);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "in"}));
  std::filesystem::create_directory(path("empty"));
  refuse(3, {"empty", "no .csv or .jsonl file"}, {"empty", "--horizon", "5"});
}

TEST_F(EvalTest, ProgressIsShownWhereAskedFor) {
  const Result result = eval({"in.csv", "--horizon", "5", "--progress"});
  EXPECT_TRUE(has(result.err, "eval in: 100 %, 2 of 2 windows")) << result.err;
  EXPECT_FALSE(has(eval({"in.csv", "--horizon", "5"}).err, "%"));
}

TEST_F(EvalTest, InterruptLeavesTheOldFiles) {
  file("out.json", "old");
  write_series("many.jsonl", 200, 400);
  const Running running = start(words_for({"many.jsonl", "--horizon", "300", "--samples", "2000",
                                           "--json", "out.json", "--report", "page.html"}));
  EXPECT_TRUE(testing::eventually([&] { return has(running.err_so_far(), "untrained"); }));
  usleep(50'000);  // somewhere in the work, which takes minutes
  kill(running.pid(), SIGINT);
  const Result result = running.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(error_line(result), "") << result.err;
  EXPECT_EQ(contents_of(path("out.json")), "old");
  EXPECT_FALSE(std::filesystem::exists(path("page.html")));
}

// Ten times the series and windows take the memory of their data, not of their forecasts: those of
// 2500 windows would be 50 MB.
TEST_F(EvalTest, MemoryDoesNotGrowWithTheWindows) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  const auto peak_mb = [&](int count) {
    write_series("many.jsonl", count, 1300);
    const Running running =
        start(words_for({"many.jsonl", "--horizon", "240", "--windows", "5", "--context", "64",
                         "--samples", "2", "--report", "page.html", "--json", "out.json"}));
    int status = 0;
    struct rusage usage{};
    wait4(running.pid(), &status, 0, &usage);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << running.err_so_far();
    return static_cast<double>(usage.ru_maxrss) / 1024;
  };
  const double few = peak_mb(60), many = peak_mb(500);
  EXPECT_LT(many - few, 25) << few << " MB for 60 series, " << many << " MB for 500";
}

}  // namespace
}  // namespace toto::cli
