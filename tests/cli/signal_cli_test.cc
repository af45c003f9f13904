// `toto signal`, and what the report shows of it and of a benchmark.
#include <gtest/gtest.h>

#include "backtest_cli_fixture.h"
#include "io/json.h"

namespace toto::cli {
namespace {

TEST_F(BacktestTest, ABenchmarkIsInTheReportOnly) {
  bars("AAA.csv", 150, 1);
  bars("INDEX.csv", 150, 2);
  const Result plain = backtest({"AAA.csv", "--windows", "70", "--output-dir", "plain"});
  const Result with =
      backtest({"AAA.csv", "--windows", "70", "--benchmark", "INDEX.csv", "--output-dir", "with"});
  ASSERT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(written("with", "returns.csv"), written("plain", "returns.csv"));
  EXPECT_TRUE(has(written("with", "report.html"), "Benchmark INDEX"));
  EXPECT_FALSE(has(written("plain", "report.html"), "Benchmark"));
  EXPECT_TRUE(has(written("with", "results.json"), "\"benchmark\": \"INDEX.csv\""));
  EXPECT_TRUE(has(written("plain", "results.json"), "\"benchmark\": null"));
  EXPECT_EQ(backtest({"AAA.csv", "--benchmark", "none.csv"}).exit_code, 3);
  file("two.csv", "symbol,date,open,high,low,close\nA,2024-01-01,1,1,1,1\nB,2024-01-01,1,1,1,1\n");
  const Result two = backtest({"AAA.csv", "--benchmark", "two.csv"});
  EXPECT_EQ(two.exit_code, 3);
  EXPECT_TRUE(has(two.err, "two.csv: has 2 symbols, expected one as the benchmark")) << two.err;
}

// The page opens with the orders that `toto signal` prints.
TEST_F(BacktestTest, TheReportHasTheNextBar) {
  bars("AAA.csv", 120, 1);
  ASSERT_EQ(backtest({"AAA.csv", "--windows", "12", "--output-dir", "out"}).exit_code, 0);
  const std::string report = written("out", "report.html");
  EXPECT_TRUE(has(report, "<h2>Next bar</h2>"));
  EXPECT_TRUE(has(report, "2024-06-17"));
  const Result signal = run({"signal", "AAA.csv", "--windows", "12", "--json", "-"},
                            {{"TOTO_CACHE_DIR", path("cache")}});
  const io::Json tree = io::parse_json(signal.out, "signal");
  for (const auto& [name, strategy] : at(at(at(tree, "symbols"), "AAA"), "strategies").object) {
    EXPECT_TRUE(has(report, at(strategy, "why").string)) << name;
  }
  ASSERT_EQ(
      backtest({"AAA.csv", "--to", "2024-06-14", "--from", "2024-06-03", "--output-dir", "past"})
          .exit_code,
      0);
  EXPECT_FALSE(has(written("past", "report.html"), "<h2>Next bar</h2>"));
}

// ----------------------------------------------------------------------------------------- signal

class SignalTest : public BacktestTest {
 protected:
  Result signal(std::vector<std::string> more) {
    more.insert(more.begin(), "signal");
    return run(more, {{"TOTO_CACHE_DIR", path("cache")}});
  }
};

TEST_F(SignalTest, PrintsWhatEachStrategyOrders) {
  bars("AAA.csv", 120, 1);
  const Result result = signal({"AAA.csv", "--windows", "12"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "AAA, stock: for 2024-06-17, decided after 2024-06-14"))
      << result.out;
  EXPECT_TRUE(has(result.out, "probability of a higher close")) << result.out;
  EXPECT_TRUE(has(result.out, "maxdiff-alwayson")) << result.out;
  EXPECT_TRUE(has(result.out, "market at the open")) << result.out;
  EXPECT_TRUE(has(result.out, "The close is predicted at")) << "no line is cut: " << result.out;
  const Result json = signal({"AAA.csv", "--windows", "12", "--json", "-"});
  const io::Json tree = io::parse_json(json.out, "signal");
  EXPECT_EQ(at(at(at(tree, "symbols"), "AAA"), "strategies").object.size(), 9u);
  EXPECT_EQ(at(tree, "warnings").array.size(), 0u);
  const Result some = signal({"AAA.csv", "--strategies", "simple", "--windows", "12"});
  EXPECT_TRUE(has(some.out, "simple"));
  EXPECT_FALSE(has(some.out, "maxdiff"));
}

// The file grows by a bar: the backtest of its last bar decides as the signal did.
TEST_F(SignalTest, ABacktestWithTheBarAppendedHasTheSameForecasts) {
  bars("AAA.csv", 121, 1);
  const Result later = backtest({"AAA.csv", "--windows", "12", "--output-dir", "out"});
  ASSERT_EQ(later.exit_code, 0) << later.err;
  const std::string text = contents_of(path("AAA.csv"));
  file("AAA.csv", text.substr(0, text.rfind('\n', text.size() - 2) + 1));
  const Result early = signal({"AAA.csv", "--windows", "12", "--json", "-"});
  ASSERT_EQ(early.exit_code, 0) << early.err;
  const io::Json tree = io::parse_json(early.out, "signal");
  const io::Json& symbol = at(at(tree, "symbols"), "AAA");
  const std::string forecasts = written("out", "forecasts.csv");
  for (const char* target : {"close", "high", "low"}) {
    const io::Json& band = at(at(symbol, "forecast"), target);
    const std::string row = fmt::format("AAA,{},{},{},{},{},", at(symbol, "last_time").string,
                                        at(symbol, "target_time").string, target,
                                        at(band, "point").real, at(band, "0.1").real);
    EXPECT_TRUE(has(forecasts, row)) << row;
  }
}

TEST_F(SignalTest, BadRequestsAndBadDataAreRefusedAsInTheBacktest) {
  bars("AAA.csv", 120, 1);
  EXPECT_EQ(signal({}).exit_code, 2);
  EXPECT_TRUE(has(signal({}).err, "toto signal --help")) << signal({}).err;
  EXPECT_EQ(signal({"AAA.csv", "--to", "2024-03-01"}).exit_code, 2);
  EXPECT_EQ(signal({"AAA.csv", "--no-lag-test"}).exit_code, 2);
  EXPECT_EQ(signal({"AAA.csv", "--strategies", "luck"}).exit_code, 2);
  EXPECT_EQ(signal({"none.csv"}).exit_code, 3);
  file("bad.csv", "date,open,high,low,close\n2024-01-01,1,1,1,x\n");
  const Result bad = signal({"AAA.csv", "bad.csv"});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_TRUE(has(bad.err, "bad.csv: line 2")) << bad.err;
  EXPECT_EQ(bad.out, "");
  bars("short.csv", 20, 2);
  const Result some = signal({"AAA.csv", "short.csv", "--windows", "12"});
  EXPECT_EQ(some.exit_code, 3);
  EXPECT_TRUE(has(some.err, "short has too little history")) << some.err;
  EXPECT_TRUE(has(some.out, "AAA, stock")) << some.out;
  file("run.conf", "windows = 12\nlag_test = off\nstrategies = simple\n");
  const Result settings = signal({"AAA.csv", "--settings", "run.conf"});
  EXPECT_EQ(settings.exit_code, 0) << settings.err;
  EXPECT_FALSE(has(settings.out, "maxdiff")) << settings.out;
}

}  // namespace
}  // namespace toto::cli
