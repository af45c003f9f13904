// `toto forecast`: what goes in, what is refused, what the answer holds.
#include "cli_fixture.h"

namespace toto::cli {
namespace {

std::vector<double> numbers(const io::Json& array) {
  std::vector<double> values;
  for (const io::Json& value : array.array) values.push_back(value.real);
  return values;
}

class ForecastTest : public CliTest {
 protected:
  void SetUp() override { file("in.csv", wide_csv(60)); }
  // The parsed answer to `toto forecast WORDS --json -`.
  io::Json answer(std::vector<std::string> words, std::string_view input = {}) {
    words.insert(words.begin(), "forecast");
    words.insert(words.end(), {"--json", "-"});
    return json_of(run(words, {}, input));
  }
  static const io::Json& entry(const io::Json& json, std::size_t i = 0) {
    return at(json, "series").array.at(i);
  }
  void refuse(int code, std::initializer_list<std::string_view> fragments,
              std::vector<std::string> more, const std::string& input = "in.csv") {
    std::vector<std::string> words = {"forecast", input};
    words.insert(words.end(), more.begin(), more.end());
    expect_refusal(code, fragments, words);
  }
};

TEST_F(ForecastTest, TableByDefault) {
  const Result result = run({"forecast", data("AAPL.csv"), "--horizon", "5"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "AAPL close: 5 steps after 1254 values")) << result.out;
  EXPECT_TRUE(has(result.out, "2026-08-06")) << result.out;
  EXPECT_FALSE(has(result.out + result.err, "untrained")) << result.out << result.err;
  EXPECT_TRUE(
      has(result.err,
          "AAPL.csv: 1254 daily bars (business days), 2021-08-06 to 2026-08-05; forecasting close"))
      << result.err;
  EXPECT_EQ(folder_.num_entries(), 1u) << "nothing but the input";
}

TEST_F(ForecastTest, JsonHoldsTheWholeContract) {
  const io::Json json = answer({"in.csv", "--horizon", "20"});
  EXPECT_EQ(keys_of(json), (std::vector<std::string>{"engine", "horizon", "series", "timings_ms"}));
  const io::Json& engine = at(json, "engine");
  EXPECT_EQ(keys_of(engine), (std::vector<std::string>{
                                 "version", "model", "trained", "weights_sha256", "config_sha256",
                                 "mode", "dtype", "isa", "threads", "seed", "replans"}));
  EXPECT_EQ(at(engine, "trained").kind, io::Json::Kind::boolean);
  EXPECT_TRUE(at(engine, "trained").boolean);
  EXPECT_EQ(at(engine, "weights_sha256").string.size(), 64u);
  EXPECT_EQ(at(engine, "config_sha256").string.size(), 64u);
  EXPECT_EQ(at(json, "horizon").integer, 20);
  EXPECT_EQ(keys_of(at(json, "timings_ms")),
            (std::vector<std::string>{"load", "prefill", "decode", "total"}));
  ASSERT_EQ(at(json, "series").array.size(), 2u);
  EXPECT_EQ(at(entry(json, 1), "id").string, "b");
  const io::Json& first = entry(json);
  EXPECT_EQ(keys_of(first),
            (std::vector<std::string>{"id", "context_length", "exact_steps", "paths", "scale",
                                      "start", "timestamps", "mean", "median", "quantiles"}));
  EXPECT_EQ(at(first, "id").string, "a");
  EXPECT_EQ(at(first, "start").string, at(first, "timestamps").array.at(0).string);
  EXPECT_EQ(at(first, "mean").array.size(), 20u);
  EXPECT_EQ(at(first, "median").array.size(), 20u);
  EXPECT_EQ(
      keys_of(at(first, "quantiles")),
      (std::vector<std::string>{"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"}));
  const io::Json& quantiles = at(first, "quantiles");
  for (std::size_t step = 0; step < 20; ++step) {
    EXPECT_LE(at(quantiles, "0.1").array[step].real, at(quantiles, "0.5").array[step].real);
    EXPECT_LE(at(quantiles, "0.5").array[step].real, at(quantiles, "0.9").array[step].real);
  }
  EXPECT_EQ(numbers(at(quantiles, "0.5")), numbers(at(first, "median")));
}

TEST_F(ForecastTest, StepsBeyondTheExactOnesAreAveragesOfPaths) {
  const auto asked = [&](std::vector<std::string> more, const Environment& environment = {}) {
    std::vector<std::string> words = {"forecast", "in.csv", "--json", "-"};
    if (more.empty() || more[0] != "--horizon") words.insert(words.end(), {"--horizon", "30"});
    words.insert(words.end(), more.begin(), more.end());
    return json_of(run(words, environment));
  };
  const auto about = [&](const io::Json& json) {
    const io::Json& paths = at(entry(json), "paths");
    return std::pair(at(entry(json), "exact_steps").integer,
                     paths.kind == io::Json::Kind::null ? -1 : paths.integer);
  };
  const auto late = [&](const io::Json& json) {
    return numbers(at(at(entry(json), "quantiles"), "0.1"))[28];
  };
  const io::Json usual = asked({});
  EXPECT_EQ(about(usual), std::pair(std::int64_t{24}, std::int64_t{256}));
  EXPECT_EQ(about(asked({"--horizon", "20"})), std::pair(std::int64_t{20}, std::int64_t{-1}));
  EXPECT_EQ(about(asked({"--samples", "20"})), std::pair(std::int64_t{0}, std::int64_t{-1}));
  EXPECT_EQ(about(asked({"--decode", "mean"})), std::pair(std::int64_t{30}, std::int64_t{-1}));
  const io::Json many = asked({"--paths", "700"});
  EXPECT_EQ(about(many), std::pair(std::int64_t{24}, std::int64_t{700}));
  EXPECT_NE(late(many), late(usual));
  // A flag wins over the variable, which is a default for samples.
  const Environment variable = {{"TOTO_NUM_SAMPLES", "20"}};
  EXPECT_EQ(about(asked({}, variable)).first, 0);
  EXPECT_EQ(late(asked({"--paths", "700"}, variable)), late(many));
  refuse(2, {"--paths is 9 and --samples is 8", "expected one of them"},
         {"--paths", "9", "--samples", "8"});
  refuse(2, {"--paths is 9 but --decode mean follows one path"},
         {"--paths", "9", "--decode", "mean"});
  for (const char* paths : {"0", "-5", "1000001", "x"}) {
    refuse(2, {"--paths", "from 1 to 1000000"}, {"--paths", paths});
  }
}

TEST_F(ForecastTest, SmallSeriesAreScaledUnlessAskedOtherwise) {
  // A rate that moves by 0.001: a deviation of 0.0008, 4096 times less than 12 x 0.316.
  std::string text = "date,rate,price\n";
  for (int i = 0; i < 60; ++i) {
    text += fmt::format(
        "{},{},{}\n", tables::format_time(tables::midnight({.year = 2024}) + i * tables::kDay, {}),
        1.08 + 0.001 * (i % 3), 100 + 10 * (i % 3));
  }
  file("rates.csv", text);
  const io::Json automatic = answer({"rates.csv", "--horizon", "30"});
  const io::Json one = answer({"rates.csv", "--horizon", "30", "--scale", "1"});
  EXPECT_EQ(at(entry(automatic), "scale").real, 8192);
  EXPECT_EQ(at(entry(automatic, 1), "scale").real, 1);
  EXPECT_EQ(at(entry(one), "scale").real, 1);
  const auto level = [](const io::Json& series, const char* name) {
    return numbers(at(at(series, "quantiles"), name));
  };
  const auto width = [&](const io::Json& series) {
    return level(series, "0.9")[5] - level(series, "0.1")[5];
  };
  EXPECT_GT(width(entry(one)), 20 * width(entry(automatic)));
  EXPECT_EQ(level(entry(one, 1), "0.9"), level(entry(automatic, 1), "0.9")) << "the same bits";
  const io::Json fixed = answer({"rates.csv", "--horizon", "30", "--scale", "8192"});
  EXPECT_EQ(level(entry(fixed), "0.9"), level(entry(automatic), "0.9"));

  for (const char* scale : {"0", "-1", "inf", "nan", "much", ""}) {
    refuse(2, {"--scale", "expected auto, or a finite number above 0"}, {"--scale", scale});
  }
  refuse(3, {"out of float32", "series \"a\""}, {"--scale", "1e38"});
}

TEST_F(ForecastTest, LimitsAreRefusedBeforeAnyWork) {
  for (const char* horizon : {"0", "-1", "1000000000", "100001", "1.5", "abc", ""}) {
    refuse(2, {"--horizon", "from 1 to 100000"}, {"--horizon", horizon});
  }
  for (const char* samples : {"0", "-5", "1000000000", "x"}) {
    refuse(2, {"--samples", "from 1 to 1000000"}, {"--samples", samples});
  }
  for (const char* level : {"0", "1", "nan", "1.5", "-0.1", "0.5x", "inf"}) {
    refuse(2, {"--quantiles", "strictly between 0 and 1"}, {"--quantiles", level});
  }
  refuse(2, {"--quantiles has 0.5 twice"}, {"--quantiles", "0.5,0.50"});
  refuse(2, {"--quantiles", "empty parts"}, {"--quantiles", "0.1,,0.2"});
  refuse(2, {"--context"}, {"--context", "0"});
  refuse(2, {"--decode", "sample, mean"}, {"--decode", "beam"});
  refuse(2, {"--missing", "ffill, linear, mask"}, {"--missing", "zero"});
  refuse(2, {"--point", "percentage"}, {"--point", "quantile_200"});
  refuse(2, {"--format", "ohlcv"}, {"--format", "parquet"});
  refuse(2, {"--freq", "15min"}, {"--freq", "fortnight"});
  refuse(2, {"--emit", "samples"}, {"--emit", "everything"});
  refuse(2, {"--emit samples", "--decode mean"}, {"--emit", "samples", "--decode", "mean"});
  refuse(2, {"\"out.txt\"", ".json, .jsonl or .csv"}, {"--output", "out.txt"});
  refuse(2, {"no extension"}, {"--output", "out"});
  refuse(2, {"\"out.png\"", ".svg or .html"}, {"--plot", "out.png"});
  // All of this is said even if there is no input to read.
  refuse(2, {"--horizon"}, {"--horizon", "0"}, "absent.csv");
  refuse(3, {"absent.csv"}, {}, "absent.csv");
}

TEST_F(ForecastTest, AnAnswerThatDoesNotFitIsRefused) {
  file(
      "many.csv", "unique_id,ds,y\n" + [] {
        std::string rows;
        for (int i = 0; i < 2000; ++i) rows += "s" + std::to_string(i) + ",1,5\n";
        return rows;
      }());
  const Result result = run({"forecast", "many.csv", "--horizon", "100000", "--samples", "1000000",
                             "--emit", "samples", "--output", "out.json"});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_TRUE(has(error_line(result), "MB are free")) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("out.json")));
}

