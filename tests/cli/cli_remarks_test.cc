// What `toto forecast` says besides the answer: files written, a history cut, variates that are
// none, series too small for the model's scale. Once each, on stderr.
#include <pty.h>

#include "cli_fixture.h"

namespace toto::cli {
namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
  return found;
}

class RemarksTest : public CliTest {
 protected:
  void SetUp() override {
    file("in.csv", wide_csv(60));
    ASSERT_EQ(run({"make-model", "untrained", "--config", "mini"}).exit_code, 0);
  }
  Result forecast(const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"forecast", name, "--horizon", "3", "--model", "untrained"};
    words.insert(words.end(), more.begin(), more.end());
    Result result = run(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  }
  // A column of `rows` hours; `value(i)` is the i-th.
  template <typename Value>
  void hourly(std::string_view name, int rows, const Value& value) {
    std::string text = "time,x\n";
    for (int i = 0; i < rows; ++i) {
      const tables::Ticks time = tables::midnight({.year = 2024}) + i * tables::kHour;
      text += fmt::format("{},{}\n", tables::format_time(time, {}), value(i));
    }
    file(name, text);
  }
  // All that a person at a terminal sees, both streams together.
  std::string on_terminal(const std::string& words) {
    int terminal = -1;
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid == 0) {
      if (chdir(folder_.path().c_str()) != 0) _exit(126);
      const std::string line = "exec '" + command_ + "' " + words;
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    std::string seen;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(terminal, buffer, sizeof buffer)) > 0;) {
      seen.append(buffer, static_cast<std::size_t>(got));
    }
    close(terminal);
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << seen;
    return seen;
  }
};

TEST_F(RemarksTest, FilesWrittenAreNamed) {
  const Result result =
      forecast("in.csv", {"--output", "new/out.csv", "--json", "out.json", "--plot", "p.svg"});
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(has(result.err, "\nwritten: new/out.csv (2 series, 3 steps)\n")) << result.err;
  EXPECT_TRUE(has(result.err, "\nwritten: out.json (2 series, 3 steps)\n")) << result.err;
  EXPECT_TRUE(has(result.err, "\nwritten: p.svg (1 of 2 series, 3 steps)\n")) << result.err;
  EXPECT_TRUE(has(run({"forecast", "in.csv", "--plot", "p.html", "--horizon", "1"}).err,
                  "written: p.html (2 series, 1 step)\n"));
  EXPECT_FALSE(has(forecast("in.csv", {"--json", "-"}).err, "written"));
  const Result failed = run({"forecast", "in.csv", "--model", "absent", "--output", "out.csv"});
  EXPECT_FALSE(has(failed.err, "written")) << failed.err;
}

TEST_F(RemarksTest, AHistoryCutByDefaultIsMentionedOnce) {
  hourly("long.csv", 5000, [](int i) { return i % 24; });
  const std::string note =
      "note: long.csv: the latest 4096 of 5000 values are used of the series \"x\"; --context N "
      "uses more\n";
  EXPECT_EQ(count(forecast("long.csv").err, note), 1U);
  EXPECT_FALSE(has(forecast("long.csv", {"--context", "100"}).err, "note:")) << "asked for";
  EXPECT_FALSE(has(forecast("long.csv", {"--context", "5000"}).err, "note:"));
  EXPECT_FALSE(has(forecast("in.csv").err, "note:"));
}

TEST_F(RemarksTest, BarsAreVariatesOfOneSeries) {
  const Result joined = forecast(data("AAPL.csv"), {"--multivariate", "--json", "-"});
  EXPECT_TRUE(has(joined.err, "forecasting open, high, low, close")) << joined.err;
  EXPECT_FALSE(has(joined.err, "changes nothing"));
  const io::Json json = json_of(joined);
  std::vector<std::string> ids;
  for (const io::Json& series : at(json, "series").array) ids.push_back(at(series, "id").string);
  EXPECT_EQ(ids, (std::vector<std::string>{"open", "high", "low", "close"}));
  // They look at each other: the close among them is another forecast than the close alone.
  const io::Json alone = json_of(forecast(data("AAPL.csv"), {"--json", "-"}));
  ASSERT_EQ(at(alone, "series").array.size(), 1U);
  EXPECT_NE(at(at(json, "series").array[3], "mean").array[0].real,
            at(at(alone, "series").array[0], "mean").array[0].real);
}

TEST_F(RemarksTest, AVariateAloneIsSaid) {
  const Result one = forecast(data("AAPL.csv"), {"--multivariate", "--columns", "close"});
  EXPECT_TRUE(has(one.err, "warning: --multivariate changes nothing: ")) << one.err;
  EXPECT_TRUE(has(one.err, "AAPL.csv has one series, \"close\"")) << one.err;
  EXPECT_FALSE(has(forecast("in.csv", {"--multivariate"}).err, "changes nothing"));
  EXPECT_FALSE(has(forecast("in.csv").err, "changes nothing"));
}

