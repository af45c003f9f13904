// `toto backtest` as a user meets it: files, exit codes, repeatable runs, the gate.
#include "backtest_cli_fixture.h"

#include <filesystem>
#include <fstream>
#include <random>

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

TEST_F(BacktestTest, WritesEveryFileAndSaysWhatItFound) {
  bars("AAA.csv", 120, 1);
  const Result result = backtest({"AAA.csv", "--windows", "12", "--output-dir", "out"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "buy-hold")) << result.out;
  EXPECT_TRUE(has(result.out, "No lookahead: 4 of 12 decisions")) << result.out;
  const io::Json json = io::parse_json(written("out", "results.json"), "results.json");
  EXPECT_EQ(at(json, "schema_version").integer, 1);
  EXPECT_EQ(at(at(json, "settings"), "windows").integer, 12);
  const io::Json& symbol = at(at(json, "symbols"), "AAA");
  EXPECT_EQ(at(symbol, "asset").string, "stock");
  EXPECT_EQ(at(symbol, "strategies").object.size(), 9u);
  EXPECT_EQ(at(symbol, "strategies").find("persistence"), nullptr);
  for (const char* name : {"close", "low", "high", "open"}) {
    EXPECT_EQ(at(at(symbol, "forecast"), name).object.size(), 9u) << name;
  }
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(written("out", "forecasts.csv")), 1 + 12 * 4);
  EXPECT_TRUE(has(written("out", "forecasts.csv"),
                  "symbol,decision_time,target_time,target,point,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,"
                  "0.9,actual\n"));
  EXPECT_EQ(lines(written("out", "returns.csv")), 1 + 12);
  EXPECT_TRUE(has(written("out", "returns.csv"), "date,AAA:buy-hold,AAA:simple,"));
  EXPECT_TRUE(has(written("out", "trades.csv"),
                  "symbol,strategy,side,entry_time,entry_price,exit_time,exit_price,fee,return\n"));
  const std::string report = written("out", "report.html");
  for (const char* part :
       {"In plain words", "buy-hold", "persistence", "Equity", "Drawdown", "Returns by month",
        "Next bar", "Price and trades", "Largest drawdowns", "Long against short", "Cost sweep",
        "Decision lag", "Coverage by quantile", "Worst trades", "No lookahead"}) {
    EXPECT_TRUE(has(report, part)) << part;
  }
  EXPECT_TRUE(has(result.out, "AAA: stock (no bar on a weekend), 252 bars per year")) << result.out;
  EXPECT_TRUE(has(report, "AAA: stock (no bar on a weekend), 252 bars per year"));
}

TEST_F(BacktestTest, TheReportAsksForNothingFromAnywhere) {
  bars("AAA.csv", 120, 1);
  ASSERT_EQ(backtest({"AAA.csv", "--windows", "30"}).exit_code, 0);
  std::string report = written("backtest-out", "report.html");
  EXPECT_TRUE(has(report, "default-src 'none'"));
  // The one address is the name of the SVG namespace.
  constexpr std::string_view kNamespace = "http://www.w3.org/2000/svg";
  for (std::size_t at = 0; (at = report.find(kNamespace)) != std::string::npos;) {
    report.erase(at, kNamespace.size());
  }
  for (const char* part : {"http:", "https:", "://", "src=", "href=", "@import", "url(", "fetch(",
                           "XMLHttpRequest", "WebSocket", "<link", "<iframe"}) {
    EXPECT_FALSE(has(report, part)) << part;
  }
}