TEST_F(ForecastTest, ColumnsMustBeThere) {
  refuse(2, {"in.csv", "\"nope\"", "\"a\", \"b\""}, {"--columns", "a,nope"});
  refuse(2, {"has no column \"clsoe\"", "; did you mean close?"}, {"--columns", "clsoe"},
         data("AAPL.csv"));
  const io::Json json = answer({"in.csv", "--columns", "b", "--horizon", "2"});
  ASSERT_EQ(at(json, "series").array.size(), 1u);
  EXPECT_EQ(at(entry(json), "id").string, "b");
}

TEST_F(ForecastTest, BadFilesAreRefusedWithFileAndLine) {
  file("bad.csv", "date,a\n2024-01-01,1\n2024-01-02,oops\n");
  refuse(3, {"bad.csv: line 3", "oops"}, {}, "bad.csv");
  file("empty.csv", "");
  refuse(3, {"empty.csv"}, {}, "empty.csv");
  file("twice.csv", "date,a\n2024-01-01,1\n2024-01-01,2\n");
  refuse(3, {"twice.csv: line 3"}, {}, "twice.csv");
  refuse(3, {"bad.csv: line 3"}, {}, folder_.path());
}

TEST_F(ForecastTest, ByteOrderMarkCrlfAndStandardInput) {
  std::string windows = "\xEF\xBB\xBF";
  for (const char c : wide_csv(60)) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  file("windows.csv", windows);
  const io::Json expected = answer({"in.csv", "--horizon", "4"});
  const io::Json crlf = answer({"windows.csv", "--horizon", "4"});
  const io::Json piped = answer({"-", "--horizon", "4"}, wide_csv(60));
  for (const io::Json* json : {&crlf, &piped}) {
    EXPECT_EQ(at(entry(*json), "id").string, "a");
    EXPECT_EQ(numbers(at(entry(*json), "mean")), numbers(at(entry(expected), "mean")));
  }
  EXPECT_TRUE(has(run({"forecast", "-"}, {}, wide_csv(60)).err,
                  "standard input: 2 daily series of 60 points, 2024-01-01 to 2024-02-29"));
}