TEST_F(RemarksTest, SeriesBelowTheModelsScaleAreSaid) {
  // +-0.01: a standard deviation of 0.0101 against sqrt(0.1).
  hourly("returns.csv", 60, [](int i) { return i % 2 == 0 ? 0.01 : -0.01; });
  const Result result = forecast("returns.csv", {"--scale", "1"});
  EXPECT_EQ(count(result.err,
                  "warning: returns.csv: the series \"x\" varies by little (standard deviation "
                  "0.0101), and the model scales no series by less than 0.316: it sees a flat "
                  "line, and bands come out up to 31 times too wide; --scale auto avoids that\n"),
            1U)
      << result.err;
  EXPECT_TRUE(has(forecast("returns.csv", {"--scale", "0.5"}).err,
                  "(standard deviation 0.0101, times the scale 0.5)"));
  EXPECT_FALSE(has(forecast("returns.csv", {"--scale", "100"}).err, "varies by little"));
  EXPECT_FALSE(has(forecast("returns.csv").err, "varies by little")) << "automatic";
  // A rate near 1 that hardly moves is the same to it; only the values it is shown count.
  hourly("rate.csv", 60, [](int i) { return i < 30 ? 90.0 : 1.08 + 0.02 * (i % 3); });
  EXPECT_TRUE(
      has(forecast("rate.csv", {"--context", "20", "--scale", "1"}).err, "varies by little"));
  for (const double scale : {0.0, 1.0, 100.0}) {  // a constant is flat whatever its unit
    hourly("fine.csv", 60, [&](int i) { return 5 + scale * (i % 2); });
    EXPECT_FALSE(has(forecast("fine.csv", {"--scale", "1"}).err, "varies by little")) << scale;
  }
  EXPECT_FALSE(has(forecast("rate.csv", {"--scale", "1"}).err, "varies by little"));
}

TEST_F(RemarksTest, WhereExactnessEndsIsSaid) {
  const std::string sampled =
      "note: steps 1 to 24 are exact, 25 is estimated from 256 simulated paths; --paths 2000 "
      "is smoother\n";
  const std::string narrow =
      "from step 25 on the bands hold only if the means before them come true";
  const auto bundled = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"forecast",
                                      std::string(TOTO_SOURCE_DIR) + "/examples/data/AAPL.csv"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words).err;
  };
  EXPECT_EQ(count(bundled({"--horizon", "25"}), sampled), 1U);
  EXPECT_EQ(count(bundled({"--horizon", "64", "--paths", "2000"}),
                  "25 to 64 are estimated from 2000 simulated paths; --paths 16000 is smoother\n"),
            1U);
  EXPECT_FALSE(has(bundled({"--horizon", "24"}), "simulated paths"));
  EXPECT_FALSE(has(bundled({"--horizon", "25", "--samples", "8"}), "simulated paths"));
  EXPECT_EQ(count(bundled({"--horizon", "25", "--decode", "mean"}), narrow), 1U);
  EXPECT_FALSE(has(bundled({"--horizon", "24", "--decode", "mean"}), narrow));
}

TEST_F(RemarksTest, EvalSaysThatPricesHaveNoWeek) {
  std::string text = "date,price\n";
  for (int i = 0; i < 120; ++i) {  // 2024 began on a Monday
    if (i % 7 >= 5) continue;
    text += fmt::format(
        "{},{}\n", tables::format_time(tables::midnight({.year = 2024}) + i * tables::kDay, {}),
        100 + i % 13);
  }
  file("prices.csv", text);
  const std::vector<std::string> eval = {"eval", "prices.csv", "--horizon",
                                         "3",    "--model",    "untrained"};
  EXPECT_EQ(count(run(eval).err, "for prices use --season 1"), 1U) << run(eval).err;
  std::vector<std::string> told = eval;
  told.insert(told.end(), {"--season", "1"});
  EXPECT_FALSE(has(run(told).err, "--season 1"));
}

TEST_F(RemarksTest, ConstantSeriesAreSaidOnce) {
  hourly("constant.csv", 60, [](int) { return 500.0; });
  const Result one = forecast("constant.csv");
  EXPECT_EQ(count(one.err, "warning: constant.csv: the series \"x\" has always the same value"), 1U)
      << one.err;
  std::string text = "date,a,b\n";
  for (int i = 0; i < 40; ++i) {
    text += tables::format_time(tables::midnight({.year = 2024}) + i * tables::kDay, {}) + ",0,7\n";
  }
  file("two.csv", text);
  const Result two = forecast("two.csv");
  EXPECT_EQ(count(two.err, "always the same value"), 1U) << two.err;
  EXPECT_TRUE(has(two.err, "the series \"a\" and 1 more have")) << two.err;
  EXPECT_FALSE(has(forecast("in.csv").err, "always the same value"));
}

TEST_F(RemarksTest, SeveralSmallSeriesAreOneWarning) {
  std::string text = "date,a,b,c\n";
  for (int i = 0; i < 40; ++i) {
    text +=
        fmt::format("{},{},{},{}\n",
                    tables::format_time(tables::midnight({.year = 2024}) + i * tables::kDay, {}),
                    0.01 * (i % 3), 0.001 * (i % 3), i % 3);
  }
  file("small.csv", text);
  const Result result = forecast("small.csv", {"--scale", "1"});
  EXPECT_EQ(count(result.err, "by little"), 1U) << result.err;
  EXPECT_TRUE(has(result.err, "the series \"b\" and 1 more vary by little")) << result.err;
}

TEST_F(RemarksTest, UntrainedIsSaidOnceOnATerminal) {
  for (const std::string command :
       {"forecast in.csv --horizon 2", "forecast in.csv --horizon 2 --output out.csv",
        "bench --repeat 1 --warmup 0 --context 32 --samples 1", "doctor"}) {
    const std::string seen = on_terminal(command + " --model untrained");
    EXPECT_EQ(count(seen, "is untrained"), 1U) << command << "\n" << seen;
  }
  // Where the table goes elsewhere it says so itself.
  const Result result = forecast("in.csv");
  EXPECT_EQ(count(result.out, "untrained is untrained"), 1U) << result.out;
  EXPECT_EQ(count(result.err, "untrained is untrained"), 1U) << result.err;
}

}  // namespace
}  // namespace toto::cli