TEST_F(BacktestTest, SeveralSymbolsAreSummedUp) {
  bars("AAA.csv", 120, 1);
  bars("BBB.csv", 120, 2);
  const Result result = backtest({"AAA.csv", "BBB.csv", "--windows", "10", "--no-lag-test"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "AAA, BBB: stock (no bar on a weekend), 252 bars per year"))
      << result.out;
  EXPECT_TRUE(has(result.out, "2 symbols")) << result.out;
  EXPECT_TRUE(has(result.out, "portfolio")) << result.out;
  const io::Json json = io::parse_json(written("backtest-out", "results.json"), "results.json");
  EXPECT_EQ(at(at(at(json, "symbols"), "AAA"), "bars_per_year").integer, 252);
  const io::Json& universe = at(json, "universe");
  EXPECT_EQ(at(universe, "symbols").integer, 2);
  const io::Json& hold = at(at(universe, "strategies"), "buy-hold");
  const auto total = [&](const char* name) {
    return at(at(at(at(at(json, "symbols"), name), "strategies"), "buy-hold"), "total_return").real;
  };
  const double mean = (total("AAA") + total("BBB")) / 2;
  EXPECT_NEAR(at(hold, "median_total_return").real, mean, 1e-12);
  EXPECT_NEAR(at(at(hold, "portfolio"), "total_return").real, mean, 1e-12);
  EXPECT_EQ(at(at(hold, "best"), "symbol").string, total("AAA") > total("BBB") ? "AAA" : "BBB");
  EXPECT_TRUE(has(written("backtest-out", "report.html"), "All symbols together"));
}

TEST_F(BacktestTest, AnnualFiguresCanRestOnAnotherNumberOfBars) {
  bars("AAA.csv", 120, 1);
  const auto figures = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"AAA.csv", "--windows", "10", "--no-lag-test", "--json", "-"});
    const io::Json json = json_of(backtest(more));
    return at(at(at(at(json, "symbols"), "AAA"), "strategies"), "buy-hold");
  };
  const io::Json daily = figures({}), weekly = figures({"--bars-per-year", "63"});
  EXPECT_EQ(at(daily, "total_return").real, at(weekly, "total_return").real);
  EXPECT_NEAR(at(daily, "volatility").real, 2 * at(weekly, "volatility").real, 1e-12);
  file("run.conf", "bars_per_year = 63\n");
  EXPECT_EQ(at(figures({"--settings", "run.conf"}), "volatility").real,
            at(weekly, "volatility").real);
  expect_refusal(2, {"--bars-per-year", "\"0\""}, {"backtest", "AAA.csv", "--bars-per-year", "0"});
}

TEST_F(BacktestTest, WarnsOfFillsThatCannotHappen) {
  bars("AAA.csv", 120, 1);
  const Result close = backtest({"AAA.csv", "--windows", "6", "--no-lag-test", "--fill", "close"});
  EXPECT_TRUE(has(close.err, "warning: with --fill close and a decision lag of 1")) << close.err;
  EXPECT_TRUE(
      has(written("backtest-out", "report.html"), "Not possible in practice: with --fill close"));
  const Result later = backtest(
      {"AAA.csv", "--windows", "6", "--no-lag-test", "--fill", "close", "--decision-lag", "2"});
  EXPECT_FALSE(has(later.err, "--fill close")) << later.err;
}

TEST_F(BacktestTest, ARunRepeatedOnOtherDataSaysSo) {
  bars("AAA.csv", 120, 1);
  const std::string original = contents_of(path("AAA.csv"));
  ASSERT_EQ(
      backtest({"AAA.csv", "--windows", "6", "--no-lag-test", "--output-dir", "one"}).exit_code, 0);
  const io::Json results = io::parse_json(written("one", "results.json"), "results.json");
  const io::Json& data = at(results, "data").array.at(0);
  EXPECT_EQ(at(data, "file").string, "AAA.csv");
  EXPECT_EQ(at(data, "rows").integer, 120);
  EXPECT_EQ(at(data, "first").string, "2024-01-01");
  EXPECT_EQ(at(data, "sha256").string.size(), 64u);
  const std::vector<std::string> again = {"--from-results", "one/results.json", "--output-dir",
                                          "two"};
  EXPECT_FALSE(has(backtest(again).err, "warning")) << "the same file";
  file("AAA.csv", original + "2024-06-17,100,101,99,100,5\n");
  const Result appended = backtest(again);
  EXPECT_EQ(appended.exit_code, 0) << appended.err;
  EXPECT_TRUE(has(appended.err,
                  "warning: AAA.csv: is not the file one/results.json was made from: "
                  "120 rows, 2024-01-01 to 2024-06-14 then, 121 rows"))
      << appended.err;
  EXPECT_TRUE(has(written("two", "report.html"), "is not the file"));
  bars("BBB.csv", 120, 2);
  const Result other = backtest({"BBB.csv", "--from-results", "one/results.json"});
  EXPECT_FALSE(has(other.err, "is not the file")) << "other data was asked for";
}