TEST_F(ForecastTest, JsonLinesAndLongFiles) {
  const io::Json lines =
      answer({"-", "--horizon", "3", "--freq", "D"},
             "{\"start\": \"2024-01-01\", \"target\": [1, 2, 3, 4], \"item_id\": \"x\"}\n");
  EXPECT_EQ(at(entry(lines), "id").string, "x");
  EXPECT_EQ(at(entry(lines), "start").string, "2024-01-05");
  const io::Json longs = answer({data("m4_monthly.csv"), "--horizon", "3"});
  EXPECT_EQ(at(longs, "series").array.size(), 6u);
  EXPECT_EQ(at(entry(longs), "id").string, "M6851");
  // A kind that was named is not guessed at.
  refuse(3, {"in.csv"}, {"--format", "jsonl"});
}

TEST_F(ForecastTest, ContextAndMissingValues) {
  EXPECT_EQ(
      at(entry(answer({"in.csv", "--context", "17", "--horizon", "2"})), "context_length").integer,
      17);
  EXPECT_EQ(at(entry(answer({"in.csv", "--context", "4000", "--horizon", "2"})), "context_length")
                .integer,
            60);
  file("gaps.csv",
       "date,a\n2024-01-01,\n2024-01-02,1\n2024-01-03,NA\n2024-01-04,5\n2024-01-06,7\n"
       "2024-01-07,9\n2024-01-08,8\n");
  const Result result = run({"forecast", "gaps.csv", "--horizon", "2", "--json", "-"});
  EXPECT_TRUE(has(result.err, "warning: gaps.csv: leading missing values are dropped"))
      << result.err;
  EXPECT_TRUE(has(result.err, "absent timestamps are inserted")) << result.err;
  const auto mean = [&](const char* rule) {
    return numbers(at(entry(answer({"gaps.csv", "--horizon", "2", "--missing", rule})), "mean"));
  };
  EXPECT_EQ(numbers(at(entry(json_of(result)), "mean")), mean("ffill"));
  EXPECT_NE(mean("ffill"), mean("linear"));
  EXPECT_NE(mean("ffill"), mean("mask"));
}

