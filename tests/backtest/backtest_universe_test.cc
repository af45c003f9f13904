// Many symbols together: the figures of a universe, the report of one and of five hundred symbols,
// and the files a run was made from.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backtest/backtest_files.h"
#include "backtest/backtest_report.h"
#include "backtest/data_files.h"
#include "backtest/report_story.h"
#include "backtest/universe.h"
#include "backtest_fixture.h"
#include "io_fixture.h"

namespace toto::backtest {
namespace {

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

tables::Bars walk(unsigned seed, std::size_t count, const std::string& symbol) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> noise(0.0005 * static_cast<double>(seed % 3), 0.01);
  std::vector<Row> rows;
  double close = 100;
  for (std::size_t i = 0; i < count; ++i) {
    const double open = close;
    close *= std::exp(noise(engine));
    rows.push_back({open, std::max(open, close) * 1.003, std::min(open, close) * 0.997, close});
  }
  return make_bars(rows, symbol);
}

// Every forecast is `step` times the last price, its quantiles a fan of `width` around it.
class Steady final : public ForecastSource {
 public:
  explicit Steady(double step, double width = 0.02) : step_(step), width_(width) {}
  void forecast(std::span<const TargetRequest> requests,
                std::span<TargetForecast> results) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const double last = requests[i].bars->prices(requests[i].target)[requests[i].decision];
      results[i].point = last * step_;
      for (std::size_t q = 0; q < kNumLevels; ++q) {
        results[i].quantiles[q] = results[i].point * (1 + width_ * (level(q) - 0.5));
      }
    }
  }

 private:
  double step_, width_;
};

struct Walked {
  std::vector<tables::Bars> bars;
  BacktestSpec options = {};
  RunPlan plan = {};
  std::vector<SymbolResult> results = {};

  Walked(std::vector<tables::Bars> data, double step, int windows, double width = 0.02)
      : bars(std::move(data)) {
    options.windows = windows;
    options.asset = tables::Asset::stock;  // bars on all days, but short sales are allowed
    plan = plan_run(bars, options);
    Steady source(step, width);
    results = evaluate(plan.symbols, forecast_all(plan.symbols, source), options.strategies);
  }
  Walked(const Walked&) = delete;
  Walked& operator=(const Walked&) = delete;

  std::string report(const tables::Bars* benchmark = nullptr) const {
    const LookaheadCheck lookahead{.num_checked = 1, .num_decisions = 1};
    tables::EngineBlock engine;
    engine.model = "test";
    engine.trained = true;
    return report_html({.results = results,
                        .engine = engine,
                        .spec = options,
                        .lookahead = lookahead,
                        .notes = {},
                        .skipped = {},
                        .benchmark = benchmark});
  }
};

// ------------------------------------------------------------------------------------- strategies

// A strategy is one row and its function; no other code names it.
TEST(Strategies, AnAddedRowReachesEveryOutput) {
  static constexpr Strategy kEveryOtherBar = {
      "every-other-bar", Strategy::Kind::limit, false,
      [](const Outlook& outlook, std::size_t k, const Offsets&) {
        BarOrders orders;
        orders.legs[0].side = k % 2 == 0 ? Side::buy : Side::flat;
        orders.legs[0].take_profit = outlook.point(k, tables::Target::high) * 1.05;
        return orders;
      }};
  Walked walked({walk(1, 60, "AAA"), walk(2, 60, "BBB")}, 1.01, 10);
  walked.options.strategies.push_back(&kEveryOtherBar);
  Steady source(1.01, 0.02);
  walked.results = evaluate(walked.plan.symbols, forecast_all(walked.plan.symbols, source),
                            walked.options.strategies);
  EXPECT_EQ(walked.results[0].find(kEveryOtherBar)->metrics.trades, 5u);
  const std::string json = results_json(walked.results, {}, walked.options, {}, {});
  const io::Json parsed = io::parse_json(json, "results.json");
  for (const char* part : {"universe", "symbols"}) {
    const io::Json* strategies = part == std::string("universe")
                                     ? parsed.find(part)->find("strategies")
                                     : parsed.find(part)->find("AAA")->find("strategies");
    EXPECT_NE(strategies->find("every-other-bar"), nullptr) << part;
  }
  EXPECT_EQ(parsed.find("settings")->find("strategies")->array.back().string, "every-other-bar");
  const auto text = [&](auto write) {
    std::string all;
    write(walked.results, [&](std::string_view piece) { all += piece; });
    return all;
  };
  EXPECT_NE(text(write_trades).find("AAA,every-other-bar,long,"), std::string::npos);
  EXPECT_NE(text(write_returns).find(",BBB:every-other-bar"), std::string::npos);
  EXPECT_NE(walked.report().find("every-other-bar"), std::string::npos);
  Steady again(1.01, 0.02);
  EXPECT_TRUE(check_no_lookahead(walked.results, again, Checked::all).passed());
}