TEST_F(BacktestTest, SymbolsOfSeveralCalendarsShareTheReturns) {
  bars("STK.csv", 100, 1);
  bars("COIN.csv", 140, 2, true);
  const Result result = backtest({"STK.csv", "COIN.csv", "--windows", "10", "--no-lag-test"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string returns = written("backtest-out", "returns.csv");
  EXPECT_TRUE(has(returns, ",,,,,,,,,")) << "no target bar of one of the two";
  const io::Json json = io::parse_json(written("backtest-out", "results.json"), "results.json");
  EXPECT_EQ(at(at(at(json, "symbols"), "COIN"), "asset").string, "crypto");
  EXPECT_FALSE(has(written("backtest-out", "trades.csv"), "COIN,simple,short"));
}

TEST_F(BacktestTest, ARunCanBeRepeatedFromItsResults) {
  bars("AAA.csv", 120, 1);
  const Result first = backtest({"AAA.csv",
                                 "--from",
                                 "2024-05-01",
                                 "--to",
                                 "2024-05-20",
                                 "--transform",
                                 "log",
                                 "--fee-bps",
                                 "2.5",
                                 "--fill",
                                 "close",
                                 "--samples",
                                 "64",
                                 "--seed",
                                 "7",
                                 "--strategies",
                                 "simple,maxdiff",
                                 "--tune-offsets",
                                 "--no-lag-test",
                                 "--output-dir",
                                 "one"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(has(written("one", "results.json"), "\"point\": \"trimmed_mean_0.1\""));
  const Result second = backtest({"--from-results", "one/results.json", "--output-dir", "two"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  for (const char* name : {"results.json", "forecasts.csv", "trades.csv", "returns.csv"}) {
    EXPECT_EQ(written("one", name), written("two", name)) << name;
  }
  // A flag wins, and a new period replaces the old one.
  const Result third = backtest({"--from-results", "one/results.json", "--windows", "5",
                                 "--output-dir", "three", "--json", "-"});
  const io::Json settings = at(json_of(third), "settings");
  EXPECT_EQ(at(settings, "windows").integer, 5);
  EXPECT_EQ(at(settings, "from").kind, io::Json::Kind::null);
  EXPECT_EQ(at(settings, "fee_bps").real, 2.5);
  file("own.json", R"({"settings": {"data": ["AAA.csv"], "windows": 5, "bogus": 1}})");
  expect_refusal(3, {"own.json", "bogus"}, {"backtest", "--from-results", "own.json"});
  file("none.json", "{}");
  expect_refusal(3, {"none.json", "settings"}, {"backtest", "--from-results", "none.json"});
}

TEST_F(BacktestTest, SettingsComeFromAFileToo) {
  bars("AAA.csv", 120, 1);
  const std::vector<std::string> flags = {"AAA.csv",
                                          "--windows",
                                          "6",
                                          "--fee-bps",
                                          "2.5",
                                          "--strategies",
                                          "simple,maxdiff",
                                          "--tune-offsets",
                                          "--no-lag-test",
                                          "--output-dir",
                                          "one"};
  ASSERT_EQ(backtest(flags).exit_code, 0);
  file("run.conf",
       "# costs of my broker\r\n data = AAA.csv\nwindows=6\nfee_bps = 2.5\n\n"
       "strategies = simple, maxdiff\ntune_offsets = true\nlag_test = false\n");
  file("run.json", R"({"data": ["AAA.csv"], "windows": 6, "fee_bps": 2.5,
                       "strategies": ["simple", "maxdiff"], "tune_offsets": true, "lag_test": false})");
  for (const char* name : {"run.conf", "run.json", "one/results.json"}) {
    const Result result = backtest({"--settings", name, "--output-dir", "two"});
    ASSERT_EQ(result.exit_code, 0) << name << result.err;
    for (const char* output : {"results.json", "forecasts.csv", "trades.csv"}) {
      EXPECT_EQ(written("one", output), written("two", output)) << name;
    }
  }
  const Result won = backtest({"--settings", "run.conf", "--windows", "3", "--json", "-"});
  EXPECT_EQ(at(at(json_of(won), "settings"), "windows").integer, 3) << "a flag wins";
  const Result variable = run({"backtest", "--settings", "run.conf", "--json", "-"},
                              {{"TOTO_CACHE_DIR", path("cache")}, {"TOTO_SEED", "9"}});
  EXPECT_EQ(at(at(json_of(variable), "settings"), "seed").string, "9");
}

TEST_F(BacktestTest, AWrongFileOfSettingsIsRefused) {
  bars("AAA.csv", 120, 1);
  file("bad.conf", "");
  const auto refused = [&](const std::string& text, std::string_view what,
                           std::string_view expected) {
    file("bad.conf", text);
    expect_refusal(3, {"bad.conf", what, expected},
                   {"backtest", "AAA.csv", "--settings", "bad.conf"});
  };
  refused("windows = 5\nwidows = 6\n", "line 2: there is no setting \"widows\"",
          "did you mean windows?");
  refused("windows = 5\n\nwindows = 6\n", "line 3", "second time");
  refused("windows 5\n", "line 1", "name = value");
  refused("windows = many\n", "line 1: windows is \"many\"", "whole number");
  refused("transform = sqrt\n", "line 1: transform", "pct, log or price");
  refused("threads = 0\n", "line 1: threads", "whole number");
  refused("tune_offsets = maybe\n", "tune_offsets", "1 or 0");
  refused("{\"windows\": 5, \"fee_bp\": 1}", "no setting \"fee_bp\"", "did you mean fee_bps?");
  refused("{\"windows\": 5", "bad.conf", "");
  expect_refusal(3, {"gone.conf"}, {"backtest", "AAA.csv", "--settings", "gone.conf"});
  expect_refusal(2, {"--return-scale"}, {"backtest", "AAA.csv", "--return-scale", "100"});
}

TEST_F(BacktestTest, ThreadsModesAndTheCacheChangeNothing) {
  bars("AAA.csv", 120, 1);
  const auto forecasts = [&](std::vector<std::string> more, const std::string& windows = "8") {
    more.insert(more.begin(), {"AAA.csv", "--no-lag-test", "--windows", windows});
    const Result result = backtest(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return written("backtest-out", "forecasts.csv");
  };
  const std::string expected = forecasts({"--no-cache"});
  EXPECT_FALSE(fs::exists(path("cache/forecasts")));
  EXPECT_EQ(forecasts({}), expected);
  EXPECT_TRUE(fs::exists(path("cache/forecasts")));
  EXPECT_EQ(forecasts({}), expected);
  EXPECT_EQ(forecasts({"--threads", "1", "--no-cache"}), expected);
  EXPECT_EQ(forecasts({"--mode", "reduce-overhead", "--no-cache"}), expected);
  EXPECT_EQ(forecasts({"--isa", "reference", "--no-cache"}), expected);
  // Windows enough that later ones go on from earlier ones: the bundled model's patch is 24 points.
  const std::string reused = forecasts({"--no-cache"}, "60");
  EXPECT_EQ(forecasts({"--no-cache", "--no-prefix-reuse"}, "60"), reused);
}

TEST_F(BacktestTest, AnEditedConfigIsNotServedStaleForecasts) {
  bars("AAA.csv", 120, 1);
  fs::copy(TOTO_SOURCE_DIR "/models/toto-mini", path("model"));
  const auto run_it = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"AAA.csv", "--windows", "8", "--no-lag-test", "--model", path("model")});
    const Result result = backtest(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const io::Json json = io::parse_json(written("backtest-out", "results.json"), "results.json");
    return std::pair(written("backtest-out", "forecasts.csv"),
                     at(at(json, "engine"), "config_sha256").string);
  };
  const auto [before, hash_before] = run_it({});
  EXPECT_EQ(run_it({}).first, before);
  std::string config = contents_of(folder_ / "model/config.json");
  constexpr std::string_view kScaler = "CausalPatchStdMeanScaler";
  ASSERT_NE(config.find(kScaler), std::string::npos);
  config.replace(config.find(kScaler), kScaler.size(), "CausalStdMeanScaler");
  file("model/config.json", config);
  const auto [after, hash_after] = run_it({});
  EXPECT_NE(after, before);
  EXPECT_NE(hash_after, hash_before);
  EXPECT_EQ(hash_after.size(), 64u);
  EXPECT_EQ(after, run_it({"--no-cache"}).first);
}

TEST_F(BacktestTest, AnInterruptedRunGoesOnWhereItStopped) {
  for (const char* name : {"A.csv", "B.csv", "C.csv", "D.csv"}) {
    bars(name, 600, static_cast<unsigned>(name[0]));
  }
  const std::vector<std::string> words = {"backtest", "A.csv",         "B.csv",
                                          "C.csv",    "D.csv",         "--windows",
                                          "500",      "--no-lag-test", "--progress"};
  const Environment cache = {{"TOTO_CACHE_DIR", path("cache")}};
  const Running running = start(words, cache);
  EXPECT_TRUE(testing::eventually([&] { return fs::exists(path("cache/forecasts")); }));
  kill(running.pid(), SIGINT);
  const Result stopped = running.wait();
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_TRUE(has(stopped.err, "error: interrupted; nothing was written, but the forecasts"))
      << stopped.err;
  EXPECT_FALSE(fs::exists(path("backtest-out")));
  const auto file_size = [&] {
    return fs::file_size(fs::directory_iterator(path("cache/forecasts"))->path());
  };
  const auto kept = file_size();
  EXPECT_GT(kept, 1000u);
  const Result resumed = run(words, cache);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_GT(file_size(), kept);
  const std::string expected = written("backtest-out", "forecasts.csv");
  std::vector<std::string> afresh = words;
  afresh.insert(afresh.end(), {"--no-cache", "--output-dir", "afresh"});
  ASSERT_EQ(run(afresh).exit_code, 0);
  EXPECT_EQ(written("afresh", "forecasts.csv"), expected);
}

TEST_F(BacktestTest, EveryDecisionIsProvenOnRequest) {
  bars("AAA.csv", 120, 1);
  const Result result =
      backtest({"AAA.csv", "--windows", "6", "--prove-no-lookahead", "--no-lag-test"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "No lookahead: all of 6 decisions")) << result.out;
}

TEST_F(BacktestTest, BadRequestsAreRefused) {
  bars("AAA.csv", 120, 1);
  expect_refusal(2, {"DATA is required"}, {"backtest"});
  expect_refusal(2, {"--windows and --from"},
                 {"backtest", "AAA.csv", "--windows", "5", "--from", "2024-02-01"});
  expect_refusal(2, {"--windows", "\"0\""}, {"backtest", "AAA.csv", "--windows", "0"});
  expect_refusal(2, {"--from", "\"soon\""}, {"backtest", "AAA.csv", "--from", "soon"});
  expect_refusal(2, {"--from first"},
                 {"backtest", "AAA.csv", "--from", "2024-03-02", "--to", "2024-03-01"});
  expect_refusal(2, {"--decision-lag"}, {"backtest", "AAA.csv", "--decision-lag", "0"});
  expect_refusal(2, {"--transform", "pct, log or price"},
                 {"backtest", "AAA.csv", "--transform", "sqrt"});
  expect_refusal(2, {"--fee-bps", "\"-1\""}, {"backtest", "AAA.csv", "--fee-bps=-1"});
  expect_refusal(2, {"--slippage-bps", "nan"}, {"backtest", "AAA.csv", "--slippage-bps", "nan"});
  expect_refusal(2, {"--asset"}, {"backtest", "AAA.csv", "--asset", "bond"});
  expect_refusal(2, {"--fill"}, {"backtest", "AAA.csv", "--fill", "mid"});
  expect_refusal(2, {"--strategies", "\"magic\""},
                 {"backtest", "AAA.csv", "--strategies", "magic"});
  expect_refusal(2, {"--point"}, {"backtest", "AAA.csv", "--point", "mode"});
  expect_refusal(2, {"-", "symbol"}, {"backtest", "-"});
  expect_refusal(3, {"gone.csv"}, {"backtest", "gone.csv"});
}

TEST_F(BacktestTest, OneBadFileStopsTheRunAndWritesNothing) {
  bars("AAA.csv", 120, 1);
  file("BAD.csv", "date,open,high,low,close\n2024-01-02,1,1,1,1\n2024-01-03,1,1,1,$2\n");
  expect_refusal(3, {"BAD.csv: line 3", "\"$2\""}, {"backtest", "AAA.csv", "BAD.csv"});
  EXPECT_FALSE(fs::exists(folder_ / "backtest-out"));
}

TEST_F(BacktestTest, TooLittleHistoryIsNamedAndSkipped) {
  bars("AAA.csv", 120, 1);
  bars("NEW.csv", 30, 2);
  const Result result = backtest({"AAA.csv", "NEW.csv", "--windows", "5", "--no-lag-test"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(has(result.err, "warning: NEW.csv: NEW has too little history: 24 points"))
      << result.err;
  EXPECT_TRUE(has(result.err, "it has 30 bars, too few for any window")) << result.err;
  EXPECT_TRUE(has(result.err, "error: skipped, the rest was written: NEW")) << result.err;
  EXPECT_TRUE(has(written("backtest-out", "returns.csv"), "AAA:simple"));
  EXPECT_FALSE(has(written("backtest-out", "returns.csv"), "NEW:simple"));
  EXPECT_TRUE(has(written("backtest-out", "report.html"), "NEW has too little history"));
  fs::remove_all(folder_ / "backtest-out");
  const Result alone = backtest({"NEW.csv", "--windows", "5"});
  EXPECT_EQ(alone.exit_code, 3);
  EXPECT_TRUE(has(alone.err, "error: no symbol could be run")) << alone.err;
}

TEST_F(BacktestTest, OddDataIsReportedAndEscaped) {
  std::string text = contents_of(bars("<b>X.csv", 120, 1));
  const std::size_t row = text.find("2024-03-01");
  text.replace(row, text.find('\n', row) - row, "2024-03-01,100,90,110,100,0");
  file("<b>X.csv", text);
  const Result result = backtest({"<b>X.csv", "--windows", "5", "--no-lag-test"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "warning: <b>X.csv: line 46: <b>X has open 100, high 90"))
      << result.err;
  const std::string report = written("backtest-out", "report.html");
  EXPECT_TRUE(has(report, "&lt;b&gt;X"));
  EXPECT_FALSE(has(report, "<b>X"));
}

// ---------------------------------------------------------------------------------------- compare

class CompareTest : public BacktestTest {
 protected:
  void results(const std::string& name, const std::string& symbols) {
    file(name, R"({"schema_version": 1, "symbols": {)" + symbols + "}}");
  }
  static std::string symbol(const std::string& name, const std::string& total) {
    return symbol(name, total, "null", "-0.1", "2");
  }
  static std::string symbol(const std::string& name, const std::string& total,
                            const std::string& sharpe, const std::string& drawdown,
                            const std::string& mae) {
    return fmt::format(R"("{}": {{"strategies": {{"simple": {{"total_return": {}, "sharpe": {},
                       "max_drawdown": {}}}}}, "forecast": {{"close": {{"mae": {},
                       "persistence": {{"mae": 4}}}}}}}})",
                       name, total, sharpe, drawdown, mae);
  }
  int gate() { return backtest({"compare", "a.json", "b.json"}).exit_code; }
};