TEST_F(ForecastTest, SamplesAreReproducible) {
  const auto samples = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"in.csv", "--horizon", "20",     "--samples",
                                      "6",      "--emit",    "samples"};
    words.insert(words.end(), more.begin(), more.end());
    const io::Json json = answer(words);
    std::vector<std::vector<double>> paths;
    for (const io::Json& path : at(entry(json), "samples").array) paths.push_back(numbers(path));
    return paths;
  };
  const auto first = samples({});
  ASSERT_EQ(first.size(), 6u);
  for (const std::vector<double>& path : first) EXPECT_EQ(path.size(), 20u);
  EXPECT_EQ(samples({}), first);
  EXPECT_NE(samples({"--seed", "1"}), first);
  EXPECT_NE(samples({"--independent-streams"}), first);
  // A series alone and in a file draws the same.
  EXPECT_EQ(samples({"--columns", "a"}), first);
  // The mean of few paths is their mean.
  const io::Json json = answer({"in.csv", "--horizon", "20", "--samples", "6"});
  double sum = 0;
  for (const auto& path : first) sum += path[19];
  EXPECT_NEAR(at(entry(json), "mean").array[19].real, sum / 6, 1e-3);
}

TEST_F(ForecastTest, DecodeMeanDrawsNothing) {
  const io::Json a = answer({"in.csv", "--horizon", "40", "--decode", "mean", "--seed", "1"});
  const io::Json b = answer({"in.csv", "--horizon", "40", "--decode", "mean", "--seed", "2"});
  EXPECT_EQ(numbers(at(entry(a), "mean")), numbers(at(entry(b), "mean")));
  EXPECT_EQ(keys_of(at(entry(a), "quantiles")).size(), 9u);
}