// ------------------------------------------------------------------------------------- universe

TEST(Universe, ReportsMedianShareBestWorstAndPortfolio) {
  const Walked run({walk(1, 100, "A"), walk(2, 100, "B"), walk(3, 100, "C")}, 0.99, 20);
  const std::vector<UniverseRow> rows = universe_of(run.results);
  ASSERT_EQ(rows.size(), all_strategies().size());
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const UniverseRow& row = rows[s];
    std::vector<double> returns, equity(20, 0.0);
    std::size_t ahead = 0, trades = 0;
    for (const SymbolResult& result : run.results) {
      const StrategyResult& one = result.strategies[s];
      returns.push_back(one.metrics.total_return);
      trades += one.metrics.trades;
      if (returns.back() > result.strategies[0].metrics.total_return) ++ahead;
      for (std::size_t k = 0; k < 20; ++k) equity[k] += one.simulation.equity[k] / 3;
    }
    std::vector<double> sorted = returns;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(row.median_return, sorted[1]);
    EXPECT_EQ(row.best.total_return, sorted[2]);
    EXPECT_EQ(row.worst.total_return, sorted[0]);
    EXPECT_NEAR(row.mean_return, (returns[0] + returns[1] + returns[2]) / 3, kExact);
    EXPECT_EQ(row.num_ahead, ahead);
    EXPECT_EQ(row.num_trades, trades);
    ASSERT_TRUE(row.portfolio.has_value());
    EXPECT_NEAR(row.portfolio->total_return, equity.back() - 1, kExact);
    EXPECT_NEAR(row.portfolio->max_drawdown, max_drawdown(equity).depth, kExact);
    std::vector<double> changes;
    for (std::size_t k = 0; k < 20; ++k) {
      changes.push_back(equity[k] / (k == 0 ? 1 : equity[k - 1]) - 1);
    }
    const double sharpe = sharpe_ratio(changes, 252);
    EXPECT_TRUE(std::isnan(sharpe) ? std::isnan(row.portfolio->sharpe)
                                   : std::abs(row.portfolio->sharpe - sharpe) < 1e-9);
  }
}

TEST(Universe, RowsAreSortedByMedian) {
  const std::vector<UniverseRow> rows =
      by_median({{.strategy = &parse_strategy("simple"), .median_return = 1},
                 {.strategy = &parse_strategy("maxdiff"), .median_return = 3},
                 {.strategy = &parse_strategy("highlow"), .median_return = 1}});
  EXPECT_EQ(rows[0].strategy, &parse_strategy("maxdiff"));
  EXPECT_EQ(rows[1].strategy, &parse_strategy("simple")) << "equal ones stay in order";
}

TEST(Universe, ThePortfolioIsOnTheCommonDates) {
  std::vector<tables::Bars> bars = {walk(1, 100, "A"), walk(2, 100, "B")};
  for (tables::Ticks& time : bars[1].times) time += 7 * tables::kDay;
  const Walked run(std::move(bars), 1.01, 20);
  const std::optional<Portfolio> portfolio = portfolio_of(run.results);
  ASSERT_TRUE(portfolio.has_value());
  ASSERT_EQ(portfolio->bars.size(), 13u);  // the last 13 of A are the first 13 of B
  EXPECT_EQ(portfolio->bars.front(), 87u);
  const auto& a = run.results[0].strategies[0].simulation.equity;
  const auto& b = run.results[1].strategies[0].simulation.equity;
  for (std::size_t i = 0; i < 13; ++i) {
    EXPECT_NEAR(portfolio->strategies[0].equity[i], (a[7 + i] / a[6] + b[i]) / 2, kExact) << i;
  }
  EXPECT_TRUE(has(run.report(), "first of their 13 common dates"));
}