TEST_F(CompareTest, OnlyTheTotalReturnGates) {
  const auto pair = [&](const std::string& a, const std::string& b) {
    results("a.json", symbol("S", a));
    results("b.json", symbol("S", b));
    return backtest({"compare", "a.json", "b.json"});
  };
  EXPECT_EQ(pair("0.10", "0.109").exit_code, 0);
  EXPECT_FALSE(has(pair("0.10", "0.109").err, "warning"));
  EXPECT_EQ(pair("0.10", "0.11").exit_code, 0);
  EXPECT_TRUE(has(pair("0.10", "0.11").err, "warning: S simple")) << "from 0.01 on";
  EXPECT_EQ(pair("0.10", "0.149").exit_code, 0);
  EXPECT_EQ(pair("0.01", "0.06").exit_code, 1) << "from 0.05 on, whatever the rounding";
  EXPECT_EQ(pair("-0.3", "0.3").exit_code, 1);
  EXPECT_EQ(pair("null", "null").exit_code, 0);
  EXPECT_EQ(pair("null", "0").exit_code, 1);
  EXPECT_EQ(pair("0", "null").exit_code, 1);
  const Result same = pair("0.1", "0.1");
  EXPECT_TRUE(has(same.out, "passed")) << same.out;
  EXPECT_TRUE(has(same.out, "+0.5000")) << "MAE relative to persistence\n" << same.out;
}