TEST_F(ForecastTest, PointIsReportedWhenAskedFor) {
  const io::Json json = answer({"in.csv", "--horizon", "3", "--point", "quantile_0.9"});
  EXPECT_EQ(numbers(at(entry(json), "point")), numbers(at(at(entry(json), "quantiles"), "0.9")));
  EXPECT_EQ(entry(answer({"in.csv", "--horizon", "3"})).find("point"), nullptr);
  // The table has it under the name it was asked for by.
  const Result table = run({"forecast", "in.csv", "--horizon", "3", "--point", "trimmed_mean_10"});
  EXPECT_TRUE(has(table.out, "mean  trimmed_mean_10")) << table.out;
  EXPECT_FALSE(has(table.err, "does not hold")) << table.err;
  const std::string mean = run({"forecast", "in.csv", "--horizon", "3", "--point", "mean"}).out;
  EXPECT_EQ(mean, run({"forecast", "in.csv", "--horizon", "3"}).out) << "it has a column already";
  EXPECT_TRUE(has(run({"forecast", "in.csv", "--point", "median", "--output", "out.csv"}).err,
                  "warning: CSV does not hold the point"));
}

TEST_F(ForecastTest, QuantilesAreThoseAskedFor) {
  const io::Json plain = answer({"in.csv", "--horizon", "3", "--quantiles", "0.75,0.05"});
  EXPECT_EQ(keys_of(at(entry(plain), "quantiles")), (std::vector<std::string>{"0.75", "0.05"}));
  // A chart needs others; they are not reported and change nothing.
  const io::Json plotted =
      answer({"in.csv", "--horizon", "3", "--quantiles", "0.75,0.05", "--plot", "p.html"});
  EXPECT_EQ(keys_of(at(entry(plotted), "quantiles")), (std::vector<std::string>{"0.75", "0.05"}));
  EXPECT_EQ(numbers(at(at(entry(plotted), "quantiles"), "0.05")),
            numbers(at(at(entry(plain), "quantiles"), "0.05")));
}