TEST(Universe, SymbolsWithoutACommonDateHaveNoPortfolio) {
  std::vector<tables::Bars> bars = {walk(1, 100, "A"), walk(2, 100, "B")};
  for (tables::Ticks& time : bars[1].times) time += 20 * tables::kDay;
  const Walked run(std::move(bars), 1.01, 20);
  EXPECT_FALSE(universe_of(run.results).front().portfolio.has_value());
  EXPECT_TRUE(has(run.report(), "they make no portfolio"));
  EXPECT_FALSE(has(run.report(), "<h2>Portfolio</h2>"));
  EXPECT_TRUE(has(run.report(), "no date in common, so there is no portfolio. For its risk"));
  EXPECT_TRUE(has(run.report(), "eight strategies were tried on 2 symbols"));
}

TEST(Universe, SelectsTheBestMiddleAndWorstSymbols) {
  std::vector<tables::Bars> bars;
  for (unsigned i = 0; i < 21; ++i) bars.push_back(walk(i + 1, 100, fmt::format("S{:02}", i)));
  const Walked run(std::move(bars), 0.99, 20);
  EXPECT_EQ(telling_symbols(run.results, 21).size(), 21u);
  EXPECT_EQ(telling_symbols(run.results, 21).front(), 0u);
  const std::vector<std::size_t> shown = telling_symbols(run.results, 6);
  ASSERT_EQ(shown.size(), 6u);
  std::vector<double> excess;
  for (const SymbolResult& result : run.results) excess.push_back(mean_excess(result));
  const auto rank = [&](std::size_t symbol) {
    return std::count_if(excess.begin(), excess.end(),
                         [&](double value) { return value > excess[symbol]; });
  };
  std::vector<std::ptrdiff_t> ranks;
  for (const std::size_t symbol : shown) ranks.push_back(rank(symbol));
  EXPECT_EQ(ranks, (std::vector<std::ptrdiff_t>{0, 1, 9, 10, 19, 20}));
}

// --------------------------------------------------------------------------------------- report

TEST(Report, VerdictsStateTheirSampleSize) {
  const Walked run({walk(3, 100, "A")}, 1.05, 20);  // always long: one trade
  const std::string report = run.report();
  EXPECT_TRUE(has(report, "in 1 trade, too few to tell skill from luck."));
  EXPECT_TRUE(has(report, "Eight strategies were tried. By luck alone one or two would look good"));
  EXPECT_TRUE(has(report, "over 20 bars (Diebold-Mariano p &lt; 0.001, a significant difference)"));
  EXPECT_TRUE(has(report, "held 0 % of the closes of A, too narrow"));
  EXPECT_TRUE(has(report, "against buy-hold, points"));
  EXPECT_FALSE(has(report, "All symbols together"));
}

TEST(Report, EverySymbolHasItsOwnBandVerdict) {
  const Walked run({walk(1, 100, "A"), walk(2, 100, "B")}, 1, 30, 0.6);
  EXPECT_TRUE(has(run.report(),
                  "held 100 % of the closes of A, too wide; 100 % of the closes of "
                  "B, too wide"));
  EXPECT_TRUE(
      has(run.report(),
          "Eight strategies were tried on 2 symbols. By luck alone some of these 16 comparisons"));
}

TEST(Report, ChartsSayThatBarsAreSeparateForecasts) {
  const Walked run({walk(1, 100, "A")}, 1, 60);
  const std::string report = run.report();
  EXPECT_TRUE(has(report, "band was forecast one bar before"));
  EXPECT_TRUE(has(report, "80 %, forecast one bar before"));
  EXPECT_FALSE(has(report, "Forecast after"));
  EXPECT_TRUE(has(report, "Sharpe ratio of the last 63 bars"));
  EXPECT_TRUE(has(report, "The run has 60 bars, too few for it."));
}