TEST_F(CompareTest, WhatIsMissingFails) {
  results("a.json", symbol("S", "0.1"));
  results("b.json", symbol("S", "0.1") + "," + symbol("T", "0.1"));
  EXPECT_EQ(gate(), 1) << "only B has T";
  results("a.json", "");
  results("b.json", "");
  EXPECT_EQ(gate(), 1) << "nothing to compare";
  results("a.json", symbol("S", "0.1"));
  results("b.json", R"("S": {"strategies": {"simple": {}}})");
  EXPECT_EQ(gate(), 1) << "no total return in B";
  results("b.json", R"("S": {"strategies": {"simple": {"total_return": "much"}}})");
  EXPECT_EQ(gate(), 3);
  file("b.json", "{\"schema_version\": 1}");
  EXPECT_EQ(gate(), 3);
  file("b.json", "{\"schema_version\": 99, \"symbols\": {}}");
  EXPECT_EQ(gate(), 3);
  file("b.json", "not json");
  EXPECT_EQ(gate(), 3);
  expect_refusal(3, {"gone.json"}, {"backtest", "compare", "a.json", "gone.json"});
  expect_refusal(2, {"expected two"}, {"backtest", "compare", "a.json"});
}

TEST_F(CompareTest, AFigureOfOneSideOnlyFails) {
  const auto pair = [&](const std::string& a, const std::string& b) {
    results("a.json", a);
    results("b.json", b);
    return backtest({"compare", "a.json", "b.json"});
  };
  const std::string whole = symbol("S", "0.1", "1.5", "-0.1", "2");
  EXPECT_EQ(pair(whole, whole).exit_code, 0);
  EXPECT_EQ(pair(whole, symbol("S", "0.1", "-1.5", "-0.9", "3")).exit_code, 0)
      << "Sharpe, drawdown and MAE are shown, the total return gates";
  for (const auto& [other, reason] :
       {std::pair(symbol("S", "0.1", "null", "-0.1", "2"), "Sharpe is null in B only"),
        std::pair(symbol("S", "0.1", "1.5", "null", "2"), "drawdown is null in B only"),
        std::pair(symbol("S", "0.1", "1.5", "-0.1", "null"), "close MAE is null in B only"),
        std::pair(symbol("S", "null", "1.5", "-0.1", "2"), "total return is null in B only"),
        std::pair(std::string(R"("S": {"strategies": {"simple": {"total_return": 0.1, "sharpe": 1.5,
                                  "max_drawdown": -0.1}}})"),
                  "close MAE is absent in B only"),
        std::pair(std::string(R"("S": {"strategies": {"simple": {"total_return": 0.1,
                                  "max_drawdown": -0.1}}, "forecast": {"close": {"mae": 2,
                                  "persistence": {"mae": 4}}}})"),
                  "Sharpe is absent in B only")}) {
    const Result result = pair(whole, other);
    EXPECT_EQ(result.exit_code, 1) << reason;
    EXPECT_TRUE(has(result.out, reason)) << result.out;
    EXPECT_EQ(pair(other, whole).exit_code, 1) << reason;
    EXPECT_EQ(pair(other, other).exit_code, 0) << "the same on both sides: " << reason;
  }
}

TEST_F(CompareTest, RealRunsAgainstThemselves) {
  bars("AAA.csv", 100, 1);
  ASSERT_EQ(backtest({"AAA.csv", "--windows", "5", "--no-lag-test"}).exit_code, 0);
  const Result result =
      backtest({"compare", "backtest-out", "backtest-out/results.json", "--json", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(at(json_of(result), "passed").boolean);
  EXPECT_EQ(at(json_of(result), "strategies").array.size(), 9u);
}

}  // namespace
}  // namespace toto::cli