TEST_F(ForecastTest, VariatesLookAtEachOther) {
  const io::Json alone = answer({"in.csv", "--horizon", "3"});
  const io::Json joined = answer({"in.csv", "--horizon", "3", "--multivariate"});
  ASSERT_EQ(at(joined, "series").array.size(), 2u);
  EXPECT_EQ(at(entry(joined, 0), "id").string, "a");
  EXPECT_EQ(at(entry(joined, 1), "id").string, "b");
  EXPECT_NE(numbers(at(entry(joined), "mean")), numbers(at(entry(alone), "mean")));
}

TEST_F(ForecastTest, KnownFutureIsAnInput) {
  std::string known = "date,b\n", other = "date,b\n";
  const io::Json dates = answer({"in.csv", "--horizon", "40"});
  for (const io::Json& date : at(entry(dates), "timestamps").array) {
    known += date.string + ",100\n";
    other += date.string + ",5\n";
  }
  file("known.csv", known);
  file("other.csv", other);
  const io::Json json = answer({"in.csv", "--horizon", "40", "--known-future", "known.csv"});
  ASSERT_EQ(at(json, "series").array.size(), 1u) << "known variates are not forecast";
  EXPECT_EQ(at(entry(json), "id").string, "a");
  const io::Json changed = answer({"in.csv", "--horizon", "40", "--known-future", "other.csv"});
  EXPECT_NE(numbers(at(entry(changed), "mean")), numbers(at(entry(json), "mean")));
  const io::Json joined =
      answer({"in.csv", "--horizon", "40", "--known-future", "known.csv", "--multivariate"});
  EXPECT_EQ(numbers(at(entry(joined), "mean")), numbers(at(entry(json), "mean")))
      << "with one series to forecast both mean the same";

  refuse(3, {"known.csv", "forecast steps have no row"},
         {"--known-future", "known.csv", "--horizon", "41"});
  refuse(3, {"absent.csv"}, {"--known-future", "absent.csv"});
  file(
      "both.csv", "date,a,b\n" + [&] {
        std::string rows;
        for (const io::Json& date : at(entry(dates), "timestamps").array) {
          rows += date.string + ",1,2\n";
        }
        return rows;
      }());
  // Bad input, and said before the model is looked for.
  refuse(3, {"both.csv", "at least one"},
         {"--known-future", "both.csv", "--horizon", "40", "--model", "absent"});
  expect_refusal(2, {"both -"}, {"forecast", "-", "--known-future", "-"});
}

TEST_F(ForecastTest, KnownColumnsNeedNotBeAskedFor) {
  std::string known = "date,b\n";
  const io::Json dates = answer({"in.csv", "--horizon", "3"});
  for (const io::Json& date : at(entry(dates), "timestamps").array) known += date.string + ",100\n";
  file("known.csv", known);
  const io::Json json =
      answer({"in.csv", "--columns", "a", "--known-future", "known.csv", "--horizon", "3"});
  ASSERT_EQ(at(json, "series").array.size(), 1u);
  EXPECT_EQ(at(entry(json), "id").string, "a");
  EXPECT_EQ(numbers(at(entry(json), "mean")),
            numbers(at(entry(answer({"in.csv", "--known-future", "known.csv", "--horizon", "3"})),
                       "mean")));
  // The close of bars, given their volume; the file may come from a pipe.
  std::string volume = "date,volume\n";
  const io::Json bars = answer({data("AAPL.csv"), "--horizon", "3"});
  for (const io::Json& date : at(entry(bars), "timestamps").array) volume += date.string + ",1e9\n";
  const io::Json close =
      answer({data("AAPL.csv"), "--known-future", "-", "--horizon", "3"}, volume);
  ASSERT_EQ(at(close, "series").array.size(), 1u);
  EXPECT_EQ(at(entry(close), "id").string, "close");
  EXPECT_NE(numbers(at(entry(close), "mean")), numbers(at(entry(bars), "mean")));
}