TEST(Report, OpensWithTheBestStrategyAndWhatItIsWorth) {
  const Walked run({walk(2, 400, "A")}, 0.99, 260);  // always short
  const std::string report = run.report();
  const Story story = story_of(run.results[0], nullptr);
  const TradingMetrics& best = story.best_track().metrics;
  for (const Track& track : story.tracks) {
    if (track.strategy == &benchmark_strategy()) continue;
    EXPECT_FALSE(track.metrics.sharpe > best.sharpe) << track.label;
  }
  EXPECT_EQ(story.num_tried, 8u);
  EXPECT_TRUE(
      has(report, "<b class=\"word-value\">" + story.best_track().label + "</b><span>of 8 tried"));
  EXPECT_TRUE(has(report, fmt::format("<b>{:.2f}</b><span>95\u00a0% interval", best.sharpe)));
  EXPECT_TRUE(
      has(report, "eight strategies were tried, and by luck alone the best of them would look"));
  const Interval range = sharpe_interval(story.best_track().returns, 252);
  EXPECT_NEAR((range.low + range.high) / 2, best.sharpe, 1e-9);
  // P(Sharpe above 0) and the interval are of one normal distribution.
  const double errors = best.sharpe / ((range.high - range.low) / 2 / 1.959963984540054);
  EXPECT_NEAR(best.probabilistic_sharpe, 0.5 * std::erfc(-errors / std::sqrt(2)), 1e-9);
  EXPECT_TRUE(has(report, "Price and trades"));
  EXPECT_TRUE(has(report, "trades of " + story.best_track().label));
  EXPECT_TRUE(has(report, "Returns by month, " + story.best_track().label));
}

TEST(Report, FewBarsAreNotAnnualised) {
  const Walked shorter({walk(2, 400, "A")}, 0.99, 62), longer({walk(2, 400, "A")}, 0.99, 63);
  EXPECT_TRUE(has(shorter.report(), "too short to annualise"));
  EXPECT_TRUE(has(shorter.report(), "<td>too short</td>"));
  EXPECT_FALSE(has(longer.report(), "too short"));
}

TEST(Report, ABenchmarkIsComparedOnTheDatesOfTheSymbol) {
  const Walked run({walk(2, 400, "A")}, 0.99, 100);
  tables::Bars index = walk(7, 400, "INDEX");
  const Story story = story_of(run.results[0], &index);
  ASSERT_NE(story.benchmark_file(), nullptr);
  const Track& file = *story.benchmark_file();
  ASSERT_EQ(file.equity.size(), 100u);
  EXPECT_NEAR(file.equity.back(), index.close[399] / index.close[299], kExact);
  // The symbol's own bars: buy-hold has a beta of 1 and no alpha against them, apart from costs.
  const Story own = story_of(run.results[0], &run.bars[0]);
  EXPECT_NEAR(own.buy_hold().other_beta, 1, 0.05);
  EXPECT_NEAR(own.buy_hold().other_alpha, 0, 0.05);
  const std::string report = run.report(&index);
  EXPECT_TRUE(has(report, "Benchmark INDEX"));
  EXPECT_TRUE(has(report, "against INDEX"));
  index.times.erase(index.times.begin(), index.times.begin() + 300);  // begins with the target bars
  EXPECT_EQ(story_of(run.results[0], &index).benchmark_file(), nullptr);
}

TEST(Report, DrawdownsHaveTheirDates) {
  const std::vector<double> equity = {1.1, 1.0, 1.2, 0.9, 0.6, 1.2, 1.1, 1.15};
  const auto spans = drawdown_spans(equity, 5);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_NEAR(spans[0].depth, -0.5, kExact);
  EXPECT_EQ(spans[0].peak, 2);
  EXPECT_EQ(spans[0].trough, 4u);
  EXPECT_EQ(spans[0].recovered, 5u);
  EXPECT_EQ(spans[1].peak, 0);
  EXPECT_FALSE(spans[2].recovered.has_value());
  EXPECT_EQ(spans[2].trough, 6u);
  EXPECT_EQ(drawdown_spans(std::vector<double>{0.9}, 5).front().peak, -1) << "from the start";
  EXPECT_EQ(drawdown_spans(equity, 2).size(), 2u);
}

TEST(Report, WorstTradesAreListedOnceWithoutBuyHold) {
  const Walked run({walk(2, 100, "A")}, 0.99, 20);
  const std::string report = run.report();
  const std::size_t begin = report.find("Worst trades");
  const std::string table = report.substr(begin, report.find("</table>", begin) - begin);
  EXPECT_FALSE(has(table, "buy-hold"));
  EXPECT_LE(count_of(table, "<tr>"), 11u);
  const auto rows = [&] {
    std::vector<std::string> found;
    for (std::size_t at = table.find("<tr><td"); at != std::string::npos;) {
      const std::size_t end = table.find("</tr>", at);
      const std::string row = table.substr(at, end - at);
      found.push_back(row.substr(row.find("</td>")));  // without the strategies
      at = table.find("<tr><td", end);
    }
    return found;
  }();
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(std::set<std::string>(rows.begin(), rows.end()).size(), rows.size());
}

TEST(Report, FiveHundredSymbolsStayReadable) {
  std::vector<tables::Bars> bars;
  for (unsigned i = 0; i < 500; ++i) bars.push_back(walk(i + 1, 80, fmt::format("S{:03}", i)));
  const Walked run(std::move(bars), 1.001, 30);
  const std::string report = run.report();
  EXPECT_LT(report.size(), 4u << 20);
  EXPECT_EQ(count_of(report, "<h2>S0") + count_of(report, "<h2>S1") + count_of(report, "<h2>S2") +
                count_of(report, "<h2>S3") + count_of(report, "<h2>S4"),
            12u)
      << "details of the telling ones";
  EXPECT_TRUE(has(report, "The rest of this page shows 12 of 500 symbols"));
  EXPECT_TRUE(has(report, "All symbols together"));
  // One row per symbol for returns and one for the close, not nine and four.
  EXPECT_GE(count_of(report, "<tr"), 1000u);
  EXPECT_LT(count_of(report, "<tr"), 2500u);
  EXPECT_TRUE(has(report,
                  "S000, S001, S002, S003, S004, S005, S006, S007 and 492 more: stock "
                  "(as given), 252 bars per year"));
  EXPECT_TRUE(has(report, "is about right on "));
}

// ----------------------------------------------------------------------------------------- files

TEST(DataFiles, ChangedFilesAreNamed) {
  tables::Bars first = walk(1, 10, "A"), second = walk(2, 12, "B");
  second.file = first.file;
  first.file_sha256 = second.file_sha256 = "aa";
  const std::vector<tables::Bars> bars = {first, second};
  const std::vector<DataFile> files = data_files(bars);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0], (DataFile{"A.csv", "aa", 22, "2024-01-01", "2024-01-12"}));
  io::JsonWriter json;
  json.begin_object().key("data");
  write_data_files(json, files);
  json.end_object();
  const io::Json document = io::parse_json(json.take(), "r.json");
  EXPECT_EQ(read_data_files(document, "r.json"), files);
  EXPECT_TRUE(data_changes(files, files, "r.json").empty());
  EXPECT_TRUE(data_changes({}, files, "r.json").empty()) << "an earlier run that says nothing";
  const std::vector<DataFile> now = {{"A.csv", "bb", 23, "2024-01-01", "2024-01-13"},
                                     {"C.csv", "cc", 1, "2024-01-01", "2024-01-01"}};
  const std::vector<DataFile> before = {files[0], {"G.csv", "dd", 1, "x", "y"}};
  const std::vector<std::string> changes = data_changes(before, now, "r.json");
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_TRUE(has(changes[0], "A.csv: is not the file r.json was made from: 22 rows"));
  EXPECT_TRUE(has(changes[0], "23 rows, 2024-01-01 to 2024-01-13 now"));
  EXPECT_TRUE(has(changes[1], "C.csv: is new"));
  EXPECT_TRUE(has(changes[2], "G.csv: is gone"));
}

TEST(DataFiles, ADamagedListIsRefused) {
  const auto read = [](const std::string& text) {
    return [text] { read_data_files(io::parse_json(text, "r.json"), "r.json"); };
  };
  EXPECT_TRUE(read_data_files(io::parse_json("{}", "r.json"), "r.json").empty());
  io::expect_error(ErrorCode::corrupt_file, {"r.json", "expected a list"}, read(R"({"data": 1})"));
  io::expect_error(ErrorCode::corrupt_file, {"r.json", "\"rows\"", "a whole number"},
                   read(R"({"data": [{"file": "A"}]})"));
  io::expect_error(ErrorCode::corrupt_file, {"r.json", "\"sha256\"", "text"},
                   read(R"({"data": [{"file": "A", "rows": 1, "sha256": 3}]})"));
}

}  // namespace
}  // namespace toto::backtest