TEST_F(ForecastTest, VariatesNeedTheSameTimes) {
  file("apart.csv", "unique_id,ds,y\na,1,1\na,2,2\nb,2,1\nb,3,2\n");
  refuse(3, {"apart.csv", "\"b\" has other times than \"a\""},
         {"--multivariate", "--model", "absent"}, "apart.csv");
  EXPECT_EQ(run({"forecast", "apart.csv", "--horizon", "2"}).exit_code, 0);
}

TEST_F(ForecastTest, TimesOutsideTheCalendarAreBadInput) {
  const std::string corpus = TOTO_SOURCE_DIR "/tests/corpus/";
  refuse(3, {"bad_year_before_1.csv: line 4", "in the year -6", "years 1 to 9999"}, {},
         corpus + "csv/bad_year_before_1.csv");
  refuse(3, {"bad_start_year.jsonl: line 2", "in the year -5"}, {},
         corpus + "jsonl/bad_start_year.jsonl");
}

TEST_F(ForecastTest, AbsentWeekdaysAreSaid) {
  const std::string path = TOTO_SOURCE_DIR "/tests/corpus/csv/ok_weekdays_absent.csv";
  const Result closed = run({"forecast", path, "--horizon", "2", "--json", "-"});
  EXPECT_TRUE(has(closed.err, "absent weekdays are treated as holidays")) << closed.err;
  EXPECT_EQ(at(entry(json_of(closed)), "context_length").integer, 44);
  const Result inserted = run({"forecast", path, "--horizon", "2", "--freq", "B", "--json", "-"});
  EXPECT_TRUE(has(inserted.err, "absent timestamps are inserted as missing: 8")) << inserted.err;
  EXPECT_EQ(at(entry(json_of(inserted)), "context_length").integer, 52);
}

TEST_F(ForecastTest, ManySeriesAreForecastInChunks) {
  std::string text = "unique_id,ds,y\n";
  for (int i = 0; i < 600; ++i) {
    for (int t = 1; t <= 4; ++t) {
      text += "s" + std::to_string(i) + "," + std::to_string(t) + "," + std::to_string(i % 7 + t) +
              "\n";
    }
  }
  file("many.csv", text);
  const io::Json json = answer({"many.csv", "--horizon", "2"});
  ASSERT_EQ(at(json, "series").array.size(), 600u);
  EXPECT_EQ(at(entry(json, 599), "id").string, "s599");
  // 0, 7 and 595 hold the same values, in three different chunks.
  EXPECT_EQ(numbers(at(entry(json, 0), "mean")), numbers(at(entry(json, 7), "mean")));
  EXPECT_EQ(numbers(at(entry(json, 0), "mean")), numbers(at(entry(json, 595), "mean")));
  const Result result = run({"forecast", "many.csv", "--horizon", "2", "--progress"});
  EXPECT_TRUE(has(result.err, "forecast: 100 %, 600 of 600 series")) << result.err;
  EXPECT_FALSE(has(run({"forecast", "many.csv", "--horizon", "2"}).err, "%"));
}

TEST_F(ForecastTest, InterruptLeavesTheOldFile) {
  file("out.json", "old");
  ASSERT_EQ(run({"make-model", "untrained", "--config", "mini"}).exit_code, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Running running = start({"forecast", "in.csv", "--model", "untrained", "--horizon",
                                   "20000", "--samples", "2000", "--output", "out.json"});
    // The model's warning comes right before the work.
    const auto at_work = [&] { return has(running.err_so_far(), "is untrained"); };
    ASSERT_TRUE(testing::eventually(at_work)) << running.err_so_far();
    usleep(50'000);  // somewhere in the work, which takes minutes
    kill(running.pid(), signal);
    const Result result = running.wait();
    EXPECT_EQ(result.exit_code, 130) << signal << " " << result.err;
    EXPECT_NE(error_line(result), "") << result.err;
    EXPECT_EQ(contents_of(path("out.json")), "old");
    EXPECT_EQ(folder_.num_entries(), 3u);
  }
}

}  // namespace
}  // namespace toto::cli
